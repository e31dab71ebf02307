package httpapi

import (
	"net/http"

	"github.com/toolhost/toolhost/host/internal/pipeline"
)

// relayMCP answers POST /v1/mcp/relay: the connection is MCP's from then on, as
// standard input and output are. Only the control socket has it.
func (s *Server) relayMCP(w http.ResponseWriter, r *request) error {
	if !r.local || s.opts.Relay == nil {
		return notFound().problem("MCP is relayed over the control socket only")
	}
	if s.stopping() {
		return unavailable().problem("%s", pipeline.Stopping).hint("connect again when a host has been started")
	}
	s.opts.Relay(w, r.Request)
	return nil
}
