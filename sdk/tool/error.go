package tool

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Code is the kind of a failure. The list of codes is closed and append-only.
type Code string

// Every code, in the order in which they were added.
const (
	// InvalidArgument: the arguments do not match the schema, or are not usable.
	InvalidArgument Code = "invalid_argument"
	// NotFound: the tool, or the thing that the call names, does not exist.
	NotFound Code = "not_found"
	// PermissionDenied: the policy, the plugin or the system forbids the call.
	PermissionDenied Code = "permission_denied"
	// Rejected: a person has rejected the call.
	Rejected Code = "rejected"
	// PendingApproval: a person has not yet decided; call again later.
	PendingApproval Code = "pending_approval"
	// RateLimited: there were too many calls; call again later.
	RateLimited Code = "rate_limited"
	// Timeout: the call took too long.
	Timeout Code = "timeout"
	// Canceled: the caller has canceled the call.
	Canceled Code = "canceled"
	// Conflict: the state has changed since the caller or the approver saw it.
	Conflict Code = "conflict"
	// Unavailable: the plugin, or a service that it needs, cannot answer now.
	Unavailable Code = "unavailable"
	// PluginCrashed: the plugin's process ended during the call.
	PluginCrashed Code = "plugin_crashed"
	// ResourceExhausted: a limit on memory, files, size or queue was reached.
	ResourceExhausted Code = "resource_exhausted"
	// OutputInvalid: the plugin sent an invalid result.
	OutputInvalid Code = "output_invalid"
	// UnknownOutcome: the call may or may not have had its effect.
	UnknownOutcome Code = "unknown_outcome"
	// Failed: the tool ran and failed.
	Failed Code = "failed"
	// Internal: an error in the host or in the plugin that the model cannot fix.
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

// HostOnly reports whether only the host uses c, as for a call that a person has
// rejected. Errors of plugins never have such a code.
func (c Code) HostOnly() bool {
	return slices.Contains([]Code{Rejected, PendingApproval, PluginCrashed, OutputInvalid, UnknownOutcome}, c)
}

// Error is the failure of a call, written for a model. Message and Hint must not
// contain secrets, paths of the host outside the workspace, or stacks.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Hint tells the model what to do instead.
	Hint string `json:"hint,omitempty"`
	// Retryable means that the same call may succeed later.
	Retryable bool `json:"retryable,omitempty"`
	// RetryAfter is the time to wait before the next call; 0 means any.
	RetryAfter time.Duration `json:"retry_after,omitempty"`

	// cause is for the journal and the log, never for the model.
	cause error
}

// Errorf returns an Error. It keeps an error given with %w as the cause for
// [errors.Is] and the log; with %w, the text of that error is in the message.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// WithHint returns a copy of e with the hint, which tells the model what to do
// instead.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// WithCause returns a copy of e with err as the cause, for the journal and the log.
func (e *Error) WithCause(err error) *Error {
	c := *e
	c.cause = err
	return &c
}

// WithRetry returns a copy of e that is retryable after the given time.
func (e *Error) WithRetry(after time.Duration) *Error {
	c := *e
	c.Retryable, c.RetryAfter = true, after
	return &c
}

// Error implements error: the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns the cause or nil.
func (e *Error) Unwrap() error { return e.cause }

// modelPrefix begins every failure that a model reads (seed texts).
const modelPrefix = "Tool execution failed: "

// ModelText returns the text that a model reads: a prefix, the message and, on the
// next line, the hint. A call with the code [PendingApproval] has not failed, so its
// text has no prefix.
func (e *Error) ModelText() string {
	text := modelPrefix + e.Message
	if e.Code == PendingApproval {
		text = e.Message
	}
	if e.Hint != "" {
		text += "\nHint: " + e.Hint
	}
	return text
}

// AsError returns the Error in the chain of err. For any other error it returns an
// Error with the code [Internal], a message without details, and err as the cause.
// It returns nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return (&Error{Code: Internal, Message: "internal error"}).WithCause(err)
}
