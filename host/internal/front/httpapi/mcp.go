package httpapi

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/internal/excerpt"
)

// errRevoked ends a request whose credential is no longer valid.
var errRevoked = errors.New("the credential is no longer valid")

// mcp answers /mcp, the streamable HTTP transport of the Model Context Protocol, and
// /mcp/NAME, which is limited to the tools of a toolset. An open request ends when its credential is no longer valid.
func (s *Server) mcp(r *request) error {
	if r.local || s.opts.MCP == nil {
		return notFound.problem("MCP over HTTP is served on the network listener only").
			hint("on this machine, the client starts toolhost mcp")
	}
	caller := r.caller
	if name := r.PathValue("toolset"); name != "" {
		set, ok := s.toolset(name)
		if !ok {
			return notFound.problem("there is no toolset %q", excerpt.Printable(name, maxShown)).
				hint("the configuration names the toolsets, in blocks toolset \"NAME\"")
		}
		caller = caller.Within(set)
	}
	ctx, end := s.whileValid(r)
	defer end()
	s.opts.MCP(r.w, r.WithContext(ctx), caller, processOf(r.Context()))
	return nil
}

func (s *Server) toolset(name string) (auth.Toolset, bool) {
	if s.opts.Toolset == nil {
		return auth.Toolset{}, false
	}
	return s.opts.Toolset(name)
}

// whileValid returns a context that ends with the request, or when its credential is no
// longer valid. The caller must call end.
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

// relayMCP answers POST /v1/mcp/relay. From then on the connection carries MCP, as
// standard input and output do. Only the control socket has the route. The connection
// ends when its credential is no longer valid.
func (s *Server) relayMCP(r *request) error {
	if !r.local || s.opts.Relay == nil {
		return notFound.problem("MCP is relayed over the control socket only")
	}
	if s.stopping() {
		return unavailable.problem("%s", operation.Stopping).hint("connect again when a host runs")
	}
	ctx, end := s.whileValid(r)
	defer end()
	s.opts.Relay(r.w, r.WithContext(ctx), func() (auth.Caller, error) {
		caller, err := r.identify(r.Request)
		if err != nil {
			return auth.Caller{}, err
		}
		return name(r.Request, caller)
	})
	return nil
}
