package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/lazyregexp"
	"github.com/toolhost/toolhost/sdk/tool"
)

// call runs one tools/call request through the pipeline. A failed call returns a result that
// tells the model why; the error is for invalid requests. A call that takes longer than the
// client's patience continues, and the result tells the model how to get the outcome.
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
	result := s.deferred.render(outcome, client.Structured)
	if outcome.Pending && client.Structured && s.promisesStructured(req.Params.Name) {
		// "Servers MUST provide structured results that conform to this schema" (MCP,
		// server/tools, "Output Schema"); clients refuse other results unless they are
		// errors.
		result.IsError = true
	}
	return result, nil
}

// outcome makes or resumes a call and waits for its outcome. The result is non-nil if the
// client must answer a question first.
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
		said, err := contextOf(req)
		if err != nil {
			return operation.Outcome{}, nil, err
		}
		op = s.opts.Pipeline.Start(ctx, pipeline.Request{
			Caller:      r.caller,
			Tool:        req.Params.Name,
			Arguments:   req.Params.Arguments,
			Traceparent: traceparent(req),
			Context:     said,
			Sink:        sink,
			Attended:    true,

			Presentation: client.presentation(),
		})
	}
	defer op.Release()
	giveUp := op.GiveUp
	if e := exchangeOf(req); e != nil && !stateless {
		// The client may make the same call again, or still cancel this one.
		drop := sync.OnceFunc(op.Drop)
		defer context.AfterFunc(e.ctx, drop)()
		giveUp = func() {
			if e.ctx.Err() == nil {
				op.GiveUp()
				return
			}
			drop() // it may not have been called yet
			op.GiveUpDropped()
		}
	}
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
	if !outcome.Pending {
		return outcome, nil, nil
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
		op.KeepForRetry()
		s.comeBack(ctx, &outcome)
	case errors.Is(cause, errGone):
		op.EndSession()
	default: // the client has canceled it, or the host stops
		giveUp()
	}
	return outcome, nil, nil
}

// patient returns a context that also ends when the client's patience does, whatever the
// call does. The host's own tools end their wait themselves.
func (s *Server) patient(ctx context.Context, op *operation.Operation) (context.Context, context.CancelFunc) {
	if entry, err := s.opts.Catalog.Lookup(op.Info().Tool); err == nil && entry.OfHost() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, operation.LongestWait(s.opts.Patience))
}

// begin returns a context that ends with the call, with the session (errGone) and, where a
// disconnect cancels the call, with the HTTP request. The caller must call done when the call
// has ended.
//
// "Closing the SSE response stream is the cancellation signal. The server MUST treat a client
// disconnect as cancellation of that request" (MCP 2026-07-28, basic/patterns,
// "Cancellation"). In earlier revisions "disconnection SHOULD NOT be interpreted as the client
// cancelling its request" (MCP 2025-11-25, basic/transports): the call continues, and the
// client can still cancel it.
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
	stop := context.AfterFunc(e.ctx, func() {
		cause := context.Cause(e.ctx)
		if e.stateless || !errors.Is(cause, context.Canceled) {
			cancel(cause)
		}
	})
	return ctx, func() {
		stop()
		cancel(nil)
		end()
	}
}

// errGone is the cause when a call's session ends. It cancels only calls that wait for a
// person.
var errGone = errors.New("the session has ended")

// callerOf returns the caller that the credential of the HTTP request or of the pair of
// streams identifies. The client never chooses the session; it is "" if the host cannot tell
// the client from others.
func (s *Server) callerOf(req mcp.Request) (caller auth.Caller, err error) {
	session := req.GetSession().ID()
	e := exchangeOf(req)
	if e != nil {
		caller = e.caller
	} else if one := s.sessions.of(session); one == nil || one.who == nil {
		return caller, errGone
	} else if caller, err = one.who(); err != nil {
		return caller, err
	}
	caller.Client = cmp.Or(clientName(req), caller.Client)
	caller.Session = session
	if e != nil && e.stateless {
		caller.Session = s.sessions.ofProcess(ownerOf(e.caller), e.from)
	}
	return caller, nil
}

// comeBack adds to an outcome what the model and its user must do next about a call that
// continues.
func (s *Server) comeBack(ctx context.Context, o *operation.Outcome) {
	next := func(id string) string { return fmt.Sprintf("%s {\"id\":%q}", catalog.CallWait, id) }
	if o.State != operation.AwaitingApproval {
		o.Result.Content = append(o.Result.Content, tool.Text("\nIt continues. To get its result, call "+next(o.ID)+"."))
		return
	}
	record, err := s.opts.Approvals.Get(ctx, o.Approval)
	if err != nil { // the call reports this error when it continues
		record = approval.Record{ID: o.Approval}
	}
	o.Result.Error = record.Waiting(s.opts.Command, next(o.Approval))
}

// contextOf returns what the agent says about its call. The pipeline cuts it, because a call is
// worth more than a long reason. Anything but a text is the client's mistake, which would go
// unnoticed if it were ignored.
func contextOf(req *mcp.CallToolRequest) (string, error) {
	value, ok := req.Params.Meta[metaContext]
	said, isText := value.(string)
	if ok && value != nil && !isText {
		return "", &jsonrpc.Error{
			Code:    jsonrpc.CodeInvalidParams,
			Message: fmt.Sprintf("_meta[%q] is not a string; expected why the call is made, in up to 500 characters", metaContext),
		}
	}
	return said, nil
}

// traceparent returns the W3C Trace Context of the request, or "" if there is no valid one.
func traceparent(req *mcp.CallToolRequest) string {
	parent, ok := req.Params.Meta["traceparent"].(string)
	if !ok || !traceparentPattern().MatchString(parent) {
		return ""
	}
	return parent
}

// traceparentPattern is "version-format" of W3C Trace Context, section 3.2.2,
// version 00 or later.
var traceparentPattern = lazyregexp.New(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
