package initial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/config"
)

func TestText(t *testing.T) {
	workspace := filepath.Join(t.TempDir(), "a ${b} %{c} \"d\"\\\n# e")
	plugins := filepath.Join(t.TempDir(), "plug ins")
	for _, dir := range []string{workspace, plugins} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	all := []Program{{"git", "/usr/bin/git"}, {"go", "/home/ada/sdk/go/bin/go"}, {"node", "/home/ada/.nvm/v22/bin/node"}, {"python3", "/usr/bin/python3"}}
	const usual = `{ path = "/usr/local/go/bin:`
	for _, tt := range []struct {
		name       string
		opts       Options
		want, lack []string
	}{
		{
			"everything",
			Options{Workspace: workspace, Listen: "127.0.0.1:7799", Programs: all, Git: usualGit},
			[]string{`listen = "127.0.0.1:7799"`, `{ path = "/home/ada/sdk/go/bin:/home/ada/.nvm/v22/bin:/usr/local/go/bin:`, `"tmp", "/home/ada/.nvm/v22", "/home/ada/sdk/go"]`, `plugin "git"`, `["/usr/bin/git", `},
			[]string{"plugin_dir", `workspace = "."`, "7780"},
		},
		{"no git", Options{Workspace: workspace, Listen: "127.0.0.1:7780"}, []string{`plugin "shell"`, `plugin "memory"`, usual}, []string{`plugin "git"`, "# Git repositories"}},
		{
			"a program of the workspace",
			Options{Workspace: workspace, Listen: "127.0.0.1:7780", Programs: []Program{{"python3", workspace + "/venv/bin/python3"}}},
			[]string{usual, `"home", "tmp"]`},
			[]string{"venv"},
		},
		{
			"git elsewhere",
			Options{Workspace: workspace, Listen: "127.0.0.1:7780", Git: `/opt/a "git"/bin/git`},
			[]string{
				`  config { program = "/opt/a \"git\"/bin/git" }`,
				`["/opt/a \"git\"/bin/git", "/opt/a \"git\"/lib/git-core", "/opt/a \"git\"/libexec/git-core", "/bin/sh", "/usr/bin/ssh"]`,
			},
			[]string{"/usr/bin/git"},
		},
		{"plugins elsewhere", Options{Workspace: workspace, PluginDir: plugins, Listen: "127.0.0.1:7780", Programs: all[:1], Git: usualGit}, []string{"plugin_dir = " + quoted(plugins), usual}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, err := Text(tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("the text lacks %s:\n%s", want, text)
				}
			}
			for _, lack := range tt.lack {
				if strings.Contains(text, lack) {
					t.Errorf("the text has %s:\n%s", lack, text)
				}
			}
			path := filepath.Join(t.TempDir(), "config.hcl")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			state := t.TempDir()
			env := func(name string) (string, bool) { return state, name == "XDG_STATE_HOME" }
			cfg, err := config.Load(path, config.LoadOptions{LookupEnv: env})
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Workspace.Shared != workspace || cfg.Listen != tt.opts.Listen || tt.opts.PluginDir != "" && cfg.PluginDir != plugins {
				t.Errorf("workspace %q, listen %q, plugin_dir %q", cfg.Workspace.Shared, cfg.Listen, cfg.PluginDir)
			}
		})
	}
}

func TestFindPrograms(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"sdk/bin/go", "shims/python3", "dispatcher"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"go": "sdk/bin/go", "node": "dispatcher"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	found := FindPrograms(func(name string) (string, error) {
		switch name {
		case "git":
			return "", os.ErrNotExist
		case "python3":
			return filepath.Join(dir, "shims/python3"), nil
		}
		return filepath.Join(dir, name), nil
	})
	want := []Program{{"go", filepath.Join(dir, "sdk/bin/go")}, {"node", filepath.Join(dir, "node")}, {"python3", filepath.Join(dir, "shims/python3")}}
	if len(found) != len(want) {
		t.Fatalf("found %v, want %v", found, want)
	}
	for i := range want {
		if found[i] != want[i] {
			t.Errorf("found %v, want %v", found[i], want[i])
		}
	}
}

func TestFindGit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		programs []Program
		usual    bool
		want     string
	}{
		{"none", []Program{{"go", "/opt/go/bin/go"}}, false, ""},
		{"the usual one", []Program{{"git", "/opt/git/bin/git"}}, true, usualGit},
		{"elsewhere", []Program{{"go", "/opt/go/bin/go"}, {"git", "/opt/git/bin/git"}}, false, "/opt/git/bin/git"},
		{"in the workspace", []Program{{"git", "/ws/bin/git"}}, false, ""},
	} {
		got := FindGit(tt.programs, "/ws", func(name string) (string, error) {
			if name != usualGit || !tt.usual {
				return "", os.ErrNotExist
			}
			return name, nil
		})
		if got != tt.want {
			t.Errorf("%s: FindGit() = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestExecutable(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	opts := Options{Workspace: "/ws", Programs: []Program{
		{"git", "/usr/bin/git"}, {"go", "/opt/sdk/bin/go"}, {"node", "/opt/sdk/bin/node"}, {"python3", "/ws/venv/bin/python3"}, {"python3", "/home/ada/bin/python3"},
	}}
	if got, want := strings.Join(opts.Executable(), " "), "/home/ada/bin/python3 /opt/sdk"; got != want {
		t.Errorf("Executable() = %s, want %s", got, want)
	}
}

func TestPath(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ workspace, want string }{
		{"/home/ada/project", "project.hcl"},
		{"/srv/project", "project-2.hcl"},
		{"/opt/project", "project-3.hcl"},
		{"/home/ada/.dotfiles", "dotfiles.hcl"},
		{"/home/ada/a\nb", "a?b.hcl"},
		{"/...", "config.hcl"},
		{"/" + strings.Repeat("a", 255), strings.Repeat("a", 240) + ".hcl"},
		{"/srv/" + strings.Repeat("a", 252), strings.Repeat("a", 240) + "-2.hcl"},
		{"/b" + strings.Repeat("ä", 127), "b" + strings.Repeat("ä", 119) + ".hcl"},
	} {
		path, err := Path(dir, tt.workspace)
		if err != nil || path != filepath.Join(dir, tt.want) {
			t.Errorf("Path(%q) = %q, %v, want %s", tt.workspace, path, err, tt.want)
			continue
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := Path(filepath.Join(dir, "project.hcl"), "/x"); err == nil {
		t.Errorf("Path in a file = %q, want an error", path)
	}
}

func TestInstalled(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	for path, want := range map[string]string{
		"/usr/bin/git": "", "/home/ada/sdk/go/bin/go": "/home/ada/sdk/go", "/home/ada/.pyenv/shims/python3": "/home/ada/.pyenv",
		"/home/ada/bin/node": "/home/ada/bin/node", "/home/ada/.local/bin/python3": "/home/ada/.local/bin/python3",
		"/home/bin/go": "/home/bin/go", "/x/git": "/x/git", "/opt/tools/git": "/opt/tools/git",
	} {
		if got := (Program{Path: path}).installed(); got != want {
			t.Errorf("installed(%s) = %q, want %q", path, got, want)
		}
	}
}
