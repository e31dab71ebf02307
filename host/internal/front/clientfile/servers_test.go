package clientfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestServers reads the lists of each client where the client itself keeps them.
func TestServers(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("CODEX_HOME", "")
	for path, text := range map[string]string{
		home + "/.claude.json": `{"theme": "dark", "mcpServers": {"both": {"command": "user"}, "mine": {"type": "http", "url": "https://a.example/mcp", "headers": {"X": "y"}}},
			"projects": {"` + project + `": {"mcpServers": {"local": {"command": "npx", "args": ["-y", "pkg@1"], "env": {"TOKEN": "t"}}}}, "/other": {"mcpServers": {"no": {"command": "x"}}}}}`,
		project + "/.mcp.json":        `{"mcpServers": {"both": {"command": "team", "cwd": "/srv"}}} // a comment`,
		project + "/.cursor/mcp.json": `{"mcpServers": {"odd": {"args": ["x"]}, "num": {"command": "a", "env": {"PORT": 1}}}}`,
		project + "/.vscode/mcp.json": `{"inputs": [], "servers": {"old": {"type": "sse", "url": "https://b.example/sse"}}}`,
		home + "/.codex/config.toml":  "[mcp_servers.one]\ncommand = \"node\"\nargs = [\"a.js\"]\nenabled = false\n[mcp_servers.two]\nurl = \"https://c.example\"\nbearer_token_env_var = \"C_TOKEN\"\n",
		home + "/desktop.json":        `{"mcpServers": {"a": {"command": "toolhost", "args": ["mcp"]}}}`,
		home + "/none.json":           `{"a": 1}`,
		home + "/broken.json":         `{"a": `,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	place := Place{Dir: project, Workspace: project}
	claude := home + "/.claude.json"
	for client, want := range map[string][]Listed{
		"claude-code": {
			{Name: "local", File: claude, Command: "npx", Args: []string{"-y", "pkg@1"}, Env: map[string]string{"TOKEN": "t"}},
			{Name: "both", File: project + "/.mcp.json", Command: "team", Dir: "/srv"},
			{Name: "mine", File: claude, URL: "https://a.example/mcp", Headers: map[string]string{"X": "y"}},
		},
		"cursor": {
			{Name: "num", File: project + "/.cursor/mcp.json", Wrong: "its entry is not understood: json: cannot unmarshal number into Go struct field serverEntry.env of type string"},
			{Name: "odd", File: project + "/.cursor/mcp.json", Args: []string{"x"}, Wrong: "it has neither a command nor a URL"},
		},
		"vscode": {{Name: "old", File: project + "/.vscode/mcp.json", URL: "https://b.example/sse", Wrong: "it speaks the old HTTP+SSE transport; ask its maker for a streamable HTTP address"}},
		"codex": {
			{Name: "one", File: home + "/.codex/config.toml", Command: "node", Args: []string{"a.js"}, Disabled: true},
			{Name: "two", File: home + "/.codex/config.toml", URL: "https://c.example", Headers: map[string]string{"Authorization": "Bearer ${C_TOKEN}"}},
		},
	} {
		got, _, err := Servers(client, place)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("Servers(%s) = %v (-want +got):\n%s", client, err, diff)
		}
	}
	if got, err := ServersIn(home + "/desktop.json"); err != nil || len(got) != 1 || !got[0].IsHost("") {
		t.Errorf("ServersIn = %+v, %v, want a toolhost", got, err)
	}
	for file, want := range map[string]string{"none.json": "has no list of MCP servers", "broken.json": "broken.json: ", "absent.json": "does not exist"} {
		if _, err := ServersIn(filepath.Join(home, file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ServersIn(%s) = %v, want an error with %q", file, err, want)
		}
	}
	if got, files, err := Servers("codex", Place{Dir: "/", Workspace: "/"}); err != nil || len(got) != 2 || len(files) != 1 {
		t.Errorf("Servers(codex) elsewhere = %v, %v, %v", got, files, err)
	}
}
