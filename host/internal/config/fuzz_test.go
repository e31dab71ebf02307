package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// FuzzLoad: every file is either a configuration or an error that can be shown.
func FuzzLoad(f *testing.F) {
	shipped, err := os.ReadFile("../../../config.hcl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(shipped)
	broken, err := filepath.Glob("testdata/mistakes/*/*.hcl")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range broken {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	path := filepath.Join(f.TempDir(), "config.hcl")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(path, config.LoadOptions{LookupEnv: environment(nil)})
		if err != nil {
			show(t, err)
			return
		}
		if _, err := policy.New(cfg.Policy); err != nil {
			t.Errorf("the policy is not one: %v", err)
		}
		if address, err := netip.ParseAddrPort(cfg.Listen); cfg.Listen != "" && (err != nil || !address.Addr().Unmap().IsLoopback()) {
			t.Errorf("Listen = %q, which others may reach", cfg.Listen)
		}
		for _, token := range cfg.Tokens {
			if _, err := auth.ParseRoles(token.Roles.Names()); err != nil || token.Roles == 0 || token.User == "" || len(token.SHA256) != 64 {
				t.Errorf("token %+v is accepted", token)
			}
		}
		for _, p := range cfg.Plugins {
			settings, err := p.Supervisor.Settings([]byte(settingsSchema))
			if err != nil {
				show(t, err)
			} else if !json.Valid(settings) {
				t.Errorf("Settings = %s, which is not JSON", settings)
			}
			p.Supervisor.Locate([]string{"root", "0", "path"})
		}
	})
}

// FuzzSettings: a schema comes from a plugin, which may lie.
func FuzzSettings(f *testing.F) {
	f.Add([]byte(settingsSchema))
	f.Add([]byte(`{"properties":{"a":{"enum":[{}],"x-unit":"bytes","minimum":1e99}}}`))
	dir := f.TempDir()
	text := "workspace = \".\"\nplugin \"p\" {\n tier = \"read_only\"\n config {\n" +
		"depth = 5\n mode = \"text\"\n skip = [\"a\", null]\n cache {\n dir = \"x\"\n }\n labels = { a = 1e400 }\n }\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "config.hcl"), []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	cfg, err := config.Load(dir, config.LoadOptions{LookupEnv: environment(nil)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		settings, err := cfg.Plugins[0].Supervisor.Settings(schema)
		if err != nil {
			show(t, err)
		} else if !json.Valid(settings) {
			t.Errorf("Settings(%s) = %s, which is not JSON", schema, settings)
		}
	})
}

// show writes an error in every form.
func show(t *testing.T, err error) {
	t.Helper()
	var bad *config.Error
	if !errors.As(err, &bad) {
		if len(err.Error()) == 0 {
			t.Error("the error says nothing")
		}
		return
	}
	if len(bad.Mistakes) == 0 || bad.Error() == "" {
		t.Errorf("an error without mistakes: %#v", bad)
	}
	for _, m := range bad.Mistakes {
		if m.File == "" || m.Line < 1 || m.Column < 1 || m.Width < 1 || m.Summary == "" || m.Detail == "" {
			t.Errorf("incomplete mistake: %+v", m)
		}
	}
	if err := bad.WriteText(&bytes.Buffer{}, false); err != nil {
		t.Error(err)
	}
	if _, err := json.Marshal(bad); err != nil {
		t.Error(err)
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := config.Load("../../../config.hcl", config.LoadOptions{LookupEnv: environment(nil)}); err != nil {
			b.Fatal(err)
		}
	}
}
