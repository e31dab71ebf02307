package clientfile_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/toolhost/toolhost/host/internal/front/clientfile"
)

// TestTargets writes the file of each client in a place with spaces and other letters, and reads
// it as the client does.
func TestTargets(t *testing.T) {
	home, project := filepath.Join(t.TempDir(), "h ü"), filepath.Join(t.TempDir(), "p é")
	t.Setenv("HOME", home)
	t.Setenv("CODEX_HOME", "")
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	want := map[string]struct {
		file, group string
		shared      bool
	}{
		"claude-code": {filepath.Join(home, ".claude.json"), "mcpServers", false},
		"cursor":      {filepath.Join(project, ".cursor", "mcp.json"), "mcpServers", true},
		"vscode":      {filepath.Join(project, ".vscode", "mcp.json"), "servers", true},
		"codex":       {filepath.Join(home, ".codex", "config.toml"), "mcp_servers", false},
	}
	for _, c := range clientfile.Clients() {
		if c.Target == nil {
			continue // the client has no file
		}
		target, err := c.Target("own", clientfile.Server{Command: "/b ä", Args: []string{"mcp"}}, clientfile.Place{Dir: project, Workspace: project})
		w := want[c.Name]
		delete(want, c.Name)
		if err != nil || target.File != w.file || target.Shared != w.shared || target.Mode != 0o600 {
			t.Errorf("%s: %+v, %v; want %+v", c.Name, target, err, w)
			continue
		}
		write(t, target)
		text, err := os.ReadFile(target.File)
		if err != nil {
			t.Fatal(err)
		}
		read := json.Unmarshal
		if filepath.Ext(target.File) == ".toml" {
			read = toml.Unmarshal
		}
		v := map[string]any{}
		if err := read(text, &v); err != nil {
			t.Errorf("%s: %v in\n%s", c.Name, err, text)
		}
		if c.Name == "claude-code" {
			v = v["projects"].(map[string]any)[project].(map[string]any)
		}
		if entry := v[w.group].(map[string]any)["own"].(map[string]any); entry["command"] != "/b ä" {
			t.Errorf("%s reads %v", c.Name, entry)
		}
	}
	if len(want) > 0 {
		t.Errorf("no such clients: %v", want)
	}
}

// TestManaged makes this host the only server, for every account.
func TestManaged(t *testing.T) {
	root := t.TempDir()
	target, err := clientfile.Managed(root).Target("own", clientfile.Server{Command: "/b"}, clientfile.Place{})
	if err != nil || !strings.HasPrefix(target.File, root) || filepath.Base(target.File) != "managed-mcp.json" {
		t.Fatalf("Target = %+v, %v", target, err)
	}
	dir := filepath.Dir(target.File)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(target.File, []byte(`{"mcpServers": {"other": {}}}`), 0o644)); err != nil {
		t.Fatal(err)
	}
	write(t, target)
	text, err := os.ReadFile(target.File)
	const want = `{"mcpServers":{"own":{"type":"stdio","command":"/b"}}}`
	if got := strings.Join(strings.Fields(string(text)), ""); err != nil || got != want {
		t.Errorf("the file has %s, %v; want %s", got, err, want)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	write(t, target)
	for path, want := range map[string]os.FileMode{target.File: 0o644, dir: 0o755} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s is %v, %v; want %v", path, info, err, want)
		}
	}
}

func write(t *testing.T, target clientfile.Target) {
	t.Helper()
	change, err := clientfile.Plan(target.File, target.Mode, target.Edit)
	if err == nil {
		_, err = change.Write()
	}
	if err != nil {
		t.Fatalf("write %s: %v", target.File, err)
	}
}

// TestProject finds the directory under which Claude Code keeps a project.
func TestProject(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"repo/.git/worktrees/wt/commondir":     "../..\n",
		"repo/deep/file":                       "",
		"wt/.git":                              "gitdir: " + root + "/repo/.git/worktrees/wt\n",
		"repo/module/.git":                     "gitdir: ../.git/modules/module\n",
		"repo/.git/modules/module/HEAD":        "",
		"bare.git/worktrees/of-bare/commondir": "../..\n",
		"of-bare/deep/file":                    "",
		"of-bare/.git":                         "gitdir: ../bare.git/worktrees/of-bare\n",
		"broken/.git":                          "gitdir: /nowhere\n",
		"ws/deep/file":                         "",
		"other/file":                           "",
	} {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", root)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	for dir, want := range map[string]string{
		"repo": "repo", "repo/deep": "repo", "wt": "repo", "repo/module": "repo/module", "of-bare/deep": "bare.git", "broken": "broken",
		"ws": "ws", "ws/deep": "ws", "other": "other",
	} {
		place := clientfile.Place{Dir: filepath.Join(root, dir), Workspace: filepath.Join(root, "ws")}
		target, err := clientfile.Clients()[0].Target("own", clientfile.Server{Command: "/b"}, place)
		if err != nil || !strings.HasPrefix(target.Next, "start claude in "+filepath.Join(root, want)+";") {
			t.Errorf("in %s: %q, %v; want %s", dir, target.Next, err, want)
		}
	}
}
