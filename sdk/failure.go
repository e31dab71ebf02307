package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/sdk/tool"
)

// toError turns a tool's error into one for the caller. It hides the text of an error that was
// not written for callers.
func toError(ctx context.Context, callID string, err error) *tool.Error {
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
		return tool.Errorf(tool.Timeout, "the tool ran out of time").WithCause(err)
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok && slices.Contains(limits, number) {
		return tool.Errorf(tool.ResourceExhausted, "the tool failed: %v", number).WithCause(err)
	}
	if errors.Is(err, syscall.EROFS) { // the host recognizes a broken claim of read_only by it
		return tool.Errorf(tool.Failed, "the tool failed: %v", syscall.EROFS).WithCause(err)
	}
	return tool.Errorf(tool.Internal, "internal error in call %s", callID).WithCause(err).
		WithHint("the host's log says more under this id")
}

// limits are the system's errors for a reached limit. Their text reveals nothing about the
// plugin, and the host recognizes the limit by it.
var limits = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EFBIG, syscall.ENOSPC, syscall.EDQUOT, syscall.ENOMEM}

// presentable returns an error that a host accepts. It logs what it replaces, and
// the cause of an internal error.
func presentable(logger *slog.Logger, name string, e *tool.Error) *tool.Error {
	if e == nil {
		return nil
	}
	if e.Code == tool.Internal && e.Unwrap() != nil {
		logger.Error("the tool failed with an internal error", "tool", name, "error", e.Unwrap())
	}
	mended := *e
	if !e.Code.Valid() || e.Code.HostOnly() {
		logger.Warn("the tool returned a code that tools cannot use; it was replaced by "+string(tool.Failed), "tool", name, "code", string(e.Code))
		mended.Code = tool.Failed
	}
	if strings.TrimSpace(e.Message) == "" {
		logger.Warn("the tool failed without a message", "tool", name, "code", string(e.Code))
		mended.Message = "the tool failed without a message"
	}
	return &mended
}

// recovered calls f. It logs a panic with its stack and returns an error that a
// caller may read.
func recovered(logger *slog.Logger, what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			logger.Error("panic", "in", what, "panic", fmt.Sprint(r))
			// One entry for each line: a log shows no line breaks.
			for line := range strings.Lines(string(debug.Stack())) {
				logger.Error(strings.TrimRight(line, "\n"), "in", what)
			}
			err = tool.Errorf(tool.Internal, "%s panicked; this is a mistake in the plugin, and the host's log has the stack", what)
		}
	}()
	return f()
}
