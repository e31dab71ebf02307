// Package mcpserver serves the catalog over the Model Context Protocol, in its
// stateless revision (2026-07-28) and in the ones with sessions before it. It
// translates and does nothing else: every call goes through the pipeline, and
// who calls comes from the transport.
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/catalog"
	"github.com/toolhost/toolhost/host/internal/pipeline"
)

// Options are what a Server needs; all are required.
type Options struct {
	Catalog  *catalog.Catalog
	Pipeline *pipeline.Pipeline
	// User is whose calls arrive over standard input and output.
	User    string
	Version string
	Logger  hclog.Logger
}

// Server serves the catalog to MCP clients.
type Server struct {
	opts Options
	sdk  *mcp.Server

	mu        sync.Mutex                // guards published
	published map[string]*catalog.Entry // what the SDK lists, by tool name
}

// New returns a server that lists, while it serves, what the catalog holds.
func New(opts Options) *Server {
	s := &Server{opts: opts, published: map[string]*catalog.Entry{}}
	s.sdk = mcp.NewServer(
		&mcp.Implementation{Name: "toolhost", Title: "toolhost", Version: opts.Version},
		&mcp.ServerOptions{
			Logger:       slog.New(logHandler{opts.Logger}),
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
			SetCacheable: privateLists,
		},
	)
	s.sdk.AddReceivingMiddleware(s.resolveName)
	return s
}

// privateLists keeps shared caches from mixing up what different callers may
// see.
func privateLists(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
	c.CacheScope = "private"
}

// ServeStdio serves one client over a pair of streams, one JSON-RPC message a
// line, until the client closes in or ctx ends. The calls of the client form
// one session.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	changes, stop := s.opts.Catalog.Changed()
	defer stop()
	s.publish()
	var watching sync.WaitGroup
	watching.Go(func() { s.follow(ctx, changes) }) // ends with ctx, waited for below
	defer watching.Wait()
	defer cancel()
	err := s.sdk.Run(ctx, &lineTransport{in: in, out: out, session: "mcp_" + uuid.NewString()})
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		return fmt.Errorf("serve MCP: %w", err)
	}
	return nil
}
