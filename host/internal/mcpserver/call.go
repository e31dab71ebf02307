package mcpserver

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
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
	ctx, done := s.callsOf(req.Session.ID()).begin(ctx)
	defer done()
	progress := startProgress(ctx, req)
	flight := s.opts.Pipeline.Start(ctx, pipeline.Request{
		Caller:      auth.Caller{User: s.opts.User, Client: clientName(req), Session: req.Session.ID(), Roles: auth.Agent},
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

// comeBack says what a model is to do about a call that goes on.
func comeBack(approval string) string {
	if approval == "" {
		return "make the same call again to get its result"
	}
	return fmt.Sprintf("tell the user to decide, e.g. with: toolhost approvals show %s; then make the same call again to get its result", approval)
}

// underWay holds what cancels the calls of one client that have not ended: the
// SDK shields them from the end of its session. The zero value is ready.
type underWay struct {
	mu      sync.Mutex // guards everything below
	cancels map[int]context.CancelFunc
	next    int
	ended   bool
}

// begin returns a context that ends with cancel too, and what to call when the
// call has ended.
func (u *underWay) begin(ctx context.Context) (_ context.Context, done func()) {
	ctx, stop := context.WithCancel(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		stop()
		return ctx, stop
	}
	if u.cancels == nil {
		u.cancels = map[int]context.CancelFunc{}
	}
	u.next++
	id := u.next
	u.cancels[id] = stop
	return ctx, func() {
		stop()
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.cancels, id)
	}
}

// cancel ends all calls under way, and those that begin later.
func (u *underWay) cancel() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	for _, stop := range u.cancels {
		stop()
	}
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
