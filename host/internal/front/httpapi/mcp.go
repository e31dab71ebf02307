package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// errRevoked ends a request whose credential does not count any more.
var errRevoked = errors.New("the credential does not count any more")

// mcp answers /mcp: the streamable HTTP transport of the Model Context
// Protocol. A request that is held open ends when its credential does not count
// any more.
func (s *Server) mcp(w http.ResponseWriter, r *request) error {
	if r.local || s.opts.MCP == nil {
		return notFound().problem("MCP over HTTP is served on the network listener only").
			hint("on this machine a client starts: toolhost mcp")
	}
	ctx, end := s.whileValid(r)
	defer end()
	s.opts.MCP(w, r.WithContext(ctx), r.caller)
	return nil
}

// whileValid returns the context of a request, which ends too when its
// credential does not count any more. end must be called.
func (s *Server) whileValid(r *request) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	var mu sync.Mutex // guards timer, which is not set again after end
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(s.timing.keepAlive, func() {
		if !r.valid() {
			cancel(errRevoked)
		}
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			timer.Reset(s.timing.keepAlive)
		}
	})
	return ctx, func() {
		cancel(nil)
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
	}
}
