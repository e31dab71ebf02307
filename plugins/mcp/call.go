package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/plugins/mcp/internal/definition"
	"github.com/toolhost/toolhost/plugins/mcp/internal/transport"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// call runs one call of a tool of the server.
func (s *server) call(ctx context.Context, c *sdk.Call, t definition.Tool, arguments json.RawMessage) (tool.Result, error) {
	var sent transport.Sent
	ctx = transport.WithSent(ctx, &sent)
	connected, result, err := s.attempt(ctx, c, t, arguments)
	if connected != nil && notBegun(err, &sent) { // the session had ended, and nobody knew
		s.lost(connected)
		connected, result, err = s.attempt(ctx, c, t, arguments)
	}
	switch {
	case connected == nil:
		return tool.Result{}, err
	case err != nil:
		return tool.Result{}, connected.failure(ctx, t, err, &sent)
	}
	s.mu.Lock()
	s.pause.works()
	s.mu.Unlock()
	return s.hidden(content(result, s.name))
}

// attempt makes a call in the session with the server; without one, the session is nil.
func (s *server) attempt(ctx context.Context, c *sdk.Call, t definition.Tool, arguments json.RawMessage) (*session, *mcp.CallToolResult, error) {
	connected, err := s.connected(ctx)
	if err != nil {
		return nil, nil, err
	}
	result, err := connected.call(ctx, c, t.Original, arguments)
	return connected, result, err
}

// notBegun reports whether a call has certainly not begun: the server does not know the session, or
// did not get the call because the connection had been closed.
func notBegun(err error, sent *transport.Sent) bool {
	closed := errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, io.ErrClosedPipe)
	return errors.Is(err, mcp.ErrSessionMissing) || closed && !sent.Any()
}

// lost notes that a session has ended. The next call starts the server again.
func (s *server) lost(gone *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == gone {
		s.current = nil
		s.pause.failed(time.Now())
	}
}

// callKey is the key of the running call in the context of its requests: questions of the server
// that belong to the call come with it.
type callKey struct{}

// call sends the call and waits for its result. When ctx ends, the server is told and call returns.
func (s *session) call(ctx context.Context, c *sdk.Call, name string, arguments json.RawMessage) (result *mcp.CallToolResult, err error) {
	defer func() { // what the server sends is decoded here
		if r := recover(); r != nil {
			err = fmt.Errorf("the result cannot be read: %v", r)
		}
	}()
	r, token := s.begin(c)
	var reporting sync.WaitGroup
	done := make(chan struct{})
	reporting.Go(func() { s.report(r, done) }) // ends with the call
	defer reporting.Wait()
	defer close(done)
	defer s.finish(token)

	params := &mcp.CallToolParams{Name: name, Arguments: arguments}
	params.SetProgressToken(token)
	return s.mcp.CallTool(context.WithValue(ctx, callKey{}, r), params)
}

// report passes the progress of a call to the host.
func (s *session) report(r *running, done <-chan struct{}) {
	for {
		select {
		case p := <-r.progress:
			r.call.Progress(tool.Progress{Progress: finite(p.Progress), Total: finite(p.Total), Message: s.server.said.clean(p.Message)})
		case <-done:
			return
		}
	}
}

func finite(n float64) float64 {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}

// failure returns the error of a call for the caller.
func (s *session) failure(ctx context.Context, t definition.Tool, err error, sent *transport.Sent) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	said := s.server.said
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		code := tool.Failed
		if wire.Code == jsonrpc.CodeInvalidParams {
			code = tool.InvalidArgument
		}
		return tool.Errorf(code, "the MCP server %s answers with error %d: %s", s.server.name, wire.Code, said.clean(wire.Message))
	}
	cause := s.cause(err)
	if t.Spec.Tier == tool.ReadOnly || !sent.Any() || notConnected(err) {
		return tool.Errorf(tool.Unavailable, "the MCP server %s has no answer: %v", s.server.name, cause).WithRetry(time.Second)
	}
	return tool.Errorf(tool.Failed, "the MCP server %s has no answer, and the outcome of the call is unknown: %v", s.server.name, cause).
		WithHint("the call may have had its effect; look before you make it again")
}

// notConnected reports whether a request did not reach the server, because there was no connection.
func notConnected(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial"
}
