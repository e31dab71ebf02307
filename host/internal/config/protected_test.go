package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestProtected: no call may change the files that the host depends on, under any of their
// names. Each path is tried with the protection and, to rule out other causes, without it.
func TestProtected(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	text := `
		workspace  = "work"
		plugin_dir = "bin"
		state_dir  = "state"
		auth {
			local_user = trimspace(file("user.txt"))
		}
		plugin "fs" {
			tier = "privileged"
		}
		plugin "far" {
			enabled = false
			tier    = "read_only"
			path    = "` + at("linked-opt/far") + `"
		}`
	if err := errors.Join(
		os.Mkdir(at("work"), 0o700), os.Mkdir(at("real-bin"), 0o700), os.Mkdir(at("opt"), 0o700), os.Mkdir(at("real-state"), 0o700),
		os.Symlink("real-bin", at("bin")), os.Symlink("opt", at("linked-opt")), os.Symlink("real-state", at("state")),
		os.WriteFile(at("real-bin/fs-1.2"), nil, 0o700), os.Symlink("fs-1.2", at("real-bin/fs")),
		os.WriteFile(at("user.txt"), []byte("ada\n"), 0o600),
		os.WriteFile(at("real.hcl"), []byte(text), 0o600), os.Symlink("real.hcl", at("config.hcl")),
	); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	cfg, err := config.Load("config.hcl", config.LoadOptions{LookupEnv: environment(nil)})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.New(cfg.Policy)
	if err != nil {
		t.Fatal(err)
	}
	unguarded := cfg.Policy
	unguarded.Protected, unguarded.Hidden = nil, nil
	control, err := policy.New(unguarded)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		want bool // protected
	}{
		{at("config.hcl"), true},
		{at("real.hcl"), true},
		{at("user.txt"), true},
		{at("bin"), true},
		{at("bin/fs"), true},
		{at("bin/new"), true},
		{at("real-bin/fs-1.2"), true},
		{at("real-bin/new"), true},
		{at("linked-opt/far"), true},
		{at("opt/far"), true},
		{at("state/journal.db"), true},
		{at("real-state/journal.db"), true},
		{self, true},
		{at("work/config.hcl"), false},
		{at("other.hcl"), false},
		{at("opt/near"), false},
		{at("bin2"), false},
	} {
		in := policy.Input{Plugin: "fs", Tool: "write_file", Tier: tool.SideEffecting, Paths: []policy.Path{{Name: tt.path, Absolute: tt.path}}}
		if got := rules.Decide(in).Verdict == policy.Deny; got != tt.want {
			t.Errorf("a call that changes %s is denied: %t, want %t", tt.path, got, tt.want)
		}
		if got := control.Decide(in).Verdict; got == policy.Deny {
			t.Errorf("without protection, a call that changes %s is denied", tt.path)
		}
	}
}

// TestReach: a workspace in which nothing could be changed is a mistake, if
// there is a plugin to change something.
func TestReach(t *testing.T) {
	const (
		writer = "plugin \"fs\" {\n tier = \"side_effecting\"\n}\n"
		reader = "plugin \"fs\" {\n tier = \"read_only\"\n}\n"
		off    = "plugin \"fs\" {\n enabled = false\n tier = \"privileged\"\n}\n"
	)
	for _, tt := range []struct {
		name, load, text, mistake string
	}{
		{"one file beside the work", "config.hcl", "workspace = \".\"\n" + writer, ""},
		{"a directory of files", ".", "workspace = \".\"\n" + writer, "config.hcl:1: Workspace in the configuration"},
		{"below it", ".", "workspace = \"work\"\n" + writer, "config.hcl:1: Workspace in the configuration"},
		{"below it by a link", ".", "workspace = \"../link\"\n" + writer, "config.hcl:1: Workspace in the configuration"},
		{"around it", ".", "workspace = \"..\"\n" + writer, ""},
		{"nobody writes", ".", "workspace = \".\"\n" + reader + strings.ReplaceAll(off, "fs", "off"), ""},
		{"plugins in the workspace", "config.hcl", "workspace = \".\"\nplugin_dir = \"work\"\n" + writer, ""},
		{"the workspace among the plugins", "config.hcl", "workspace = \"work\"\nplugin_dir = \".\"\n" + writer, "config.hcl:2: Workspace in plugin_dir"},
		{"no directory for plugins", "config.hcl", "workspace = \"work\"\nplugin_dir = null\n" + writer, ""},
		{"an empty one", "config.hcl", "workspace = \"work\"\nplugin_dir = \"\"\n" + writer, ""},
		{"nobody writes among the plugins", "config.hcl", "workspace = \"work\"\nplugin_dir = \".\"\n" + reader, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "etc")
			if err := errors.Join(
				os.MkdirAll(filepath.Join(dir, "work"), 0o700),
				os.Symlink("etc/work", filepath.Join(parent, "link")),
				os.WriteFile(filepath.Join(dir, "config.hcl"), []byte(tt.text), 0o600),
			); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(filepath.Join(dir, tt.load), config.LoadOptions{LookupEnv: environment(nil)})
			if tt.mistake != "" {
				if err == nil || !strings.Contains(err.Error(), tt.mistake) {
					t.Errorf("Load error = %v, want %q", err, tt.mistake)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if program := cfg.Plugins[0].Supervisor.Path; !slices.Contains(cfg.Policy.Protected, program) {
				t.Errorf("Protected = %q, want %s in it", cfg.Policy.Protected, program)
			}
			if tt.text == "workspace = \".\"\n"+writer && slices.Contains(cfg.Policy.Protected, cfg.Workspace.Shared) {
				t.Errorf("Protected = %q, which holds the whole workspace", cfg.Policy.Protected)
			}
		})
	}
}
