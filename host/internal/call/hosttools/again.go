package hosttools

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/sdk/tool"
)

// record returns the approval record of a call of the caller's user, with the arguments; the
// zero record if the id is that of a call without an approval. A tool that is not in the
// caller's toolsets has none.
func (t *Tools) record(ctx context.Context, caller auth.Caller, id string) (approval.Record, error) {
	switch {
	case strings.HasPrefix(id, "ap_"):
	case strings.HasPrefix(id, "tc_"):
		r, err := t.opts.Approvals.OfCall(ctx, caller.User, id)
		if tool.AsError(err) != nil && tool.AsError(err).Code == tool.NotFound {
			return approval.Record{}, nil
		}
		if err != nil {
			return approval.Record{}, err
		}
		id = r.ID
	default:
		return approval.Record{}, unknown(id)
	}
	r, err := t.opts.Approvals.Get(ctx, id)
	if err != nil && tool.AsError(err).Code != tool.NotFound {
		return approval.Record{}, err
	}
	if err != nil || r.User != caller.User || !caller.MayUse(r.Tool) {
		return approval.Record{}, unknown(id)
	}
	return r, nil
}

// again repeats a call that an earlier run of the host accepted. The repeated call finds its
// open question or its approval, and uses the approval once.
func (t *Tools) again(ctx context.Context, caller auth.Caller, r approval.Record) (*operation.Operation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if op, ok := t.opts.Pipeline.Operations().Find(t.begun[r.ID], auth.Caller{User: caller.User}); ok {
		return op, nil
	}
	switch {
	case r.Client != caller.Client:
		return nil, tool.Errorf(tool.Conflict, "approval %s is about a call of the client %s, and the host was restarted since",
			r.ID, tool.VisibleName(r.Client)).
			WithHint("make the call yourself if it is wanted: a person is asked again")
	case !r.Repeatable():
		return nil, tool.Errorf(tool.Conflict, "the host was restarted, and did not keep the secret arguments of the call that approval %s is about", r.ID).
			WithHint("make the same call of %s again yourself, with all its arguments: it uses the approval", r.Tool)
	}
	t.forget()
	op := t.opts.Pipeline.Start(ctx, pipeline.Request{Caller: caller, Tool: r.Tool, Arguments: r.Arguments, Context: r.Context})
	op.KeepForRetry() // the earlier answer told the caller to repeat the call to get the result
	t.begun[r.ID] = op.ID()
	return op, nil
}

// forget removes the calls that have ended. The caller holds t.mu.
func (t *Tools) forget() {
	maps.DeleteFunc(t.begun, func(_, call string) bool {
		_, running := t.opts.Pipeline.Operations().CallerOf(call)
		return !running
	})
}

// ended returns the outcome of a closed question. If a call used the approval, that is the
// call's result, which only the client of that call receives.
func (t *Tools) ended(ctx context.Context, caller auth.Caller, r approval.Record) (tool.Result, error) {
	if r.State == approval.Spent && r.Client == caller.Client {
		return t.opts.Pipeline.Recorded(ctx, caller.User, r.SpentBy)
	}
	return tool.Result{}, refusal(r)
}

// journaled returns the outcome of a call that needed no approval. The outcome is unknown if
// the host stopped after the call began to change something.
func (t *Tools) journaled(ctx context.Context, caller auth.Caller, id string) (tool.Result, error) {
	result, err := t.opts.Pipeline.Recorded(ctx, caller.User, id)
	if errors.Is(err, pipeline.ErrNoRecord) {
		return tool.Result{}, unknown(id)
	}
	return result, err
}

// refusal returns the error for a question that closed without a call.
func refusal(r approval.Record) error {
	failure := r.Refusal()
	switch r.State {
	case approval.Rejected:
		if r.Message != "" {
			return failure.WithHint("%s", r.Message)
		}
		return failure.WithHint("do something else, or ask the user what is wanted")
	case approval.Expired:
		return failure.WithHint("ask the user whether it should be done, then make the call again")
	case approval.Canceled:
		return failure.WithHint("make the call again if it is still wanted")
	case approval.Spent:
		return failure.WithHint("its result was given to its caller, or is not kept any more; see what it has changed before you make it again")
	case approval.Open, approval.Approved:
	}
	return failure
}
