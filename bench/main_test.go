package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bareServer in the environment makes this binary the program that the host is
// compared with: a server of the MCP SDK alone, with the tool in its process.
const bareServer = "TOOLHOST_BENCH_BARE_SERVER"

// bin holds the programs under test.
var bin string

func TestMain(m *testing.M) {
	if os.Getenv(bareServer) != "" {
		if err := serveBare(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "toolhost-bench-")
	if err == nil {
		defer os.RemoveAll(dir)
		bin = dir
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(dir string) error {
	for _, b := range []struct{ in, out string }{{"../host", "toolhost"}, {"../examples/hello", "hello"}} {
		cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, b.out), ".")
		cmd.Dir = b.in
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", b.in, err, out)
		}
	}
	return os.WriteFile(filepath.Join(dir, "config.hcl"), []byte(`
workspace  = "ws"
state_dir  = "state"
plugin_dir = "."

plugin "hello" {
  path   = "hello"
  tier   = "read_only"
  claims = "trust"
}
`), 0o600)
}

type greeting struct {
	Name     string `json:"name" jsonschema:"whom to greet"`
	Greeting string `json:"greeting,omitempty" jsonschema:"how to greet"`
}

// serveBare serves the tool of examples/hello without a host.
func serveBare(ctx context.Context) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "hello", Description: "Greets somebody by name."},
		func(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Greeting + ", " + in.Name + "!"}}}, nil, nil
		})
	return s.Run(ctx, &mcp.StdioTransport{})
}
