package pipeline

import (
	"context"
	"errors"

	"github.com/toolhost/toolhost/sdk/tool"
)

// errPanic stands for a panic, which is in the log already.
var errPanic = errors.New("panic")

// errReplaced says that the tool was replaced before a plugin got the call. It
// stands beside the runner's own error, which the caller reads if this happens
// too often.
var errReplaced = errors.New("tool replaced")

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
