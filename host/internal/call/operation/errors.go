package operation

import (
	"context"
	"errors"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Stopping begins the message of the error, of code [tool.Unavailable], of a call
// that a stopping host refused or ended. The call has had no effect.
const Stopping = "the host is stopping"

// ErrStopping ends the calls of a host that stops, and the requests that wait for
// them.
var ErrStopping = tool.Errorf(tool.Unavailable, Stopping).WithRetry(time.Second)

// ErrCanceled ends a call that its caller canceled.
var ErrCanceled = &tool.Error{Code: tool.Canceled, Message: "the call was canceled by its caller"}

// ErrRevoked ends the calls of a credential that was revoked.
var ErrRevoked = tool.Errorf(tool.PermissionDenied, "the credential that made the call is no longer valid")

// errAbandoned ends a call whose result no caller waits for.
var errAbandoned = tool.Errorf(tool.Canceled, "no caller came back for the result of the call")

// errUnattended is the answer to a tool that asks its user when no client can
// show the question.
var errUnattended = tool.Errorf(tool.Unavailable, "the user cannot be asked: the client that made the call does not show questions of tools").
	WithHint("give the answer in the tool's arguments, if it has one for it, or make the call from an MCP client that supports elicitation")

// Cause returns why ctx ended.
func Cause(ctx context.Context) *tool.Error {
	var cause *tool.Error
	switch {
	case errors.As(context.Cause(ctx), &cause):
		return cause
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return tool.Errorf(tool.Timeout, "the call took longer than its caller lets it")
	}
	return ErrCanceled.WithCause(context.Cause(ctx))
}
