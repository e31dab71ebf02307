package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/pipeline"
	"github.com/toolhost/toolhost/sdk/tool"
)

// call carries one tools/call request through the pipeline. It never returns
// an error: a call that fails has a result that says why, for the model.
func (s *Server) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	progress := startProgress(ctx, req)
	outcome := s.opts.Pipeline.Call(ctx, pipeline.Request{
		Caller:      auth.Caller{User: s.opts.User, Client: clientName(req), Session: req.Session.ID()},
		Tool:        req.Params.Name,
		Arguments:   req.Params.Arguments,
		Traceparent: traceparent(req),
		Sink:        tool.Sink{Progress: progress.report},
	})
	progress.finish() // no progress may follow the result
	return render(outcome, req.ProtocolVersion()), nil
}

// clientName is what the client calls itself, cut to what a log line can bear.
func clientName(req *mcp.CallToolRequest) string {
	info := req.ClientInfo()
	if info == nil {
		return ""
	}
	const most = 100
	return info.Name[:min(len(info.Name), most)]
}

// traceparent is the W3C Trace Context of the request, if it has one.
func traceparent(req *mcp.CallToolRequest) string {
	parent, ok := req.Params.Meta["traceparent"].(string)
	if !ok {
		return ""
	}
	return parent
}
