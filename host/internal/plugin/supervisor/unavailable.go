package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/sdk/tool"
)

// unavailable returns the error of a call that was not sent. retry 0 means that
// another try is no use.
func (m *manager) unavailable(retry time.Duration, cause error, format string, args ...any) *tool.Error {
	err := tool.Errorf(tool.Unavailable, "the plugin %q %s", m.plugin.Name, fmt.Sprintf(format, args...)).
		WithCause(cause)
	if retry > 0 {
		return err.WithRetry(retry)
	}
	return err
}

// startFailed returns the error of a call that waited for a start. The caller holds
// mu.
func (p *pool) startFailed(err error) error {
	if refused, ok := errors.AsType[*process.RefusedError](err); ok {
		return p.unavailable(0, err, "cannot be started: %s", refused.Brief).
			WithHint("an operator must correct it; the host's log says how")
	}
	if stopped := p.stopped(); stopped != nil && errors.Is(err, errKilled) {
		return stopped
	}
	if errors.Is(err, errClosed) {
		return p.unavailable(0, err, "is stopped: the host is stopping")
	}
	retry := max(p.backoff.wait(time.Now()), time.Millisecond)
	return p.unavailable(retry, err, "did not start: it %s", crashOf(err).Cause)
}

// request describes a call or preview that failed.
type request struct {
	sent    bool // the plugin may have seen it
	preview bool // it has no effects
}

// callFailed returns the error for the caller. err comes from [process.Process].
func (p *pool) callFailed(ctx context.Context, i *instance, r request, err error) error {
	switch failed, known := errors.AsType[*tool.Error](err); {
	case known:
		return failed
	case ctx.Err() != nil:
		return contextError(ctx, err)
	}
	return p.processLost(ctx, i, r, err)
}

// processLost waits for the end of a process that lost its connection, kills it if it
// does not end, and names the cause. It returns when ctx ends: a process that hangs
// in the kernel may take long to end.
func (p *pool) processLost(ctx context.Context, i *instance, r request, err error) error {
	if !endsWithin(ctx, process.ExitGrace, i.ended) {
		i.proc.End("lost its connection to the host")
		if !endsWithin(ctx, process.DeathTimeout, i.ended) {
			err = errors.Join(err, errors.New("the process does not end although it was killed"))
		}
	}
	if ctx.Err() != nil && !isClosed(i.ended) {
		return contextError(ctx, err)
	}
	cause := p.stopReason(i)
	if isClosed(i.ended) && i.crash != nil {
		cause = i.crash.Cause
		err = fmt.Errorf("%s: %w", i.crash.Detail, err)
	}
	if !r.sent {
		return p.unavailable(time.Millisecond, err, "ended before it took the call: it %s", cause)
	}
	lost := tool.Errorf(tool.PluginCrashed, "the plugin %q %s", p.plugin.Name, cause).WithCause(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	when := "at the next call"
	wait := p.backoff.wait(time.Now())
	if wait > 0 {
		when = fmt.Sprintf("at the first call after %v", wait.Round(time.Millisecond))
	}
	effect := "whether the call had an effect is not known"
	if r.preview {
		effect = "the call was not made"
	}
	return lost.WithRetry(wait).WithHint("%s; the plugin is started again %s", effect, when)
}

// stopReason completes "the plugin ..." for a process that the host has stopped.
func (p *pool) stopReason(i *instance) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed():
		return "was stopped by the host, which is stopping itself"
	case i.why != "":
		return "was stopped by the host: " + i.why
	}
	return "was stopped by the host"
}

// contextError returns the error of a call whose context has ended. err may be nil.
func contextError(ctx context.Context, err error) error {
	cause := errors.Join(context.Cause(ctx), err)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return tool.Errorf(tool.Timeout, "the call took longer than it may").WithCause(cause)
	}
	return tool.Errorf(tool.Canceled, "the call was canceled").WithCause(cause)
}

// endsWithin waits until done is closed, d has passed or ctx has ended, and reports
// whether done is closed.
func endsWithin(ctx context.Context, d time.Duration, done <-chan struct{}) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
	}
	return isClosed(done)
}

// redacted removes secrets from the error of a start: a plugin may repeat the
// settings that it got.
func (p *pool) redacted(err error) error {
	redact := p.redact
	if refused, ok := errors.AsType[*process.RefusedError](err); ok {
		return &process.RefusedError{Brief: refused.Brief, Err: &redactedError{redact(refused.Error()), refused.Err}, Digest: refused.Digest}
	}
	if missing, ok := errors.AsType[*notNowError](err); ok {
		return &notNowError{&redactedError{redact(missing.Error()), missing.err}}
	}
	if failed, ok := errors.AsType[*process.StartError](err); ok && failed.Wire != nil {
		return &process.StartError{Crash: failed.Crash, Wire: errors.New(redact(failed.Wire.Error())), Slow: failed.Slow}
	}
	return err
}

// redactedError is err with a text without secrets.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

// BeforeStart is the phase of a start that failed before there was a process; see
// [process.Crash].
const BeforeStart = "the preparation of its start"

// crashOf returns the crash that a failed start counts as: that of the process, or
// one for a start without a process.
func crashOf(err error) *process.Crash {
	if failed, ok := errors.AsType[*process.StartError](err); ok {
		return failed.Crash
	}
	cause := "could not be started: something is wrong on the host"
	if without, ok := errors.AsType[*workspaceError](err); ok {
		cause = "could not be started: " + without.brief
	} else if _, ok := errors.AsType[*notNowError](err); ok {
		cause = "could not be started: something that it needs does not answer"
	} else if errors.Is(err, context.DeadlineExceeded) {
		cause = "could not be started in time: the machine may be overloaded"
	}
	return &process.Crash{Time: time.Now(), Cause: cause, During: BeforeStart, Detail: err.Error()}
}

// operatorError returns the full error. Callers get only part of it.
func operatorError(err error) error {
	if refused, ok := errors.AsType[*process.RefusedError](err); ok {
		return refused
	}
	if failed, ok := errors.AsType[*process.StartError](err); ok {
		return failed
	}
	return err
}
