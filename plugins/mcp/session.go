package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/plugins/mcp/internal/definition"
	"github.com/toolhost/toolhost/plugins/mcp/internal/transport"
	"github.com/toolhost/toolhost/sdk"
)

const (
	// maxListed is the number of tools of a server that are read, and maxPages of pages.
	maxListed = 10_000
	maxPages  = 1_000
	// closeTimeout bounds the end of a session.
	closeTimeout = 900 * time.Millisecond
)

// session is one connection to the server.
type session struct {
	server *server
	mcp    *mcp.ClientSession // nil until it is connected
	stdio  *transport.Stdio   // nil for a server with a URL

	mu    sync.Mutex          // guards everything below
	calls map[string]*running // by progress token
	last  int
}

func newSession(s *server, at mcp.Transport) *session {
	stdio, _ := at.(*transport.Stdio)
	return &session{server: s, stdio: stdio, calls: make(map[string]*running)}
}

// client returns the MCP client, with what the server may ask of it: questions to the user of a
// running call, and nothing else.
func (s *session) client() *mcp.Client {
	c := mcp.NewClient(&mcp.Implementation{Name: "toolhost", Version: version}, &mcp.ClientOptions{
		Logger: s.server.log,
		Capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
		},
		ElicitationHandler:          s.elicit,
		LoggingMessageHandler:       s.server.said.message, //nolint:staticcheck // servers of older revisions send logs
		ProgressNotificationHandler: s.progress,
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { s.server.relist() },
	})
	c.AddReceivingMiddleware(refuse)
	return c
}

// refuse answers requests for what the plugin does not have: models, and folders of its own.
func refuse(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		if method == "roots/list" || method == "sampling/createMessage" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not support it"}
		}
		return next(ctx, method, request)
	}
}

// wait waits for the end of the session and returns its cause.
func (s *session) wait() error {
	err := s.mcp.Wait()
	s.close() // what is left
	return s.cause(err)
}

// close ends the session and the server's process.
func (s *session) close() {
	if s.stdio != nil {
		_ = s.stdio.Close() // a process that does not end is killed with the plugin
	}
	if s.mcp == nil {
		return
	}
	done := make(chan struct{})
	go func() { // ends with the session, which bounds its last request
		defer close(done)
		_ = s.mcp.Close()
	}()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// cause returns why the connection was lost, with the last lines of the server.
func (s *session) cause(err error) error {
	if s.stdio != nil && s.stdio.Cause() != nil {
		err = s.stdio.Cause()
	}
	if err == nil {
		err = errors.New("the connection was closed")
	}
	return errors.New(s.server.said.clean(err.Error()) + s.lastLines())
}

// lastLines returns the last lines of the server for an error; "" if there are none.
func (s *session) lastLines() string {
	if s.stdio == nil {
		return ""
	}
	if lines := s.stdio.LastLines(maxTail); lines != "" {
		return "; its last lines: " + lines
	}
	return ""
}

// list is what the server lists.
type list struct {
	tools []*mcp.Tool // the first ones, as many as a plugin can have
	total int
	more  bool // the list does not end
}

// list starts the server if it does not run, and reads its list of tools.
func (s *server) list(ctx context.Context) (list, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.settings.StartTimeout, fmt.Errorf("it did not answer within %v", s.settings.StartTimeout))
	defer cancel()
	connected, err := s.connected(ctx)
	if err != nil && ctx.Err() != nil {
		return list{}, s.failure(context.Cause(ctx))
	}
	if err != nil {
		return list{}, err
	}
	listed, err := connected.list(ctx)
	if err == nil {
		return listed, nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return list{}, s.failure(connected.cause(err))
}

// list reads all pages of the server's list of tools, and keeps what a plugin can have.
func (s *session) list(ctx context.Context) (all list, err error) {
	defer func() { // what the server sends is decoded here
		if r := recover(); r != nil {
			err = fmt.Errorf("its list of tools cannot be read: %v", r)
		}
	}()
	seen := make(map[string]bool)
	params := &mcp.ListToolsParams{}
	for range maxPages {
		page, err := s.mcp.ListTools(ctx, params)
		if err != nil {
			return all, fmt.Errorf("its list of tools cannot be read: %w", err)
		}
		all.total += len(page.Tools)
		all.tools = append(all.tools, page.Tools[:min(len(page.Tools), definition.MaxTools-len(all.tools))]...)
		if page.NextCursor == "" {
			return all, nil
		}
		if seen[page.NextCursor] || all.total >= maxListed {
			break
		}
		seen[page.NextCursor] = true
		params = &mcp.ListToolsParams{Cursor: page.NextCursor}
	}
	all.more = true
	return all, nil
}

// running is a call of one of the server's tools.
type running struct {
	call     *sdk.Call
	progress chan *mcp.ProgressNotificationParams
}

// begin notes a call and returns its progress token.
func (s *session) begin(c *sdk.Call) (*running, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	token := strconv.Itoa(s.last)
	r := &running{call: c, progress: make(chan *mcp.ProgressNotificationParams, 16)}
	s.calls[token] = r
	return r, token
}

// finish forgets a call.
func (s *session) finish(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, token)
}

// only returns the running call if there is exactly one.
func (s *session) only() *running {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) != 1 {
		return nil
	}
	for _, r := range s.calls {
		return r
	}
	return nil
}

// progress passes on the progress of a call. It drops what the host does not take in time.
func (s *session) progress(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
	if request == nil || request.Params == nil {
		return
	}
	token, _ := request.Params.ProgressToken.(string)
	s.mu.Lock()
	r := s.calls[token]
	s.mu.Unlock()
	if r == nil {
		return
	}
	select {
	case r.progress <- request.Params:
	default:
	}
}
