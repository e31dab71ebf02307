package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// errPanic reports a panic, which has already been logged.
var errPanic = errors.New("panic")

// errReplaced reports that the tool was replaced before a plugin received the call: the call
// starts again. It wraps the runner's error, which the caller reads if this happens too often.
var errReplaced = errors.New("tool replaced")

// errStale reports that the state that a person approved changed before the call had any
// effect: the call starts again.
var errStale = errors.New("approved state gone")

// errChanging accompanies errReplaced if no runner has refused the call.
var errChanging = tool.Errorf(tool.Unavailable, "the tool was replaced while the call waited").WithRetry(time.Second)

// errOtherCall reports that a caller used one key for two different calls.
var errOtherCall = tool.Errorf(tool.Conflict, "the idempotency key was used for another call before").
	WithHint("use a new key for each new call")

// joinError reports that another operation executes the same call.
type joinError struct{ operation *operation.Operation }

func (e *joinError) Error() string { return "another operation executes the call: " + e.operation.ID() }

// refusedByStop is the error of a call that ended with [operation.ErrStopping] and had no
// effect.
func refusedByStop(c *call) *tool.Error {
	if c.sent {
		return tool.Errorf(tool.Unavailable, "%s and stopped the call, which changes nothing", operation.Stopping).
			WithRetry(time.Second).WithHint("call again when a host has been started")
	}
	return tool.Errorf(tool.Unavailable, "%s, and the call was not begun", operation.Stopping).
		WithRetry(time.Second).WithHint("call again when a host has been started")
}

// waitsForNextHost is the error of a call that waited for a person when its host
// stopped. The question stays open.
func waitsForNextHost(approval string) *tool.Error {
	return tool.Errorf(tool.Unavailable, "%s, and the call has not run", operation.Stopping).WithRetry(time.Second).
		WithHint("when a host has been started again, call %s with {\"id\":%q} for its result", catalog.CallWait, approval)
}

// notWritten is the error of a call whose record cannot be written. If ctx has ended, the
// error says why instead.
func notWritten(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return operation.Cause(ctx)
	}
	hint := "the host's disk may be full"
	switch {
	case errors.Is(err, store.ErrGone):
		hint = "the host's database was removed or replaced"
	case errors.Is(err, journal.ErrChanged):
		hint = "the host's journal was changed"
	}
	return tool.Errorf(tool.Unavailable, "%s cannot be recorded, and nothing that changes something runs without a record", what).
		WithHint("%s: tell the person who runs the host", hint).WithCause(err)
}

// endOf returns why a call ended without a result. Once ctx has ended, its cause is more
// precise than a runner's time-out or cancellation; endOf keeps all other errors of a runner.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	ended, ok := errors.AsType[*tool.Error](err)
	if ok && ended.Code != tool.Timeout && ended.Code != tool.Canceled {
		return err
	}
	return operation.Cause(ctx)
}
