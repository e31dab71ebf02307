package tool

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Code says why a call failed. The list is closed and append-only.
type Code string

// Every code, in the order in which they were added.
const (
	// InvalidArgument: the arguments do not fit the tool's schema.
	InvalidArgument Code = "invalid_argument"
	// NotFound: no such tool, or no such thing as the call names.
	NotFound Code = "not_found"
	// PermissionDenied: policy, the plugin or the system forbids it.
	PermissionDenied Code = "permission_denied"
	// Rejected: a person refused.
	Rejected Code = "rejected"
	// PendingApproval: nobody has answered yet; ask again later.
	PendingApproval Code = "pending_approval"
	// RateLimited: too many calls; try again later.
	RateLimited Code = "rate_limited"
	// Timeout: the call took longer than it may.
	Timeout Code = "timeout"
	// Canceled: the caller gave up.
	Canceled Code = "canceled"
	// Conflict: the state is not the one that the call was made for.
	Conflict Code = "conflict"
	// Unavailable: the plugin cannot take calls now.
	Unavailable Code = "unavailable"
	// PluginCrashed: the plugin's process ended during the call.
	PluginCrashed Code = "plugin_crashed"
	// ResourceExhausted: a limit on memory, files, size or queue was reached.
	ResourceExhausted Code = "resource_exhausted"
	// OutputInvalid: the plugin answered with something that is not a result.
	OutputInvalid Code = "output_invalid"
	// UnknownOutcome: the call may or may not have had its effect.
	UnknownOutcome Code = "unknown_outcome"
	// Failed: the tool ran and says that it failed.
	Failed Code = "failed"
	// Internal: a mistake in the host or in the plugin's code.
	Internal Code = "internal"
)

// Codes lists every code.
func Codes() []Code {
	return []Code{
		InvalidArgument, NotFound, PermissionDenied, Rejected, PendingApproval, RateLimited, Timeout, Canceled,
		Conflict, Unavailable, PluginCrashed, ResourceExhausted, OutputInvalid, UnknownOutcome, Failed, Internal,
	}
}

// Valid reports whether c is in the closed list.
func (c Code) Valid() bool { return slices.Contains(Codes(), c) }

// HostOnly reports whether only the host can know what c says, such as that a
// person refused. A plugin's failure never has such a code.
func (c Code) HostOnly() bool {
	return slices.Contains([]Code{Rejected, PendingApproval, PluginCrashed, OutputInvalid, UnknownOutcome}, c)
}

// Error is why a call failed, written for a model: it holds no secrets, no
// host paths outside the workspace and no stack.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Hint says what to do instead.
	Hint string `json:"hint,omitempty"`
	// Retryable says that the same call may succeed later.
	Retryable bool `json:"retryable,omitempty"`
	// RetryAfter is the time to wait before that; 0 means any.
	RetryAfter time.Duration `json:"retry_after,omitempty"`

	// cause is for the journal and the log, never for the model.
	cause error
}

// Errorf returns an Error. A cause given with %w is kept for [errors.Is] and
// the log; its text is part of the message only as the format says.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// WithHint returns a copy of e that says what to do instead.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// WithCause returns a copy of e that keeps err for the journal and the log.
func (e *Error) WithCause(err error) *Error {
	c := *e
	c.cause = err
	return &c
}

// WithRetry returns a copy of e that says that the same call may succeed after
// the given time.
func (e *Error) WithRetry(after time.Duration) *Error {
	c := *e
	c.Retryable, c.RetryAfter = true, after
	return &c
}

// Error implements error: the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.cause }

// modelPrefix begins every failure that a model reads (seed texts).
const modelPrefix = "Tool execution failed: "

// ModelText is what a model reads: the prefix, the message and, on the next
// line, the hint.
func (e *Error) ModelText() string {
	text := modelPrefix + e.Message
	if e.Hint != "" {
		text += "\nHint: " + e.Hint
	}
	return text
}

// AsError returns the Error in err's chain. Any other error becomes
// [Internal] with a message that tells nothing, and err as its cause. It
// returns nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return (&Error{Code: Internal, Message: "internal error"}).WithCause(err)
}
