package supervisor

import (
	"errors"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// unavailable is what a caller is told if a call was not sent. With retry 0 it
// is not worth another try.
func (k *keeper) unavailable(retry time.Duration, cause error, format string, args ...any) *tool.Error {
	err := tool.Errorf(tool.Unavailable, "the plugin %q %s", k.plugin.Name, fmt.Sprintf(format, args...)).
		WithCause(cause)
	if retry > 0 {
		return err.WithRetry(retry)
	}
	return err
}

// startFailed is what callers that waited for a start are told. It is called
// with mu held.
func (k *keeper) startFailed(err error) error {
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return k.unavailable(0, err, "cannot be started: %s", refused.brief).
			WithHint("an operator must mend it; the host's log says how")
	}
	if errors.Is(err, errClosed) {
		return k.unavailable(0, err, "is stopped: the host is stopping")
	}
	retry := max(k.backoff.wait(time.Now()), time.Millisecond)
	return k.unavailable(retry, err, "did not start: it %s", crashOf(err).Cause)
}

// redacted removes secrets from why a start failed: a plugin may repeat what
// it was given.
func (k *keeper) redacted(err error) error {
	redact := k.s.opts.Redact
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return &refusedError{brief: refused.brief, err: &redactedError{redact(refused.Error()), refused.err}, digest: refused.digest}
	}
	if crashed, ok := errors.AsType[*crashError](err); ok && crashed.wire != nil {
		return &crashError{crash: crashed.crash, wire: errors.New(redact(crashed.wire.Error())), slow: crashed.slow}
	}
	return err
}

// redactedError says what err says, without secrets.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

// crashOf is what a start that failed counts as: the crash of the process, or
// one that says that there was none.
func crashOf(err error) *Crash {
	if crashed, ok := errors.AsType[*crashError](err); ok {
		return crashed.crash
	}
	return &Crash{Time: time.Now(), Cause: "could not be started: something is wrong on the host", Detail: err.Error()}
}

// operatorError is the whole of what callers are told in part.
func operatorError(err error) error {
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return refused
	}
	if crashed, ok := errors.AsType[*crashError](err); ok {
		return crashed
	}
	return err
}
