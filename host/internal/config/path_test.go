package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDefaultStateDir(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		uid  int
		want string // without the last element
	}{
		{"XDG", map[string]string{"XDG_STATE_HOME": "/s", "HOME": "/home/ada"}, 1000, "/s/toolhost"},
		{"XDG of root", map[string]string{"XDG_STATE_HOME": "/s"}, 0, "/s/toolhost"},
		{"home", map[string]string{"HOME": "/home/ada"}, 1000, "/home/ada/.local/state/toolhost"},
		{"relative XDG is not valid", map[string]string{"XDG_STATE_HOME": "s", "HOME": "/home/ada"}, 1000, "/home/ada/.local/state/toolhost"},
		{"root", map[string]string{"HOME": "/root"}, 0, "/var/lib/toolhost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one := defaultStateDir(lookup(tt.env), tt.uid, "/etc/toolhost")
			if got := filepath.Dir(one); got != tt.want {
				t.Errorf("defaultStateDir = %s, want it in %s", one, tt.want)
			}
			if two := defaultStateDir(lookup(tt.env), tt.uid, "/etc/other"); one == two {
				t.Errorf("two configurations share %s", one)
			}
		})
	}
	if got := defaultStateDir(lookup(nil), 1000, "/etc/toolhost"); got != "" {
		t.Errorf("defaultStateDir without a home = %s, want none", got)
	}
}

func TestStateDirApartFromWorkspace(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
	}{
		{"apart", "workspace = \"work\"\nstate_dir = \"state\"", ""},
		{"similar names", "workspace = \"work\"\nstate_dir = \"work2\"", ""},
		{"below the workspace", "workspace = \".\"\nstate_dir = \"state\"", "config.hcl:2: State directory in the workspace"},
		{"the workspace itself", "workspace = \"work\"\nstate_dir = \"work\"", "config.hcl:2: State directory in the workspace"},
		{"below it by ..", "workspace = \"work\"\nstate_dir = \"state/../work/x\"", "config.hcl:2: State directory in the workspace"},
		{"below it by a link", "workspace = \"work\"\nstate_dir = \"link/new/state\"", "config.hcl:2: State directory in the workspace"},
		{"around it", "workspace = \"work\"\nstate_dir = \".\"", "config.hcl:2: Workspace in the state directory"},
		{"the default below it", "workspace = \"/\"", "config.hcl:1: State directory in the workspace"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("work", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "config.hcl")
			if err := os.WriteFile(path, []byte(tt.text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(path, LoadOptions{LookupEnv: lookup(map[string]string{"HOME": "/home/ada"})})
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Load error = %v, want none", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Load error = %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestPluginPath(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name, path, want string // want "" is a mistake
	}{
		{"the name by default", ``, "bin/fs"},
		{"a name", `path = "files"`, "bin/files"},
		{"a folder", `path = "a/../b/files"`, "bin/b/files"},
		{"absolute", `path = "/opt/files"`, "/opt/files"},
		{"home", `path = pathexpand("~/files")`, "/home/ada/files"},
		{"out of it", `path = "../files"`, ""},
		{"out of it, hidden", `path = "a/../../files"`, ""},
		{"empty", `path = ""`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(dir, "config.hcl")
			text := "workspace = \".\"\nstate_dir = \"/var/tmp/toolhost-test-state\"\nplugin_dir = \"bin\"\nplugin \"fs\" {\ntier = \"read_only\"\n" + tt.path + "\n}\n"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := Load(path, LoadOptions{LookupEnv: lookup(map[string]string{"HOME": "/home/ada"})})
			if tt.want == "" {
				if err == nil || !strings.Contains(err.Error(), "config.hcl:6: ") {
					t.Errorf("Load with %s: error %v, want a mistake in line 6", tt.path, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := tt.want
			if !filepath.IsAbs(want) {
				want = filepath.Join(dir, want)
			}
			if got := cfg.Plugins[0].Supervisor.Path; got != want {
				t.Errorf("Load with %s: path %s, want %s", tt.path, got, want)
			}
		})
	}
}
