package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// revisions has one revision of each era of the protocol, and the oldest that clients still
// use.
var revisions = []string{"2026-07-28", "2025-11-25", "2025-06-18"}

// writeConfig writes a configuration that enables plugins, and a workspace with one file. It
// returns the configuration's path.
func writeConfig(t *testing.T, blocks string) string {
	t.Helper()
	dir := t.TempDir()
	workspace := filepath.Join(dir, "ws")
	if err := os.Mkdir(workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(workspace, "hello.txt"): "hello, world\n",
		filepath.Join(dir, "config.hcl"):      settingsFor(blocks),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := seed(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "config.hcl")
}

// settingsFor puts settings for a workspace ws, a state directory and the plugins under test
// before blocks.
func settingsFor(blocks string) string {
	return `
workspace  = "ws"
state_dir  = "state"
plugin_dir = "` + filepath.Join(bin, "plugins") + "\"\n" + blocks
}

const fsBlock = `
plugin "fs" {
  path   = "fs"
  tier   = "read_only"
  claims = "trust"
}
`

// toolhost returns the command that runs the real binary.
func toolhost(ctx context.Context, config string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "toolhost"), append(args, "--config", config)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// session is an MCP client connected to its own host over standard input and output.
type session struct {
	*mcp.ClientSession
}

// connect starts a host and connects a client that uses the given revision.
func connect(t *testing.T, config, revision string, opts *mcp.ClientOptions) *session {
	t.Helper()
	return connectTo(t, toolhost(context.WithoutCancel(t.Context()), config, "mcp"), revision, opts)
}

// connectTo runs a command that serves MCP and connects to it.
func connectTo(t *testing.T, cmd *exec.Cmd, revision string, opts *mcp.ClientOptions) *session {
	t.Helper()
	return connectAs(t, cmd, revision, "test", opts)
}

// connectAs is connectTo for a client with a given name.
func connectAs(t *testing.T, cmd *exec.Cmd, revision, name string, opts *mcp.ClientOptions) *session {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, opts)
	s, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatalf("connect with revision %s: %v", revision, err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the host may have been killed
	return &session{s}
}

// call calls a tool and returns its text, and whether it failed.
func (s *session) call(ctx context.Context, t *testing.T, name string, args map[string]any) (text string, failed bool) {
	t.Helper()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Errorf("%s(%v): %v", name, args, err)
		return "", true
	}
	return textOf(r), r.IsError
}

// must calls a tool that must succeed.
func (s *session) must(t *testing.T, name string, args map[string]any) string {
	t.Helper()
	text, failed := s.call(t.Context(), t, name, args)
	if failed {
		t.Fatalf("%s(%v) failed: %s", name, args, text)
	}
	return text
}

// codeOf returns the code of the error in a result, or "".
func codeOf(r *mcp.CallToolResult) string {
	failure, ok := r.Meta["toolhost/error"].(map[string]any)
	if !ok {
		return ""
	}
	code, _ := failure["code"].(string)
	return code
}

// textOf returns the text of a result that a model reads.
func textOf(r *mcp.CallToolResult) string {
	var parts []string
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			parts = append(parts, text.Text)
		}
	}
	return strings.Join(parts, "\n")
}
