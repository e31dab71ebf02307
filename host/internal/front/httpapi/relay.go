package httpapi

import (
	"net/http"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
)

// relayMCP answers POST /v1/mcp/relay: the connection is MCP's from then on, as
// standard input and output are. Only the control socket has it. The connection ends
// when its credential does not count any more.
func (s *Server) relayMCP(w http.ResponseWriter, r *request) error {
	if !r.local || s.opts.Relay == nil {
		return notFound().problem("MCP is relayed over the control socket only")
	}
	if s.stopping() {
		return unavailable().problem("%s", operation.Stopping).hint("connect again when a host has been started")
	}
	ctx, end := s.whileValid(r)
	defer end()
	s.opts.Relay(w, r.WithContext(ctx), func() (auth.Caller, error) {
		caller, err := r.identify(r.Request)
		if err != nil {
			return auth.Caller{}, err
		}
		return name(r.Request, caller)
	})
	return nil
}
