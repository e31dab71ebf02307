package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPackageOf(t *testing.T) {
	for _, tt := range []struct {
		command   []string
		from      download
		arguments []string
		downloads bool
	}{
		{[]string{"npx", "-y", "@scope/server@1.2.3", "--root", "."}, download{source: "npm:@scope/server@1.2.3"}, []string{"--root", "."}, true},
		{[]string{"/usr/bin/npx", "--yes", "server"}, download{source: "npm:server"}, []string{}, true},
		{[]string{"npx", "-p", "package@2", "program", "a"}, download{"npm:package@2", "program"}, []string{"a"}, true},
		{[]string{"npx", "--package=package", "program"}, download{"npm:package", "program"}, []string{}, true},
		{[]string{"npx"}, download{}, nil, true},
		{[]string{"uvx", "server"}, download{}, nil, true},
		{[]string{"docker", "run", "-i", "x"}, download{}, nil, true},
		{[]string{"node", "a.js"}, download{}, nil, false},
		{nil, download{}, nil, false},
	} {
		from, arguments, downloads := packageOf(tt.command)
		if from != tt.from || downloads != tt.downloads || cmp.Diff(tt.arguments, arguments) != "" {
			t.Errorf("packageOf(%q) = %+v, %q, %t, want %+v, %q, %t", tt.command, from, arguments, downloads, tt.from, tt.arguments, tt.downloads)
		}
	}
}

// TestNamesOfServers: a block gets a name that a person would give it, and tools a short prefix.
func TestNamesOfServers(t *testing.T) {
	for text, want := range map[string]string{
		"server-filesystem": "filesystem", "mcp-server-git": "git", "github-mcp": "github", "Notion": "notion", "my notes!": "my-notes",
		"mcp": "mcp", "": "server", "...": "server", "日本": "server", "1password": "server", "notion-mcp-server": "notion", "a-very-long-name-of-a-server-indeed": "a-very-long-name-of-a-in",
	} {
		if got := orName("", text); got != want {
			t.Errorf("orName(%q) = %q, want %q", text, got, want)
		}
	}
	for name, want := range map[string]string{"@playwright/mcp": "playwright", "@notionhq/notion-mcp-server": "notion-mcp-server", "tavily-mcp": "tavily-mcp"} {
		if got := titleOf(name); got != want {
			t.Errorf("titleOf(%q) = %q, want %q", name, got, want)
		}
	}
	dir := t.TempDir()
	project := filepath.Join(dir, "notes", "build")
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(dir, "notes/package.json"), filepath.Join(project, "index.js")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for want, command := range map[string][]string{
		"weather": {"python3", "-m", "weather.py"}, "notes": {"node", "--flag", filepath.Join(project, "index.js")}, "serve": {"/opt/serve", "--x=y"},
	} {
		if got := nameOf(command); got != want {
			t.Errorf("nameOf(%q) = %q, want %q", command, got, want)
		}
	}
}

// TestProgramOf keeps the name by which a program finds its own files.
func TestProgramOf(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"real/python3.11", "real/box", "venv/bin/x", "venv/pyvenv.cfg"} {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"real/python3": "python3.11", "real/ls": "box", "venv/bin/python3": "../../real/python3.11"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"real/python3": "real/python3.11", "real/ls": "real/ls", "venv/bin/python3": "venv/bin/python3", "real/box": "real/box"} {
		got, err := programOf("./"+name, dir)
		if err != nil || got != filepath.Join(dir, want) {
			t.Errorf("programOf(%s) = %s, %v, want %s", name, got, err, want)
		}
	}
	if _, err := programOf("no-such-program", dir); err == nil {
		t.Error("a program that does not exist is found")
	}
}
