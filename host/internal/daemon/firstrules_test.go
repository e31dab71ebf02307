package daemon_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/internal/testprogram"
)

// ruled adds a rule to a configuration that names a tool which the plugin does not
// have.
func ruled(t *testing.T, cfg *config.Config) *config.Config {
	t.Helper()
	path := cfg.Files[0]
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, []byte("policy {\n  rule \"no\" {\n    tools   = [\"chnage\"]\n    verdict = \"deny\"\n  }\n}\n")...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if cfg, err = config.Load(path, config.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestFirstStartChecksRules starts a host for the first time with a rule about a tool
// that does not exist: it is refused as a reload would refuse it.
func TestFirstStartChecksRules(t *testing.T) {
	cfg := ruled(t, load(t, ""))
	d := build(t, cfg)
	wantUnknownTool(t, d.Start(t.Context()))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	// The tools are known now: the next host is not even built.
	next, err := daemon.New(t.Context(), daemon.Options{Config: cfg, Version: "1", Logger: hclog.NewNullLogger()})
	if next != nil {
		defer next.Close()
	}
	wantUnknownTool(t, err)
}

// wantUnknownTool checks that an error is a mistake of the configuration like any other,
// which marks the name that no tool has.
func wantUnknownTool(t *testing.T, err error) {
	t.Helper()
	mistakes, ok := errors.AsType[*config.Error](err)
	if !ok || len(mistakes.Mistakes) != 1 {
		t.Fatalf("the error is %v, want one mistake of the configuration", err)
	}
	m := mistakes.Mistakes[0]
	if m.Summary != "Unknown tool" || m.Source != `    tools   = ["chnage"]` || m.Column != 16 || m.Width != len(`"chnage"`) || m.Line < 4 {
		t.Errorf("the mistake is %+v, want it to mark the tool's name", m)
	}
	if want := `rule "no": there is no tool "chnage"; did you mean "change"?`; m.Detail != want {
		t.Errorf("the mistake says %q, want %q", m.Detail, want)
	}
}

// TestLatePluginsRulesAreChecked lets the tools of a plugin become known only after the host has
// started: readyz then reports mistakes in rules.
func TestLatePluginsRulesAreChecked(t *testing.T) {
	cfg := ruled(t, load(t, ""))
	program := filepath.Join(filepath.Dir(cfg.Files[0]), "bin", "greeter")
	if err := os.Rename(program, program+".good"); err != nil {
		t.Fatal(err)
	}
	if err := testprogram.Write(program, strings.NewReader("#!/bin/sh\nexit 1\n")); err != nil {
		t.Fatal(err)
	}
	d := start(t, cfg)
	if health, err := d.approver.Readiness(t.Context()); err != nil || health.Status != "ready" || len(health.Problems) > 0 {
		t.Fatalf("before the tools are known: Readiness = %+v, %v", health, err)
	}
	if err := os.Rename(program+".good", program); err != nil {
		t.Fatal(err)
	}
	if _, err := d.approver.RestartPlugin(t.Context(), "greeter"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		health, err := d.approver.Readiness(ctx)
		if err != nil {
			t.Fatalf("readyz does not tell of the rule: %v", err)
		}
		if len(health.Problems) > 0 {
			if !strings.Contains(health.Problems[0], "rules of the policy do not fit the tools") {
				t.Errorf("Readiness = %+v", health)
			}
			return
		}
	}
}

// TestNamesOfNoToolAreRefused: a tool block, an alias or a toolset that names no tool of its own
// is refused by the first start, by later starts and by a reload.
func TestNamesOfNoToolAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, inPlugin, after, want string }{
		{"tool block", "}\n  tool \"chnage\" {\n    approval = \"deny\"", "", `plugin "greeter", with its settings, has no tool "chnage"; did you mean "change"?`},
		{"alias", "}\n  tool \"greet\" {\n    aliases = [\"change\"]", "", `"change" cannot be an alias of the tool "greet"`},
		{"toolset", "", "toolset \"few\" {\n  tools = [\"gret\"]\n}\n", `toolset "few": there is no tool "gret"; did you mean "greet"?`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wrong := load(t, tt.inPlugin)
			path := wrong.Files[0]
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, tt.after...)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if wrong, err = config.Load(path, config.LoadOptions{}); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the first start, and one that knows the tools
				d := build(t, wrong)
				if err := d.Start(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Start() = %v, want %q", err, tt.want)
				}
				if err := d.Close(); err != nil {
					t.Fatal(err)
				}
			}
			right := strings.Replace(strings.TrimSuffix(string(text), tt.after), tt.inPlugin, "", 1)
			if err := os.WriteFile(path, []byte(right), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(path, config.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			d := start(t, cfg)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := d.Reload(t.Context(), "", auth.Caller{User: "ada"}, "cli"); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Reload() = %v, want %q", err, tt.want)
			}
		})
	}
}

// TestTrialLeavesForeignDirectoriesAlone: validate makes no state directory unless asked, and
// learns the tools nevertheless.
func TestTrialLeavesForeignDirectoriesAlone(t *testing.T) {
	cfg := load(t, "")
	trial, err := daemon.NewTrial(cfg.StateDir, false)
	if err != nil {
		t.Fatal(err)
	}
	plugins, err := trial.Learn(t.Context(), daemon.Options{Config: cfg, Version: "1", Logger: hclog.NewNullLogger()})
	if err != nil || len(plugins) != 1 || len(plugins[0].Tools) != 2 {
		t.Errorf("Learn() = %+v, %v; want two tools", plugins, err)
	}
	if _, err := os.Stat(cfg.StateDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state directory: %v, want that there is none", err)
	}
	if known := trial.Known(cfg); known.StateDir == cfg.StateDir {
		t.Error("the tools are in the state directory")
	}
	if err := trial.Close(); err != nil {
		t.Error(err)
	}
}
