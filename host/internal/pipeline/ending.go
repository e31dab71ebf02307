package pipeline

import (
	"context"
	"errors"

	"github.com/toolhost/toolhost/sdk/tool"
)

// errPanic stands for a panic, which is in the log already.
var errPanic = errors.New("panic")

// errCanceled is what a caller that gave up would read.
var errCanceled = &tool.Error{Code: tool.Canceled, Message: "the call was canceled by its caller"}

// endOf says why a call ended without a result. A runner that only reports
// that ctx ended gets the words of whoever ended it; what it says itself
// stays.
func endOf(ctx context.Context, err error) error {
	var said *tool.Error
	if errors.As(err, &said) || ctx.Err() == nil {
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
