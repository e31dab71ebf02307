package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// call carries one tools/call request through the pipeline. A call that fails
// has a result that says why, for the model; the error is for requests that are
// wrong as such. A call that waits for a person longer than the client's patience
// goes on; the model is told how to get its result.
func (s *Server) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	ctx, done := s.begin(ctx, req)
	defer done()
	caller, err := s.callerOf(req)
	if err != nil {
		return nil, err
	}
	client := s.client(req, caller)
	progress := startProgress(ctx, req)
	defer progress.finish() // no progress may follow the result
	outcome, question, err := s.outcome(ctx, req, caller, client, tool.Sink{Progress: progress.report})
	if question != nil || err != nil {
		return question, err
	}
	return s.deferred.render(outcome, client.Structured), nil
}

// outcome makes the call, or goes on with one, and waits for its outcome. The
// result is the question that the client is to answer first, if there is one.
func (s *Server) outcome(ctx context.Context, req *mcp.CallToolRequest, caller auth.Caller, client Client, sink tool.Sink) (_ operation.Outcome, _ *mcp.CallToolResult, err error) {
	r := round{caller: caller}
	stateless := req.ProtocolVersion() >= firstStateless
	var op *operation.Operation
	if stateless && req.Params.RequestState != "" {
		if op, err = s.resume(ctx, req, &r); err != nil {
			return operation.Outcome{}, nil, err
		}
		if op == nil {
			return gone(req.Params.Name), nil, nil
		}
		op.ReportTo(sink)
	} else {
		op = s.opts.Pipeline.Start(ctx, pipeline.Request{
			Caller:      r.caller,
			Tool:        req.Params.Name,
			Arguments:   req.Params.Arguments,
			Traceparent: traceparent(req),
			Sink:        sink,
			Attended:    true,

			Presentation: client.presentation(),
		})
	}
	defer op.Release()
	r.leave = sync.OnceFunc(op.Leave)
	defer r.leave()
	var outcome operation.Outcome
	if stateless {
		var question *mcp.CallToolResult
		if outcome, question = s.waitRound(ctx, req, r, op); question != nil {
			return outcome, question, nil
		}
	} else {
		outcome = s.waitAsking(ctx, req, r, op)
	}
	switch {
	case outcome.Pending && ctx.Err() != nil:
		op.GiveUp() // nobody reads the answer
	case outcome.Pending:
		op.KeepForRetry()
		outcome.Result.Error = s.waiting(ctx, outcome)
	}
	return outcome, nil, nil
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
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.ctx, func() { cancel(context.Cause(e.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
		end()
	}
}

// errGone ends the calls of a client that cannot read their results any more.
var errGone = errors.New("the client is gone")

// callerOf returns who calls, by the credential of the request over HTTP or of the pair
// of streams.
func (s *Server) callerOf(req mcp.Request) (caller auth.Caller, err error) {
	session := req.GetSession().ID()
	if e := exchangeOf(req); e != nil {
		caller = e.caller
	} else if one := s.sessions.of(session); one == nil || one.who == nil {
		return caller, errGone
	} else if caller, err = one.who(); err != nil {
		return caller, err
	}
	caller.Client = cmp.Or(clientName(req), caller.Client)
	caller.Session = cmp.Or(session, caller.Session)
	return caller, nil
}

// waiting returns the error of a call that goes on: what a model is to do about it, and
// what its user is.
func (s *Server) waiting(ctx context.Context, o operation.Outcome) *tool.Error {
	next := func(id string) string { return fmt.Sprintf("%s {\"id\":%q}", catalog.ApprovalWait, id) }
	if o.Approval == "" {
		return o.Result.Error.WithHint("call %s to get its result", next(o.ID))
	}
	record, err := s.opts.Approvals.Get(ctx, o.Approval)
	if err != nil { // the call says so when it goes on
		record = approval.Record{ID: o.Approval}
	}
	return record.Waiting(s.opts.Command, next(o.Approval))
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
