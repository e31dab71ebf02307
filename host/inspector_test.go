package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/internal/soak"
)

// peerProgram returns the paths of Node and of a program that `make peers` installs. In CI,
// both must exist.
func peerProgram(t *testing.T, name string) (node, program string) {
	t.Helper()
	tools, err := filepath.Abs("../internal/tools/mcp/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(tools, name)
	if _, err := os.Stat(program); err != nil {
		missing(t, name+", which make peers installs,")
	}
	return filepath.Join(tools, "node"), program
}

// missing leaves a test out, or fails in CI, where nothing may be missing.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what + " is missing")
	}
	t.Skip(what + " is not installed")
}

// inspected holds the parts of the MCP inspector's output that the test reads.
type inspected struct {
	Content           []inspectedContent `json:"content"`
	StructuredContent map[string]any     `json:"structuredContent"`
	IsError           bool               `json:"isError"`
	Tools             []inspectedTool    `json:"tools"`
}

type inspectedTool struct {
	Name string `json:"name"`
}

type inspectedContent struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	MIMEType string `json:"mimeType"`
	Data     []byte `json:"data"`
}

// Exit codes of the inspector.
const (
	inspectorPassed     = 0
	inspectorToolFailed = 5
)

// TestInspector uses the host with a client that is independent of our SDK, over both
// transports and in both eras of the protocol.
func TestInspector(t *testing.T) {
	t.Parallel()
	node, program := peerProgram(t, "mcp-inspector")
	h := serve(t, writeConfig(t, listening+fsBlock+conformanceBlock))
	alone := writeConfig(t, fsBlock+conformanceBlock)
	seed := soak.Seed(t)
	for n, transport := range []struct {
		name   string
		target []string
	}{
		{"stdio", []string{"--", filepath.Join(bin, "toolhost"), "mcp", "--config", alone}},
		{"http", []string{"--transport", "http", "--server-url", h.url + "/mcp", "--header", "Authorization: Bearer " + h.token}},
	} {
		for m, era := range []string{"legacy", "modern"} {
			t.Run(transport.name+" "+era, func(t *testing.T) {
				inspect(t, seed+uint64(2*n+m), func(args ...string) *exec.Cmd {
					args = slices.Concat([]string{program, "--cli", "--protocol-era", era}, args, transport.target)
					cmd := exec.CommandContext(t.Context(), node, args...)
					cmd.Env = append(os.Environ(), "HOME="+t.TempDir()) // the inspector keeps a catalog there
					return cmd
				})
			})
		}
	}
}

// inspect has the inspector list the tools and call one, another each day.
func inspect(t *testing.T, seed uint64, inspector func(args ...string) *exec.Cmd) {
	t.Helper()
	listed := runInspector(t, inspector("--method", "tools/list", "--strict"), inspectorPassed)
	if !slices.Contains(listed.Tools, inspectedTool{"read_file"}) {
		t.Errorf("tools/list has no read_file: %v", listed.Tools)
	}
	for i, tt := range []struct {
		args []string
		want inspected
		code int
	}{
		{
			[]string{"read_file", "--tool-arg", "path=hello.txt"},
			inspected{Content: []inspectedContent{{Type: "text", Text: "hello, world\n"}}},
			inspectorPassed,
		},
		{
			[]string{"test_image_content"},
			inspected{Content: []inspectedContent{{Type: "image", MIMEType: "image/png", Data: []byte("\x89PNG")}}},
			inspectorPassed,
		},
		{
			[]string{"test_structured_content"},
			inspected{Content: []inspectedContent{{Type: "text", Text: `{"city":"Vienna","degrees":21.5}`}}},
			inspectorPassed,
		},
		{
			[]string{"read_file", "--tool-arg", "path=none.txt"},
			inspected{
				Content: []inspectedContent{{Type: "text", Text: "Tool execution failed: File not found: none.txt\nHint: list the directory that it should be in; paths are relative to the workspace"}},
				IsError: true,
			},
			inspectorToolFailed,
		},
	} {
		if !soak.Today(seed, i, 4) {
			continue
		}
		got := runInspector(t, inspector(append([]string{"--method", "tools/call", "--tool-name"}, tt.args...)...), tt.code)
		for i, c := range got.Content {
			got.Content[i].Data = c.Data[:min(len(c.Data), 4)] // the encoder chooses the rest
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("call of %q (-want +got):\n%s", tt.args, diff)
		}
	}
}

// runInspector runs the inspector, which must exit with the given code, and returns its
// output.
func runInspector(t *testing.T, cmd *exec.Cmd, code int) inspected {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("the inspector exits with %v, want %d\n%s%s", err, code, out, &stderr)
	}
	var printed inspected
	if err := json.Unmarshal(out, &printed); err != nil {
		t.Fatalf("the inspector printed %s, which is not JSON: %v", out, err)
	}
	return printed
}
