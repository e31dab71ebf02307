package clientfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRemove takes servers out of a list and leaves all else as it was.
func TestRemove(t *testing.T) {
	for _, tt := range []struct{ name, old, remove, want string }{
		{"the only one", `{"mcpServers": {"a": {"command": "x"}}, "b": 1}`, "a", `{"mcpServers": {}, "b": 1}`},
		{"the first", "{\"mcpServers\": {\n  \"a\": {\"command\": \"x\"},\n  \"b\": {\"command\": \"y\"}\n}}", "a", "{\"mcpServers\": {\n  \"b\": {\"command\": \"y\"}\n}}"},
		{"the last", "{\"mcpServers\": {\n  \"a\": {\"command\": \"x\"}, // stays\n  \"b\": {\"command\": \"y\"}\n}} // end", "b", "{\"mcpServers\": {\n  \"a\": {\"command\": \"x\"} // stays\n}} // end"},
		{"the middle", `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "c": {"command": "z"},}}`, "b", `{"mcpServers": {"a": {"command": "x"}, "c": {"command": "z"},}}`},
		{"several", `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "c": {"command": "z"}}}`, "a,b", `{"mcpServers": {"c": {"command": "z"}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home, project := t.TempDir(), t.TempDir()
			t.Setenv("HOME", home)
			file := filepath.Join(project, ".cursor/mcp.json")
			if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(tt.old), 0o600); err != nil {
				t.Fatal(err)
			}
			changes, err := Remove("cursor", Place{Dir: project, Workspace: project}, strings.Split(tt.remove, ","))
			if err != nil || len(changes) != 1 {
				t.Fatalf("Remove = %v, %v", changes, err)
			}
			if _, err := changes[0].Write(); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != tt.want {
				t.Errorf("the file is\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CODEX_HOME", home)
	file := filepath.Join(home, "config.toml")
	if err := os.WriteFile(file, []byte("model = \"x\"\n\n[mcp_servers.a]\ncommand = \"a\"\n[mcp_servers.a.env]\nX = \"1\"\n\n# of b\n[mcp_servers.b]\ncommand = \"b\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	changes, err := Remove("codex", Place{Dir: home, Workspace: home}, []string{"a"})
	if err != nil || len(changes) != 1 {
		t.Fatalf("Remove = %v, %v", changes, err)
	}
	if want := "model = \"x\"\n\n\n\n# of b\n[mcp_servers.b]\ncommand = \"b\"\n"; string(changes[0].new) != want {
		t.Errorf("the file becomes %q, want %q", changes[0].new, want)
	}
	if changes, err := Remove("codex", Place{Dir: home, Workspace: home}, []string{"c"}); err != nil || len(changes) > 0 {
		t.Errorf("Remove of an unknown server = %v, %v", changes, err)
	}
}
