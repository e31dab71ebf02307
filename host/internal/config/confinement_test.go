package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestConfinement: the confinement of a plugin whose sandbox is empty, and the changes by its
// own block.
func TestConfinement(t *testing.T) {
	const (
		lax = "sandbox \"default\" {\n isolation = \"basic\"\n require = [\"landlock\"]\n on_missing = \"warn\"\n run_as = \"host\"\n" +
			"limits {\n processes = \"unlimited\"\n tmp_size = \"1MiB\"\n }\n" +
			"filesystem {\n workspace = \"ro\"\n read = [\"/a\"]\n write = [\"/b\"]\n exec = [\"system\"]\n protect = [\"c\"]\n }\n" +
			"network { mode = \"host\" }\n}\n"
		bare = "sandbox \"bare\" {}\n"
	)
	laxed := sandbox.Confinement{
		Isolation: sandbox.Basic, Require: []sandbox.Layer{sandbox.LayerLandlock}, WarnOnMissing: true,
		RunAs: sandbox.RunAs{Mode: sandbox.RunAsHost}, Workspace: sandbox.ReadWorkspace,
		Read: []string{"/a"}, Write: []string{"/b"}, Exec: []string{"system"}, Protect: []string{"c"},
		Network: sandbox.NetworkHost, TmpSize: tool.MiB, UnlimitedProcesses: true,
	}
	over := func(c sandbox.Confinement, change func(*sandbox.Confinement)) sandbox.Confinement {
		change(&c)
		return c
	}
	for _, tt := range []struct {
		name, blocks, plugin string
		want                 sandbox.Confinement
		processes            uint64
	}{
		{"built-in", "", "", sandbox.DefaultConfinement(), 0},
		{"empty blocks", "", "sandbox {\n filesystem {}\n network {}\n limits {}\n}", sandbox.DefaultConfinement(), 0},
		{
			"null is nothing", "", "sandbox {\n isolation = null\n require = null\n on_missing = null\n run_as = null\n limits {\n processes = null\n tmp_size = null\n }\n" +
				"filesystem {\n workspace = null\n read = null\n write = null\n exec = null\n protect = null\n }\n network {\n mode = null\n }\n}",
			sandbox.DefaultConfinement(), 0,
		},
		{"the block named default", lax, "", laxed, 0},
		{"another one begins from the built-in one", lax + bare, `sandbox = "bare"`, sandbox.DefaultConfinement(), 0},
		{
			"back to the built-in one", lax, "sandbox {\n isolation = \"auto\"\n require = [\"rlimits\", \"no_new_privs\"]\n on_missing = \"refuse\"\n run_as = \"auto\"\n" +
				"limits {\n processes = 0\n tmp_size = \"64MiB\"\n }\n" +
				"filesystem {\n workspace = \"rw\"\n read = []\n write = []\n exec = []\n protect = [\"git\", \"hooks\", \"editor\", \"agents\"]\n }\n network {\n mode = \"none\"\n }\n}",
			sandbox.DefaultConfinement(), 0,
		},
		{"level", lax, `sandbox { isolation = "strict" }`, over(laxed, func(c *sandbox.Confinement) { c.Isolation = sandbox.Strict }), 0},
		{"layers", lax, `sandbox { require = [] }`, over(laxed, func(c *sandbox.Confinement) { c.Require = nil }), 0},
		{"a number of processes", lax, "sandbox {\n limits {\n processes = 9\n }\n}", over(laxed, func(c *sandbox.Confinement) { c.UnlimitedProcesses = false }), 9},
		{"unlimited processes", "", "sandbox {\n limits {\n processes = \"unlimited\"\n }\n}", over(sandbox.DefaultConfinement(), func(c *sandbox.Confinement) {
			c.UnlimitedProcesses = true
		}), 0},
		{"one list", lax, "sandbox {\n filesystem {\n exec = [\"tmp\"]\n }\n}", over(laxed, func(c *sandbox.Confinement) { c.Exec = []string{"tmp"} }), 0},
		{"no workspace", lax, "sandbox {\n filesystem {\n workspace = \"none\"\n }\n}", over(laxed, func(c *sandbox.Confinement) { c.Workspace = sandbox.NoWorkspace }), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, map[string]string{
				"config.hcl": "workspace = \".\"\n" + tt.blocks + "plugin \"p\" {\n tier = \"read_only\"\n" + tt.plugin + "\n}\n",
			})
			cfg, err := config.Load(dir, config.LoadOptions{LookupEnv: environment(nil)})
			if err != nil {
				t.Fatal(err)
			}
			p := cfg.Plugins[0].Supervisor
			if diff := cmp.Diff(tt.want, p.Confinement, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Confinement (-want +got):\n%s", diff)
			}
			if p.Limits.Processes != tt.processes {
				t.Errorf("Processes = %d, want %d", p.Limits.Processes, tt.processes)
			}
		})
	}
}

