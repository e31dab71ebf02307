package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// errPanic stands for a panic, which is in the log already.
var errPanic = errors.New("panic")

// errReplaced says that the tool was replaced before a plugin got the call. It
// stands beside the runner's own error, which the caller reads if this happens
// too often.
var errReplaced = errors.New("tool replaced")

// errStale says that the world is not what a person approved, before the call
// had any effect: it is made anew.
var errStale = errors.New("approved state gone")

// Stopping begins the message of the error, of code [tool.Unavailable], of a call
// that a stopping host refused or ended. The call has had no effect.
const Stopping = "the host is stopping"

// ErrStopping ends the calls of a host that stops, and the requests that wait for
// them.
var ErrStopping = tool.Errorf(tool.Unavailable, Stopping).WithRetry(time.Second)

// refusedByStop is what the caller of a call reads that [ErrStopping] has ended and
// that has had no effect.
func refusedByStop(c *call) *tool.Error {
	if c.sent {
		return tool.Errorf(tool.Unavailable, "%s and stopped the call, which changes nothing", Stopping).
			WithRetry(time.Second).WithHint("call again when a host has been started")
	}
	return tool.Errorf(tool.Unavailable, "%s, and the call was not begun", Stopping).
		WithRetry(time.Second).WithHint("call again when a host has been started")
}

// waitsForNextHost is what the caller of a call reads that waited for a person when
// its host stopped. The question stays open.
func waitsForNextHost(approval string) *tool.Error {
	return tool.Errorf(tool.Unavailable, "%s, and the call has not run", Stopping).WithRetry(time.Second).
		WithHint("when a host has been started again, call %s with {\"id\":%q} for its result", catalog.ApprovalWait, approval)
}

// errRevoked ends the calls of a credential that was revoked.
var errRevoked = tool.Errorf(tool.PermissionDenied, "the credential that made the call does not count any more")

// errChanging stands beside errReplaced where no runner has refused the call.
var errChanging = tool.Errorf(tool.Unavailable, "the tool was replaced while the call waited").WithRetry(time.Second)

// errAbandoned ends a call that nobody waits for any more.
var errAbandoned = tool.Errorf(tool.Canceled, "nobody came back for the result of the call")

// errCanceled is what a caller that gave up would read.
var errCanceled = &tool.Error{Code: tool.Canceled, Message: "the call was canceled by its caller"}

// endOf says why a call ended without a result. Once ctx has ended, whoever
// ended it knows the reason better than a runner that noticed; what a runner
// says of anything else stays.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	said, ok := errors.AsType[*tool.Error](err)
	if ok && said.Code != tool.Timeout && said.Code != tool.Canceled {
		return err
	}
	return causeOf(ctx)
}

// causeOf says why ctx ended.
func causeOf(ctx context.Context) *tool.Error {
	var cause *tool.Error
	switch {
	case errors.As(context.Cause(ctx), &cause):
		return cause
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return tool.Errorf(tool.Timeout, "the call took longer than its caller lets it")
	}
	return errCanceled.WithCause(context.Cause(ctx))
}
