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
	// maxWaits bounds the concurrent calls of call_wait of one user. It exceeds the number of
	// approvals that a user can have open.
	maxWaits = 64
	// maxShown bounds the bytes of an id that an error shows.
	maxShown = 64
	// formerWait is the former name of call_wait, kept as an alias.
	formerWait = "approval_wait"
)

const waitSchema = `{
	"type": "object",
	"properties": {
		"id": {"type": "string", "description": "tc_... or ap_..., from the answer of the call"}
	},
	"required": ["id"]
}`

// errPatience is the cause when a wait reaches its patience. Another call may continue the
// wait.
var errPatience = errors.New("the patience is over")

// wait waits for the call with the given id and returns its result. Canceling the wait does
// not cancel that call.
func (t *Tools) wait(ctx context.Context, call tool.Call, sink tool.Sink) (tool.Result, error) {
	var in struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return tool.Result{}, fmt.Errorf("read the arguments of %s: %w", catalog.CallWait, err)
	}
	caller, ok := t.opts.Pipeline.Operations().CallerOf(call.ID)
	if !ok {
		return tool.Result{}, fmt.Errorf("the call %s is not in progress", call.ID)
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
	case op == nil && record.ID == "":
		return t.journaled(ctx, caller, in.ID)
	case op == nil:
		return t.ended(ctx, caller, record)
	}
	defer op.Release()
	if info := op.Info(); info.Tool == catalog.CallWait || info.Tool == formerWait { // calls that wait for each other would never end
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "id: %s is a call of %s itself", info.ID, catalog.CallWait).
			WithHint("give the id of the call that it waits for")
	}
	stop := report(op, sink)
	defer stop()

	waiting, cancel := context.WithTimeoutCause(ctx, operation.LongestWait(t.opts.Patience), errPatience)
	defer cancel()
	outcome := op.Wait(waiting, t.opts.Patience)
	switch {
	case !outcome.Pending:
		op.Keep()
		return outcome.Result, nil
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	}
	return t.pending(ctx, outcome)
}

// report passes a call's progress on to sink, beginning with what the call does.
func report(op *operation.Operation, sink tool.Sink) (stop func()) {
	if sink.Progress == nil {
		return func() {}
	}
	stop = op.Watch(sink.Progress)
	op.Remind()
	return stop
}

// pending returns the answer about an unfinished call, which tells how to get the result
// later. It is an error while the call waits for a person, otherwise a result.
func (t *Tools) pending(ctx context.Context, outcome operation.Outcome) (tool.Result, error) {
	if outcome.State == operation.AwaitingApproval {
		record, err := t.opts.Approvals.Get(ctx, outcome.Approval)
		if err != nil { // the call reports this error when it continues
			record = approval.Record{ID: outcome.Approval}
		}
		return tool.Result{}, record.Waiting(t.opts.Command, comeBack(outcome.Approval))
	}
	result := outcome.Result
	result.Content = append(result.Content, tool.Text("\nTo get its result, call "+comeBack(outcome.ID)+"."))
	return result, nil
}

func comeBack(id string) string {
	return fmt.Sprintf(`%s {"id":%q} again`, catalog.CallWait, id)
}

// enter counts a user's wait until leave is called.
func (t *Tools) enter(user string) (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[user] == maxWaits {
		return nil, tool.Errorf(tool.ResourceExhausted, "%d calls of %s wait already", maxWaits, catalog.CallWait).
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

// find returns the operation for the id of an approval or of a call. If the call has ended, it
// returns the record of its approval instead, or the zero record if it needed none. It finds
// only what belongs to the caller's user.
func (t *Tools) find(ctx context.Context, caller auth.Caller, id string) (*operation.Operation, approval.Record, error) {
	own := caller
	own.Roles = 0 // an admin must not collect results of others
	find := t.opts.Pipeline.Operations().Find
	if strings.HasPrefix(id, "ap_") {
		find = t.opts.Pipeline.Operations().Asking
	}
	if op, ok := find(id, own); ok {
		return op, approval.Record{}, nil
	}
	record, err := t.record(ctx, caller, id)
	if err != nil || record.ID == "" {
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

// unknown returns the error for an id that the user does not have.
func unknown(id string) error {
	return tool.Errorf(tool.NotFound, "no call has the id %s", tool.VisibleName(excerpt.Of(id, maxShown))).
		WithHint("give the id that the call's answer named, tc_... or ap_...; a call that changes nothing leaves no record " +
			"when the host stops: make it again")
}