// TestPathsOfSandbox: the paths that a sandbox may give to plugins, under any of their names.
func TestPathsOfSandbox(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const (
		aroundState, inState = "Path around the state directory", "Path in the state directory"
		host, machine        = "Path of the host", "Not a place to write"
	)
	for _, tt := range []struct {
		name, list, path string
		mistake          string // "" if it may
	}{
		{"a directory beside", "write", "data", ""},
		{"the home directory expanded", "write", `${pathexpand("~/data")}`, ""},
		{"in the workspace", "write", "work/out", ""},
		{"the workspace", "write", "work", ""},
		{"around everything", "write", ".", aroundState},
		{"around the state directory", "read", "kept", aroundState},
		{"to execute", "exec", "./kept", aroundState},
		{"to write", "write", "kept", aroundState},
		{"the state directory", "read", "kept/state", inState},
		{"the plugin's own part of it", "read", "kept/state/plugins/p", inState},
		{"a part of it to execute", "exec", "./kept/state/plugins/p/bin", inState},
		{"by a link", "read", "linked/state/x", inState},
		{"by ..", "read", "bin/../kept/state", inState},
		{"beside it", "read", "kept/other", ""},
		{"everything", "exec", "/", aroundState},
		{"plugin_dir to read", "read", "bin", ""},
		{"plugin_dir to execute", "exec", "./bin", ""},
		{"plugin_dir", "write", "bin", host},
		{"in plugin_dir", "write", "bin/new", host},
		{"in plugin_dir by a link", "write", "linked-bin/new", host},
		{"the configuration", "write", "config.hcl", host},
		{"a file that it reads", "write", "user.txt", host},
		{"a program elsewhere", "write", "opt/far", host},
		{"around a program elsewhere", "write", "opt", host},
		{"a program elsewhere to read", "read", "opt", ""},
		{"this host", "write", self, host},
		{"around this host", "write", filepath.Dir(self), host},
		{"a program in the workspace", "write", "work/near", host},
		{"around a program in the workspace", "write", "work", ""},
		{"devices", "write", "/dev", machine},
		{"devices by a link", "write", "linked-dev/null", machine},
		{"processes to read", "read", "/proc", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			text := `workspace = "work"
				state_dir  = "kept/state"
				plugin_dir = "bin"
				auth {
					local_user = trimspace(file("user.txt"))
				}
				plugin "p" {
					tier = "side_effecting"
					sandbox {
						filesystem {
							` + tt.list + ` = ["` + tt.path + `"]
						}
					}
				}
				plugin "far" {
					enabled = false
					tier    = "read_only"
					path    = "` + at("opt/far") + `"
				}
				plugin "near" {
					tier = "read_only"
					path = "` + at("work/near") + `"
				}`
			if err := errors.Join(
				os.Mkdir(at("work"), 0o700), os.MkdirAll(at("kept/state"), 0o700), os.Mkdir(at("bin"), 0o700),
				os.Symlink("kept", at("linked")), os.Symlink("bin", at("linked-bin")), os.Symlink("/dev", at("linked-dev")),
				os.WriteFile(at("user.txt"), []byte("ada\n"), 0o600), os.WriteFile(at("config.hcl"), []byte(text), 0o600),
			); err != nil {
				t.Fatal(err)
			}
			_, err := config.Load(at("config.hcl"), config.LoadOptions{LookupEnv: environment(map[string]string{"HOME": at("home")})})
			if tt.mistake == "" {
				if err != nil {
					t.Errorf("%s = [%q] is refused: %v", tt.list, tt.path, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "config.hcl:11: "+tt.mistake) {
				t.Errorf("%s = [%q]: error %v, want %q", tt.list, tt.path, err, tt.mistake)
			}
		})
	}
}
