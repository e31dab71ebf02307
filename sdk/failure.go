package sdk

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/sdk/tool"
)

// toError turns what a tool returned into what a caller reads.
func toError(ctx context.Context, err error) *tool.Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e // nil if the author meant success by a nil *tool.Error in an error
	}
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return tool.Errorf(tool.Canceled, "the call was canceled").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return tool.Errorf(tool.Timeout, "the tool ran out of time: %v", err).WithCause(err)
	default:
		return tool.Errorf(tool.Failed, "%v", err).WithCause(err)
	}
}

// presentable returns a failure as a host accepts it. What is mended, and what
// only the plugin's author can use, goes to the log.
func presentable(logger hclog.Logger, name string, e *tool.Error) *tool.Error {
	if e == nil {
		return nil
	}
	if e.Code == tool.Internal && e.Unwrap() != nil {
		logger.Error("the tool failed by a mistake in the plugin", "tool", name, "error", e.Unwrap())
	}
	mended := *e
	if !e.Code.Valid() || e.Code.HostOnly() {
		logger.Warn("the tool answered with a code that is not a tool's; it was replaced by "+string(tool.Failed), "tool", name, "code", string(e.Code))
		mended.Code = tool.Failed
	}
	if strings.TrimSpace(e.Message) == "" {
		logger.Warn("the tool failed without a message", "tool", name, "code", string(e.Code))
		mended.Message = "the tool failed and does not say why"
	}
	return &mended
}

// recovered calls f. A panic becomes an error that a caller may read; the log
// has the stack.
func recovered(logger hclog.Logger, what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			logger.Error("panic", "in", what, "panic", fmt.Sprint(r))
			// One line of the log for each: a log shows no newlines.
			for line := range strings.Lines(string(debug.Stack())) {
				logger.Error(strings.TrimRight(line, "\n"), "in", what)
			}
			err = tool.Errorf(tool.Internal, "%s panicked; this is a mistake in the plugin, and the host's log has the stack", what)
		}
	}()
	return f()
}
