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
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/catalog"
	"github.com/toolhost/toolhost/host/internal/pipeline"
)

// Options are what a Server needs; all but Ready and Patience are required.
type Options struct {
	Catalog  *catalog.Catalog
	Pipeline *pipeline.Pipeline
	// Ready is closed when the tools of every plugin are known. A list of the
	// tools, or a call of an unknown one, waits for it for some seconds. nil
	// means that they are known from the start.
	Ready <-chan struct{}
	// User is whose calls arrive over standard input and output.
	User string
	// Patience is how long a client waits for a person to approve a call before
	// it is told to come back; 0 means 45 seconds.
	Patience time.Duration
	Version  string
	Logger   hclog.Logger
}

// Server serves the catalog to MCP clients.
type Server struct {
	opts Options
	sdk  *mcp.Server

	mu        sync.Mutex                // guards everything below
	published map[string]*catalog.Entry // what the SDK lists, by tool name
	clients   map[string]*underWay      // by session
}

// New returns a server that lists, while it serves, what the catalog holds.
func New(opts Options) *Server {
	if opts.Patience == 0 {
		opts.Patience = 45 * time.Second
	}
	s := &Server{opts: opts, published: map[string]*catalog.Entry{}, clients: map[string]*underWay{}}
	s.sdk = mcp.NewServer(
		&mcp.Implementation{Name: "toolhost", Title: "toolhost", Version: opts.Version},
		&mcp.ServerOptions{
			Logger:       slog.New(logHandler{opts.Logger}),
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
			SetCacheable: privateLists,
		},
	)
	s.sdk.AddReceivingMiddleware(s.awaitTools, s.resolveName)
	return s
}

// privateLists keeps shared caches from mixing up what different callers may
// see.
func privateLists(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
	c.CacheScope = "private"
}

// ServeStdio serves one client over a pair of streams, one JSON-RPC message a
// line, until the client closes in or ctx ends. At the end of in, calls under
// way are answered first; at the end of ctx they are canceled. The calls of
// the client form one session.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	changes, stop := s.opts.Catalog.Changed()
	defer stop()
	s.publish()
	var watching sync.WaitGroup
	watching.Go(func() { s.follow(ctx, changes) }) // ends with ctx, waited for below
	defer watching.Wait()
	defer cancel()

	session := "mcp_" + uuid.NewString()
	calls := s.callsOf(session)
	defer s.forget(session)
	transport := newLineTransport(in, out, session)
	// The SDK waits for its writes and handlers before it closes a transport.
	defer context.AfterFunc(ctx, func() {
		calls.cancel()
		_ = transport.conn.Close()
	})()
	err := s.sdk.Run(ctx, transport)
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		return fmt.Errorf("serve MCP: %w", err)
	}
	return nil
}

// callsOf returns the calls under way of a session.
func (s *Server) callsOf(session string) *underWay {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.clients[session]
	if calls == nil {
		calls = &underWay{}
		s.clients[session] = calls
	}
	return calls
}

func (s *Server) forget(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, session)
}
