package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inspector returns the command that runs the MCP inspector against the host.
// It is a program of its own, in another language: `make peers` installs it.
func inspector(t *testing.T, config string, args ...string) *exec.Cmd {
	t.Helper()
	tools, err := filepath.Abs("../internal/tools/mcp/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(tools, "mcp-inspector")); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("the MCP inspector is missing: %v", err)
		}
		t.Skip("the MCP inspector is not installed; make peers does it")
	}
	args = slices.Concat(
		[]string{filepath.Join(tools, "mcp-inspector"), "--cli"}, args,
		[]string{"--", filepath.Join(bin, "toolhost"), "mcp", "--config", config},
	)
	cmd := exec.CommandContext(t.Context(), filepath.Join(tools, "node"), args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir()) // it keeps a catalog there
	return cmd
}

// TestInspectorListsAndCalls drives the host with a client that is not ours
// nor of our SDK.
func TestInspectorListsAndCalls(t *testing.T) {
	config := writeConfig(t, fsBlock)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--method", "tools/list", "--strict"}, "read_file"},
		{[]string{"--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path=hello.txt"}, "hello, world"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			cmd := inspector(t, config, tt.args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s%s", err, out, &stderr)
			}
			if !json.Valid(out) || !bytes.Contains(out, []byte(tt.want)) {
				t.Errorf("the inspector printed %s\nwant JSON with %q", out, tt.want)
			}
		})
	}
}
