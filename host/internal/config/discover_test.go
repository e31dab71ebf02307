package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindByWorkspace(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	userDir := filepath.Join(home, ".config", "toolhost")
	project, inner := filepath.Join(work, "project"), filepath.Join(work, "project", "inner")
	for _, dir := range []string{userDir, filepath.Join(inner, "deep")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(project, filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(userDir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.hcl", "workspace = \""+filepath.Join(work, "link")+"\"\nserver { listen = \"127.0.0.1:1\" }\nplugin \"x\" {\n") // not closed
	write("b.hcl", "workspace = \""+inner+"\"")
	write("c.hcl", "workspace = env(\"HOME\")")
	write("d.hcl", "= =")
	write("e.hcl", "workspace = 5")
	write("gone.hcl", "workspace = \"/nowhere/gone\"")
	env := map[string]string{"HOME": home}
	for _, tt := range []struct{ in, want string }{
		{project, "a.hcl"},
		{filepath.Join(work, "link"), "a.hcl"},
		{inner, "b.hcl"},
		{filepath.Join(inner, "deep"), "b.hcl"},
		{work, ""},
	} {
		t.Chdir(tt.in)
		want := ""
		if tt.want != "" {
			want = filepath.Join(userDir, tt.want)
		}
		if got, err := find("", lookup(env), t.TempDir()); got != want || (err != nil) != (want == "") {
			t.Errorf("find() in %s = %q, %v, want %q", tt.in, got, err, want)
		}
	}
	t.Chdir(project)
	touch(t, "config.hcl")
	if got, err := find("", lookup(env), t.TempDir()); got != filepath.Join(userDir, "a.hcl") {
		t.Errorf("find() beside a config.hcl of the workspace = %q, %v, want the user's own", got, err)
	}
	write("f.hcl", "workspace = \""+project+"\"")
	if got, err := find("", lookup(env), t.TempDir()); err == nil || !strings.Contains(err.Error(), "a.hcl and ") || !strings.Contains(err.Error(), "f.hcl both have the workspace") {
		t.Errorf("find() of two = %q, %v, want an error that names both", got, err)
	}
	var why []string
	for _, left := range AllLeftOut(lookup(env)) {
		why = append(why, left.Why.Error())
	}
	if len(why) != 4 || !strings.Contains(why[0], "c.hcl is left out, because its workspace is not known: expected a text without functions and variables in line 1") ||
		!strings.Contains(why[1], "d.hcl:1,1-2: ") || !strings.Contains(why[2], "e.hcl is left out") ||
		!strings.Contains(why[3], "gone.hcl is left out, because its workspace /nowhere/gone does not exist") {
		t.Errorf("AllLeftOut() = %q, want c.hcl, d.hcl, e.hcl and gone.hcl with the reasons", why)
	}
	if got := AllLeftOut(lookup(nil)); got != nil {
		t.Errorf("AllLeftOut() without a home = %q", got)
	}
	if got := Outlines(userDir); len(got) != 4 || got[0].Listen != "127.0.0.1:1" {
		t.Errorf("Outlines() = %+v, want four, the first with its address", got)
	}
	if got := Outlines(filepath.Join(home, "none")); got != nil {
		t.Errorf("Outlines() of no directory = %v", got)
	}
}

func TestUserDir(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"XDG_CONFIG_HOME": "/c", "HOME": "/h"}, "/c/toolhost"},
		{map[string]string{"XDG_CONFIG_HOME": "c", "HOME": "/h"}, "/h/.config/toolhost"},
		{map[string]string{"HOME": "h"}, ""},
	} {
		if got := UserDir(lookup(tt.env)); got != tt.want {
			t.Errorf("UserDir(%v) = %q, want %q", tt.env, got, tt.want)
		}
	}
}

func TestInstalledPlugins(t *testing.T) {
	root := t.TempDir()
	program := filepath.Join(root, "bin", "toolhost")
	want := func(want string) {
		t.Helper()
		if got := InstalledPlugins(program); got != want {
			t.Errorf("InstalledPlugins() = %q, want %q", got, want)
		}
	}
	want("")
	for _, dir := range []string{filepath.Join(root, "bin", "plugins"), filepath.Join(root, "lib", "toolhost", "plugins")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		want(dir)
	}
	program = ""
	want("")
}
