package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/plugins/mcp/internal/definition"
	"github.com/toolhost/toolhost/plugins/mcp/internal/transport"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxTail is how much of the server's last lines an error shows.
const maxTail = 1 << 10

// server is the MCP server of the plugin. It is started when it is needed, and started again after
// it has ended, with pauses that grow.
type server struct {
	plugin      *sdk.Plugin
	name        string // of the plugin's block
	settings    settings
	options     definition.Options
	log         *slog.Logger
	said        *serverLog
	credentials []string // that no result shows, the longest first
	client      *http.Client

	env     []string
	dir     string
	changed chan struct{}   // the list of tools may have changed
	life    context.Context //nolint:containedctx // of the plugin; close ends it
	end     context.CancelFunc

	mu       sync.Mutex // guards everything below
	current  *session   // nil: none is connected
	starting *start     // nil: none is being started
	pause    backoff
	offered  []definition.Tool
	older    bool // the server ended when it was asked for the newest protocol revision
	running  sync.WaitGroup
}

// start is one start of the server, which any number of calls wait for.
type start struct {
	done    chan struct{}
	session *session
	err     error
}

func newServer(ctx context.Context, p *sdk.Plugin, cfg sdk.Config, s settings) (*server, error) {
	srv := &server{
		plugin: p, name: cmp.Or(cfg.Name, "mcp"), settings: s, log: p.Logger(), said: newServerLog(p.Logger(), s.secrets()), credentials: s.credentials(), client: p.HTTPClient(),
		changed: make(chan struct{}, 1),
		options: definition.Options{Prefix: s.prefix(cfg.Name), Roles: s.Roles, Idempotent: s.Idempotent, Timeout: s.CallTimeout},
	}
	srv.life, srv.end = context.WithCancel(context.WithoutCancel(ctx)) // the server outlives the request that configures it
	if len(s.Command) == 0 {
		return srv, nil
	}
	var err error
	srv.env, err = s.environment(cfg)
	srv.dir = s.directory(cfg)
	return srv, err
}

// close ends the server and everything that it has started.
func (s *server) close() {
	s.end()
	s.mu.Lock()
	current := s.current
	s.current = nil
	s.mu.Unlock()
	if current != nil {
		current.close()
	}
	s.running.Wait()
}

// connected returns a session with the server. It starts the server if none runs, and waits for that
// until ctx ends. The error is for the caller.
func (s *server) connected(ctx context.Context) (*session, error) {
	s.mu.Lock()
	if s.current != nil {
		defer s.mu.Unlock()
		return s.current, nil
	}
	if s.starting == nil {
		if wait := s.pause.wait(time.Now()); wait > 0 {
			defer s.mu.Unlock()
			return nil, tool.Errorf(tool.Unavailable, "the MCP server %s has ended or failed to start %d times in a row", s.name, s.pause.failures).
				WithHint("the host's log has its output").WithRetry(wait)
		}
		if s.life.Err() != nil {
			defer s.mu.Unlock()
			return nil, tool.Errorf(tool.Unavailable, "the plugin is stopping").WithRetry(time.Second)
		}
		s.starting = &start{done: make(chan struct{})}
		s.running.Go(s.run) // ends within the start time-out, or with life
	}
	starting := s.starting
	s.mu.Unlock()
	select {
	case <-starting.done:
		return starting.session, starting.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run carries out the start in s.starting.
func (s *server) run() {
	ctx, cancel := context.WithTimeoutCause(s.life, s.settings.StartTimeout, fmt.Errorf("it did not answer within %v", s.settings.StartTimeout))
	defer cancel()
	connected, err := s.open(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	started := s.starting
	started.session, started.err, s.starting = connected, err, nil
	close(started.done)
	if err != nil {
		s.pause.failed(time.Now())
		return
	}
	s.current = connected
	s.running.Go(func() { s.watch(connected) }) // ends with the session
	if s.offered != nil {
		s.relist() // it may have other tools than before
	}
}

// watch waits for the end of a session.
func (s *server) watch(of *session) {
	cause := of.wait()
	s.lost(of)
	if s.life.Err() == nil {
		s.log.Warn("the MCP server has ended", "cause", cause)
	}
}

// open starts the server and connects to it. A server that ends or fails when it is asked for the
// newest revision of the protocol is asked for an older one.
func (s *server) open(ctx context.Context) (*session, error) {
	s.mu.Lock()
	older := s.older
	s.mu.Unlock()
	connected, err := s.dial(ctx, older)
	if _, ran := errors.AsType[*connectError](err); !ran || older || ctx.Err() != nil {
		return connected, s.failure(err)
	}
	connected, second := s.dial(ctx, true)
	if second != nil {
		return nil, s.failure(second)
	}
	s.mu.Lock()
	s.older = true
	s.mu.Unlock()
	return connected, nil
}

// connectError is the error of a server that runs and does not speak the protocol.
type connectError struct{ cause error }

// Error implements error.
func (e *connectError) Error() string { return e.cause.Error() }

// olderRevision is the newest revision that begins with initialize.
const olderRevision = "2025-11-25"

// dial makes one attempt to connect.
func (s *server) dial(ctx context.Context, older bool) (*session, error) {
	at, err := s.transport(ctx)
	if err != nil {
		return nil, err
	}
	opts := &mcp.ClientSessionOptions{}
	if older {
		opts.ProtocolVersion = olderRevision
	}
	connected := newSession(s, at)
	connected.mcp, err = connected.client().Connect(ctx, at, opts)
	if err == nil {
		return connected, nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	connected.close()
	return nil, &connectError{connected.cause(err)}
}

// transport starts the server's program, or prepares the requests to its address.
func (s *server) transport(ctx context.Context) (mcp.Transport, error) {
	if s.settings.URL != "" {
		return transport.NewHTTP(transport.HTTPOptions{URL: s.settings.URL, Client: s.client, Headers: s.settings.Headers, MaxMessage: s.settings.MaxMessage})
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return transport.StartStdio(s.life, transport.StdioOptions{
		Command:    proc.Command{Path: s.settings.Command[0], Args: s.settings.Command[1:], Env: s.env, Dir: s.dir},
		MaxMessage: s.settings.MaxMessage,
		Patience:   s.settings.StartTimeout / 4,
		Log:        func(line string) { s.said.line(slog.LevelInfo, "server", line) },
		Redact:     s.said.redact.Replace,
	})
}

// failure returns the error of a start for the caller. Texts of the server in it are clean.
func (s *server) failure(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*tool.Error](err); ok { // a program that cannot be executed
		return tool.Errorf(tool.Unavailable, "the MCP server %s does not start: %s", s.name, e.Message).WithHint("%s", e.Hint).WithCause(err)
	}
	return tool.Errorf(tool.Unavailable, "the MCP server %s does not start: %v", s.name, err).WithRetry(firstPause)
}
