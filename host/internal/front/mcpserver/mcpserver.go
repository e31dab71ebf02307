// Package mcpserver serves the catalog over the Model Context Protocol, in its stateless
// revision (2026-07-28) and in the earlier ones with sessions. It only translates: every call
// goes through the pipeline, and the transport identifies the caller.
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// Options configure a [Server]. Fields are required unless their comments say otherwise.
type Options struct {
	Catalog   *catalog.Catalog
	Pipeline  *pipeline.Pipeline
	Approvals *approval.Service
	// Ready is closed when the tools of every plugin are known. Listing tools, or calling an
	// unknown one, waits for it for some seconds. Nil means that they are known from the
	// start.
	Ready <-chan struct{}
	// Patience is how long a client waits for a call that runs or needs a person before it
	// receives an interim answer; 0 means 45 seconds.
	Patience time.Duration
	// Command returns the shell command that runs a toolhost command for this host, from any
	// directory. Nil means that the program's name is enough.
	Command func(words string) string
	// Instructions returns the instructions for the model of a caller. Nil means none.
	Instructions func(auth.Caller) string
	// Client returns how the client with the given name receives its results. Nil, or the zero
	// Client, means the built-in limits.
	Client func(name string) Client
	// SessionEnded is called with the id of each session that has ended. It must return at
	// once and must not call the Server. It may be nil.
	SessionEnded func(id string)
	// Ephemeral reports that the host runs for one command only, which relayed clients are
	// told.
	Ephemeral bool
	Version   string
	Logger    hclog.Logger
}

// Server serves the catalog to MCP clients. Its methods may be called from any
// goroutine.
type Server struct {
	opts     Options
	sdk      *mcp.Server
	http     endpoint
	sessions sessions
	seal     seal
	deferred deferred
	stop     func() // ends follow, and waits for it
	first    sync.Once
	asked    atomic.Bool // a client has sent a request

	leaving  chan struct{} // closed when the host begins to stop
	farewell time.Duration // how long calls may then continue; set before leaving is closed

	mu        sync.Mutex                // guards published
	published map[string]*catalog.Entry // the tools that the SDK lists, by name
}

// New returns a server that lists the tools of the catalog. The caller must close it.
func New(opts Options) *Server {
	if opts.Patience == 0 {
		opts.Patience = operation.DefaultPatience
	}
	if opts.Command == nil {
		opts.Command = func(words string) string { return "toolhost " + words }
	}
	logger := logHandler{opts.Logger}
	s := &Server{opts: opts, seal: newSeal(), published: map[string]*catalog.Entry{}, sessions: sessions{ended: opts.SessionEnded}, leaving: make(chan struct{})}
	s.sdk = mcp.NewServer(
		&mcp.Implementation{Name: "toolhost", Title: "toolhost", Version: opts.Version},
		&mcp.ServerOptions{
			Logger:       logger.slog(),
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
			SetCacheable: privateLists,
			GetSessionID: auth.NewSession,
		},
	)
	s.sdk.AddReceivingMiddleware(s.publishFirst, onlyOffered, s.noteSession, s.awaitTools, s.instruct, s.listFor, s.resolveName)
	s.sdk.AddSendingMiddleware(afterInitialize)
	s.http = newEndpoint(s.sdk, logger)
	s.stop = s.follow()
	return s
}

// Close ends the sessions over HTTP and returns when their calls have ended. Every ServeStdio
// must have returned before. It may be called more than once.
func (s *Server) Close() error {
	s.stop()
	s.sessions.close()
	return nil
}

// Leave tells relayed clients that the host is stopping. They send no more requests and
// receive the answers to those they have sent. Calls continue for at most grace. Leave must be
// called at most once.
func (s *Server) Leave(grace time.Duration) {
	s.farewell = grace
	close(s.leaving)
}

// onlyOffered refuses methods that the SDK would answer although the host does not declare
// them: prompts, resources, completions and log levels.
func onlyOffered(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		kind, _, _ := strings.Cut(method, "/")
		switch kind {
		case "prompts", "resources", "completion", "logging":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("the host does not offer %q", method)}
		}
		return next(ctx, method, req)
	}
}

// noteSession registers a session over HTTP when it is initialized.
func (s *Server) noteSession(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if err != nil || method != "initialize" {
			return result, err
		}
		session, ok := req.GetSession().(*mcp.ServerSession)
		if e := exchangeOf(req); ok && e != nil && session.ID() != "" {
			s.sessions.beginHTTP(session, ownerOf(e.caller))
		}
		return result, nil
	}
}

// instruct adds the host's instructions, which a reload may change.
func (s *Server) instruct(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if err != nil || s.opts.Instructions == nil {
			return result, err
		}
		switch r := result.(type) {
		case *mcp.InitializeResult:
			r.Instructions = s.instructionsFor(req)
		case *mcp.DiscoverResult:
			r.Instructions = s.instructionsFor(req)
		}
		return result, nil
	}
}

func (s *Server) instructionsFor(req mcp.Request) string {
	caller, _ := s.callerOf(req) // the instructions are the same without a caller, but for the workspace
	return s.opts.Instructions(caller)
}

// privateLists stops shared caches from showing one caller's list of tools to another.
func privateLists(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
	c.CacheScope = "private"
}

// ServeStdio serves one client over a pair of streams, one JSON-RPC message a line, until the
// client closes in or ctx ends. At the end of in it first answers the requests under way; at
// the end of ctx it cancels their calls and answers them. All calls of the client form one
// session. For each call, who returns the caller, or the error that refuses the call.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.Writer, who func() (auth.Caller, error)) error {
	id := auth.NewSession()
	calls := s.sessions.begin(id, who)
	defer s.sessions.forget(id)
	transport := newLineTransport(in, out, id, &s.deferred)
	transport.conn.left = func() { calls.cancel(errGone) }
	// The SDK waits for its writes and handlers before it closes a transport.
	defer context.AfterFunc(ctx, func() {
		calls.cancel(operation.ErrStopping)
		transport.conn.awaitAnswers(maxStop) // so that the client learns the outcome of its calls
		_ = transport.conn.Close()
	})()
	err := s.sdk.Run(context.WithoutCancel(ctx), transport)
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		return fmt.Errorf("serve MCP: %w", err)
	}
	return nil
}
