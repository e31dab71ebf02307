package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, set := env[name]
		return value, set
	}
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	system := t.TempDir()
	t.Chdir(t.TempDir())
	try := func(flag string, env map[string]string, want string) {
		t.Helper()
		if got, err := find(flag, lookup(env), system); err != nil || got != want {
			t.Errorf("find(%q, %v) = %q, %v, want %q", flag, env, got, err, want)
		}
	}

	_, err := find("", lookup(nil), system)
	if err == nil {
		t.Fatal("find found a configuration where there is none")
	}
	for _, place := range []string{"--config", "TOOLHOST_CONFIG", "./config.hcl", system + "/*.hcl"} {
		if !strings.Contains(err.Error(), place) {
			t.Errorf("error %q does not name %s", err, place)
		}
	}

	touch(t, filepath.Join(system, "b.hcl"))
	try("", nil, system)
	touch(t, "config.hcl")
	try("", nil, "config.hcl")
	try("", map[string]string{"TOOLHOST_CONFIG": "elsewhere"}, "elsewhere")
	try("flag.hcl", map[string]string{"TOOLHOST_CONFIG": "elsewhere"}, "flag.hcl")
}

func TestReadSource(t *testing.T) {
	dir := t.TempDir()
	if _, err := readSource(filepath.Join(dir, "none.hcl")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "--config") {
		t.Errorf("readSource of nothing: error %v, want one that says what to do", err)
	}
	if _, err := readSource(dir); err == nil || !strings.Contains(err.Error(), "no *.hcl file") {
		t.Errorf("readSource of an empty directory: error %v, want one that says so", err)
	}
	for _, name := range []string{"b.hcl", "a.hcl", ".c.hcl", "d.txt"} {
		touch(t, filepath.Join(dir, name))
	}
	if err := os.Mkdir(filepath.Join(dir, "e.hcl"), 0o700); err != nil {
		t.Fatal(err)
	}
	src, err := readSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(src.names(), " "), filepath.Join(dir, "a.hcl")+" "+filepath.Join(dir, "b.hcl"); got != want {
		t.Errorf("files = %s, want %s", got, want)
	}
	if err := os.Truncate(filepath.Join(dir, "a.hcl"), maxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := readSource(dir); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("readSource of a large file: error %v, want one that says so", err)
	}
}
