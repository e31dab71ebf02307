package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// realServer is a published MCP server, and calls that it answers in the same way each time.
type realServer struct {
	name, program string
	arguments     []string
	calls         []realCall
}

type realCall struct {
	tool string
	args map[string]any
}

// realServers are those that CI talks to.
var realServers = []realServer{
	{"filesystem", "@modelcontextprotocol/server-filesystem/dist/index.js", []string{"."}, []realCall{
		{"read_text_file", map[string]any{"path": "hello.txt"}},
		{"write_file", map[string]any{"path": "new.txt", "content": "new"}},
		{"list_directory", map[string]any{"path": "."}},
		{"read_text_file", map[string]any{"path": "missing.txt"}},
		{"read_text_file", map[string]any{"path": "/etc/hostname"}},
	}},
	{"memory", "@modelcontextprotocol/server-memory/dist/index.js", nil, []realCall{
		{"create_entities", map[string]any{"entities": []any{map[string]any{"name": "Ada", "entityType": "person", "observations": []any{"uses Emacs"}}}}},
		{"search_nodes", map[string]any{"query": "emacs"}},
	}},
	{"everything", "@modelcontextprotocol/server-everything/dist/index.js", nil, []realCall{
		{"echo", map[string]any{"message": "hello"}},
		{"get-sum", map[string]any{"a": 2, "b": 40}},
		{"get-tiny-image", map[string]any{}},
		{"get-structured-content", map[string]any{"location": "Chicago"}},
		{"get-resource-links", map[string]any{"count": 2}},
		{"trigger-long-running-operation", map[string]any{"duration": 0.2, "steps": 2}},
	}},
}

// TestRealMCPServers compares published servers through the bridge, each in its sandbox and without a
// network, with the same servers alone.
func TestRealMCPServers(t *testing.T) {
	t.Parallel()
	for _, server := range realServers {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			testRealServer(t, "../internal/tools/mcp/node_modules", server)
		})
	}
}

func testRealServer(t *testing.T, modules string, server realServer) {
	t.Helper()
	node, _ := peerProgram(t, "node")
	node, err := filepath.EvalSymlinks(node)
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join(modules, server.program))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); errors.Is(err, os.ErrNotExist) {
		missing(t, server.program)
	}
	alone := exec.CommandContext(t.Context(), node, append([]string{script}, server.arguments...)...)
	alone.Dir = t.TempDir()
	alone.Env = append(os.Environ(), "HOME="+alone.Dir, "MEMORY_FILE_PATH="+filepath.Join(alone.Dir, "memory.json"))
	if err := os.WriteFile(filepath.Join(alone.Dir, "hello.txt"), []byte("hello, world\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bare := connectTo(t, alone, "2025-11-25", nil)

	config := writeConfig(t, "policy { mode = \"autonomous\" }\nserver { listen = \"\" }\n")
	add := append([]string{"mcp", "add", "--yes", "--name", server.name, "--workspace", "rw", "--ask=false", "--env", "MEMORY_FILE_PATH=" + filepath.Join(filepath.Dir(config), "ws/memory.json"), "--", node, script}, server.arguments...)
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), append([]string{"--config", config}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("toolhost %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run(add...)
	run("plugins", "accept", server.name, "--yes")
	bridged := connectTo(t, toolhost(context.WithoutCancel(t.Context()), config, "mcp"), "2025-11-25", nil)

	offered := namesOfTools(t, bridged)
	for name := range namesOfTools(t, bare) {
		if name != "get-roots-list" && !offered[bridgedName(server.name, name)] { // that one is for clients that have roots
			t.Errorf("the host does not offer %s", name)
		}
	}
	for _, call := range server.calls {
		want, err := bare.CallTool(t.Context(), &mcp.CallToolParams{Name: call.tool, Arguments: call.args})
		if err != nil {
			t.Fatalf("%s alone: %v", call.tool, err)
		}
		got, err := bridged.CallTool(t.Context(), &mcp.CallToolParams{Name: bridgedName(server.name, call.tool), Arguments: call.args})
		if err != nil {
			t.Fatalf("%s: %v", call.tool, err)
		}
		workspace := filepath.Join(filepath.Dir(config), "ws")
		if diff := cmp.Diff(shape(t, want, alone.Dir), shape(t, got, workspace)); diff != "" {
			t.Errorf("%s(%v) (-alone +bridged):\n%s", call.tool, call.args, diff)
		}
	}
}

// bridgedName returns the name of a server's tool in the host.
func bridgedName(server, tool string) string {
	return strings.ToLower(strings.ReplaceAll(server+"_"+tool, "-", "_"))
}

func namesOfTools(t *testing.T, s *session) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names[tool.Name] = true
	}
	return names
}

// part is what a caller sees of one part of a result.
type part struct{ Kind, Text string }

// shape returns the parts of a result, with the directory that the server works in named DIR.
func shape(t *testing.T, r *mcp.CallToolResult, dir string) (parts []part) {
	t.Helper()
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok && strings.HasPrefix(text.Text, "Tool execution failed: the tool of the MCP server") {
			continue // the host says what the text of the server does not
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Type, Text, Data, URI string
			Resource              struct{ URI, Text string }
		}
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		body := strings.Join([]string{v.Text, v.Data, v.URI, v.Resource.URI, v.Resource.Text}, "|")
		parts = append(parts, part{v.Type, strings.ReplaceAll(body, dir, "DIR")})
	}
	if r.IsError {
		parts = append(parts, part{Kind: "error"})
	}
	return parts
}
