package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bareServer in the environment makes this binary the reference program: a server that uses only
// the MCP SDK, with the tools in its process. Its value selects the transport.
const bareServer = "TOOLHOST_BENCH_BARE_SERVER"

// The transports: standard input and output, HTTP without sessions, and HTTP with sessions.
const (
	overStdio     = "stdio"
	overStateless = "stateless"
	overSessions  = "sessions"
)

type greeting struct {
	Name     string `json:"name" jsonschema:"whom to greet"`
	Greeting string `json:"greeting,omitempty" jsonschema:"how to greet"`
}

type amount struct {
	N int `json:"n" jsonschema:"how much"`
}

// serveBare serves the tools of examples/hello and of the probe without a host.
// Over HTTP it prints where first, as the host does.
func serveBare(ctx context.Context, how string) error {
	if how == overRelay {
		return relay(ctx)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "hello", Description: "Greets somebody by name."},
		func(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
			return text(in.Greeting + ", " + in.Name + "!"), nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "probe_image", Description: "Answers with an image of a given size."},
		func(_ context.Context, _ *mcp.CallToolRequest, in amount) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: bytes.Repeat([]byte{0xa5}, in.N)}}}, nil, nil
		})
	if how == overStdio {
		return s.Run(ctx, &mcp.StdioTransport{})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(serving{URL: fmt.Sprintf("http://%s", l.Addr())}); err != nil {
		return err
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: how == overStateless})
	server := http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	return server.Serve(l)
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
