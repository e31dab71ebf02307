package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/pipeline"
	"github.com/toolhost/toolhost/sdk/tool"
)

// call carries one tools/call request through the pipeline. It never returns
// an error: a call that fails has a result that says why, for the model. A call
// that waits for a person longer than the client's patience goes on; the model
// is told to make it again for the result.
func (s *Server) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	ctx, done := s.begin(ctx, req)
	defer done()
	progress := startProgress(ctx, req)
	flight := s.opts.Pipeline.Start(ctx, pipeline.Request{
		Caller:      s.callerOf(req),
		Tool:        req.Params.Name,
		Arguments:   req.Params.Arguments,
		Traceparent: traceparent(req),
		Sink:        tool.Sink{Progress: progress.report},
	})
	outcome := flight.Wait(ctx, s.opts.Patience)
	switch {
	case outcome.Pending && ctx.Err() != nil:
		flight.GiveUp() // nobody reads the answer
	case outcome.Pending:
		flight.Owe()
		outcome.Result.Error = outcome.Result.Error.WithHint("%s", comeBack(outcome.Approval))
	}
	flight.Release()
	progress.finish() // no progress may follow the result
	return render(outcome, req.ProtocolVersion()), nil
}

// begin returns a context that ends with the call, and with all that would read
// its result: the session, and the request over HTTP. done must be called when
// the call has ended.
func (s *Server) begin(ctx context.Context, req *mcp.CallToolRequest) (_ context.Context, done func()) {
	end := func() {}
	if one := s.sessions.of(req.Session.ID()); one != nil {
		ctx, end = one.begin(ctx)
	}
	e := exchangeOf(req)
	if e == nil {
		return ctx, end
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
		end()
	}
}

// callerOf returns who calls: by the credential over HTTP, else this host's own
// user.
func (s *Server) callerOf(req *mcp.CallToolRequest) auth.Caller {
	caller := auth.Caller{User: s.opts.User, Roles: auth.Agent}
	if e := exchangeOf(req); e != nil {
		caller = e.caller
	}
	caller.Client = cmp.Or(clientName(req), caller.Client)
	caller.Session = cmp.Or(req.Session.ID(), caller.Session)
	return caller
}

// comeBack says what a model is to do about a call that goes on.
func comeBack(approval string) string {
	if approval == "" {
		return "make the same call again to get its result"
	}
	return fmt.Sprintf("tell the user to decide, e.g. with: toolhost approvals show %s; then make the same call again to get its result", approval)
}

// clientName is what the client calls itself, cut to what a log line can bear.
func clientName(req *mcp.CallToolRequest) string {
	info := req.ClientInfo()
	if info == nil {
		return ""
	}
	return headOf(info.Name, 100)
}

// traceparent is the W3C Trace Context of the request, if it has a valid one.
func traceparent(req *mcp.CallToolRequest) string {
	parent, ok := req.Params.Meta["traceparent"].(string)
	if !ok || !traceparentPattern.MatchString(parent) {
		return ""
	}
	return parent
}

// traceparentPattern is "version-format" of W3C Trace Context, section 3.2.2,
// version 00 or later.
var traceparentPattern = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// headOf returns the first characters of a text that somebody else chose,
// without those that cannot be printed.
func headOf(text string, most int) string {
	var b strings.Builder
	for _, r := range text {
		if b.Len()+utf8.RuneLen(r) > most {
			break
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}
