package hosttools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxWaits bounds the concurrent calls of approval_wait of one user, who has fewer
	// open approvals.
	maxWaits = 64
	// maxShown bounds the bytes of an id in an error.
	maxShown = 64
)

const waitSchema = `{
	"type": "object",
	"properties": {
		"id": {"type": "string", "description": "the id of the approval, ap_..., or of the call that waits for it, tc_..."}
	},
	"required": ["id"]
}`

// errPatience ends a wait that another call may continue.
var errPatience = errors.New("the patience is over")

// wait waits for the call that an id names and returns the result of that call. The end
// of the wait does not end that call.
func (t *Tools) wait(ctx context.Context, call tool.Call, sink tool.Sink) (tool.Result, error) {
	var in struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return tool.Result{}, fmt.Errorf("read the arguments of %s: %w", catalog.ApprovalWait, err)
	}
	caller, ok := t.opts.Pipeline.Operations().CallerOf(call.ID)
	if !ok {
		return tool.Result{}, fmt.Errorf("the call %s is not under way", call.ID)
	}
	leave, err := t.enter(caller.User)
	if err != nil {
		return tool.Result{}, err
	}
	defer leave()
	op, record, err := t.find(ctx, caller, in.ID)
	switch {
	case err != nil:
		return tool.Result{}, err
	case op == nil:
		return t.ended(ctx, caller, record)
	}
	defer op.Release()
	if info := op.Info(); info.Tool == catalog.ApprovalWait { // calls that wait for each other would never end
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "id: %s is a call of %s itself", info.ID, catalog.ApprovalWait).
			WithHint("give the id of the approval, ap_..., or of the call that waits for it")
	}
	stop := report(op, sink)
	defer stop()

	waiting, cancel := context.WithTimeoutCause(ctx, t.opts.Patience, errPatience)
	defer cancel()
	outcome := op.Wait(waiting, operation.Forever)
	switch {
	case !outcome.Pending:
		op.Keep()
		return outcome.Result, nil
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	}
	return tool.Result{}, pending(outcome)
}

// report passes the progress of a call on to sink; the first report is that it waits.
func report(op *operation.Operation, sink tool.Sink) (stop func()) {
	if sink.Progress == nil {
		return func() {}
	}
	if info := op.Info(); info.State == operation.AwaitingApproval {
		sink.Progress(tool.Progress{Message: "waiting for a person to approve " + info.Approval})
	}
	return op.Watch(sink.Progress)
}

// pending returns the error for a call that continues, with how to get its result.
func pending(outcome operation.Outcome) error {
	failure := outcome.Result.Error
	if outcome.Approval == "" {
		return failure.WithHint("%s", comeBack(outcome.ID))
	}
	return failure.WithHint("if nobody has decided yet, tell the user to, e.g. with: toolhost approvals approve %s, or toolhost approvals reject %s; then %s",
		outcome.Approval, outcome.Approval, comeBack(outcome.Approval))
}

func comeBack(id string) string {
	return fmt.Sprintf(`call %s {"id":%q} again for the result`, catalog.ApprovalWait, id)
}

// enter counts a wait of a user until leave is called.
func (t *Tools) enter(user string) (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[user] == maxWaits {
		return nil, tool.Errorf(tool.ResourceExhausted, "%d calls of %s wait already", maxWaits, catalog.ApprovalWait).
			WithHint("wait for some of them to end").WithRetry(time.Second)
	}
	t.waiting[user]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.waiting[user]--; t.waiting[user] == 0 {
			delete(t.waiting, user)
		}
	}, nil
}

// find returns the operation for the id of an approval or of a call. If the approval is
// closed and has no operation, find returns its record instead. It finds only what
// belongs to the caller's user.
func (t *Tools) find(ctx context.Context, caller auth.Caller, id string) (*operation.Operation, approval.Record, error) {
	own := auth.Caller{User: caller.User} // without roles: an admin must not collect results of others
	find := t.opts.Pipeline.Operations().Find
	if strings.HasPrefix(id, "ap_") {
		find = t.opts.Pipeline.Operations().Asking
	}
	if op, ok := find(id, own); ok {
		return op, approval.Record{}, nil
	}
	record, err := t.record(ctx, caller.User, id)
	if err != nil {
		return nil, approval.Record{}, err
	}
	if op, ok := t.opts.Pipeline.Operations().Asking(record.ID, own); ok {
		return op, record, nil
	}
	if record.State.Closed() {
		op, _ := t.opts.Pipeline.Operations().Find(record.SpentBy, own)
		return op, record, nil
	}
	op, err := t.again(ctx, caller, record)
	return op, record, err
}

// unknown returns the error for an id that names nothing of the user.
func unknown(id string) error {
	return tool.Errorf(tool.NotFound, "no call waits under the id %s, and no result is kept under it", tool.VisibleName(excerpt.Of(id, maxShown))).
		WithHint("give the id of the approval, ap_..., or of the call, tc_..., that the answer pending_approval named; " +
			"a result that was given to its caller is not kept")
}
