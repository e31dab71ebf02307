package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Run carries one call to the plugin that owns the tool and waits for its
// result. It starts the plugin if it is not running. When ctx ends, Run tells
// the plugin to stop and returns at once with code [tool.Timeout] or
// [tool.Canceled]; it never waits for the plugin to agree. A result that has
// come by then is returned all the same.
//
// digest is what [Options.Publish] was told with the tools that the call was
// checked against; "" means any. If the plugin has others by now, the call is
// not sent, and the error says that it can be made again: the new tools are
// published already.
//
// A call that no person has approved is not sent to a process for which
// [Supervisor.Unhidden] holds.
//
// sent reports whether the plugin may have seen the call. Every error is a
// [*tool.Error]. Run does not retry.
func (s *Supervisor) Run(ctx context.Context, plugin, digest string, call tool.Call, sink tool.Sink) (result tool.Result, sent bool, err error) {
	k, i, err := s.take(ctx, plugin, digest, &call)
	if err != nil {
		return tool.Result{}, false, err
	}
	defer k.release(i)
	if call.Context.ApprovalID == "" && i.runner.proc.Report.Unhidden() {
		return tool.Result{}, false, k.unavailable(time.Millisecond, nil, "may see what paths.forbidden covers, and a person has to approve the call")
	}
	// The clock is the host's: it may be stopped while a person is asked.
	callCtx, stop := withoutDeadline(ctx)
	defer stop()
	ticket, revoke := i.wire.tickets.issue(callCtx, sink.Ask, sink.MayRun, len(i.wire.secrets) > 0)
	defer revoke()
	call.Context.Ticket = ticket

	result, how, err := i.wire.call(callCtx, call, k.heardFrom(i, sink))
	if how == running {
		k.giveUp(ctx, i, call.ID)
	}
	sent = how != unsent
	if err != nil {
		return tool.Result{}, sent, k.explain(ctx, i, question{call: call, sent: sent}, err)
	}
	nameLimit(&result, plugin, k.plugin.Limits)
	return result, true, nil
}

// Unhidden reports whether programs that a process of the plugin executes may see what
// is forbidden: there was too much to look for all of it when the process started.
func (s *Supervisor) Unhidden(plugin string) bool {
	k := s.keeper(plugin)
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, i := range k.instances {
		if i.runner.proc.Report.Unhidden() {
			return true
		}
	}
	return false
}

// take completes a call and returns the process for it, started if there is
// none. The caller releases it. Its error is for callers; the plugin has seen
// nothing.
func (s *Supervisor) take(ctx context.Context, plugin, digest string, call *tool.Call) (*keeper, *instance, error) {
	k, i, err := s.acquire(ctx, plugin, call)
	if err != nil {
		return nil, nil, err
	}
	if digest != "" && digest != i.revision {
		k.release(i)
		return nil, nil, k.unavailable(time.Millisecond, nil, "has changed since the call was checked")
	}
	return k, i, nil
}

// acquire is [keeper.acquire] of the keeper that takes the plugin's calls now.
func (s *Supervisor) acquire(ctx context.Context, plugin string, call *tool.Call) (*keeper, *instance, error) {
	for {
		k := s.keeper(plugin)
		if k == nil {
			return nil, nil, tool.Errorf(tool.Unavailable, "there is no plugin %q", plugin)
		}
		if err := k.complete(call); err != nil {
			return nil, nil, tool.Errorf(tool.Internal, "internal error").WithCause(err)
		}
		i, err := k.acquire(ctx, sharedScope)
		if !errors.Is(err, errSuperseded) { // else another one is there, or none
			return k, i, err
		}
	}
}

// withoutDeadline returns a context that ends when ctx does, and of which gRPC
// tells the plugin no deadline. stop frees what it holds.
func withoutDeadline(ctx context.Context) (_ context.Context, stop func()) {
	ended, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, cancel)
	return ended, func() {
		forget()
		cancel()
	}
}

// complete adds what the caller left to the supervisor, and refuses what
// cannot be sent.
func (k *keeper) complete(call *tool.Call) error {
	c := &call.Context
	if len(c.Roots) == 0 && k.s.opts.Workspace != "" {
		c.Roots = []string{k.s.opts.Workspace}
	}
	// What a client says of itself may be anything; no decision hangs on it.
	c.Client = strings.ToValidUTF8(c.Client, "\uFFFD")
	var files []string
	if c.Files != nil {
		files = slices.Concat(c.Files.Sensitive, c.Files.Allowed, c.Files.Forbidden)
	}
	for _, text := range append([]string{call.ID, call.Tool, c.Session, c.User, c.Traceparent, c.ApprovalID, c.UserDir}, slices.Concat(c.Roots, c.Protected, files)...) {
		if !utf8.ValidString(text) {
			return fmt.Errorf("the call of plugin %q holds text that is not valid UTF-8: %q", k.plugin.Name, cutText(text, maxShort))
		}
	}
	if c.UserDir != "" || c.User == "" {
		return nil
	}
	dir, err := k.userDir(c.User)
	if err != nil {
		return fmt.Errorf("make the user's directory: %w", err)
	}
	c.UserDir = dir
	return nil
}

// heardFrom makes the sink note that the plugin is alive.
func (k *keeper) heardFrom(i *instance, sink tool.Sink) tool.Sink {
	note := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		i.heard = time.Now()
	}
	noted := tool.Sink{
		Progress: func(tool.Progress) { note() },
		Chunk:    func(tool.Chunk) { note() },
	}
	if sink.Progress != nil {
		noted.Progress = func(p tool.Progress) { note(); sink.Progress(p) }
	}
	if sink.Chunk != nil {
		noted.Chunk = func(c tool.Chunk) { note(); sink.Chunk(c) }
	}
	return noted
}

// question is what was asked of a plugin that did not answer it.
type question struct {
	call    tool.Call
	sent    bool // the plugin may have seen it
	preview bool // it asked for a preview, which has no effects
}

// explain turns what gRPC says into what a caller can use.
func (k *keeper) explain(ctx context.Context, i *instance, q question, err error) error {
	cause := errors.New(k.s.opts.Redact(cleanLine(err.Error()))) // the plugin's words may be in it
	limit := maxAnswer(q.call.Context.MaxOutput)
	switch code := status.Code(err); {
	case ctx.Err() != nil:
		return endedCall(ctx, cause)
	case errors.Is(err, errNotSendable) && code == codes.ResourceExhausted:
		return tool.Errorf(tool.ResourceExhausted, "the call is larger than %v", tool.ByteSize(toolpluginv1.MaxMessageBytes)).
			WithHint("send less at once").WithCause(cause)
	case errors.Is(err, errNotSendable):
		return tool.Errorf(tool.Internal, "internal error").WithCause(cause)
	case errors.Is(err, errNonsense):
		return tool.Errorf(tool.OutputInvalid, "the plugin %q broke the contract: %v", k.plugin.Name, cause).
			WithHint("this is a mistake in the plugin: tell its author").WithCause(cause)
	case errors.Is(err, errTooLarge):
		return tool.Errorf(tool.ResourceExhausted, "the message of the plugin %q is larger than %v", k.plugin.Name, limit).
			WithHint("ask for less at once").WithCause(cause)
	case answered(err):
		return k.protocolError(code, cause)
	}
	if k.alive(ctx, i) { // it made up the code of a broken connection
		return k.protocolError(status.Code(err), cause)
	}
	return k.explainEnd(ctx, i, q, cause)
}

func (k *keeper) protocolError(code codes.Code, cause error) error {
	return tool.Errorf(tool.OutputInvalid, "the plugin %q answered with a protocol error (%v) instead of a result", k.plugin.Name, code).
		WithHint("this is a mistake in the plugin: tell its author").WithCause(cause)
}

// alive reports whether a process answers. One that has ended is noticed at
// once, since nobody takes the connection.
func (k *keeper) alive(ctx context.Context, i *instance) bool {
	if within(0, i.ended) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, k.s.timing.probe)
	defer cancel()
	return i.wire.healthy(ctx) == nil
}

// explainEnd says how the process ended under a call: gRPC knows only that the
// connection did. It does not outlive ctx: a process that hangs in the kernel may take
// long to end.
func (k *keeper) explainEnd(ctx context.Context, i *instance, q question, err error) error {
	if !endsWithin(ctx, exitGrace, i.ended) {
		i.runner.end("lost its connection to the host")
		if !endsWithin(ctx, deathTimeout, i.ended) {
			err = errors.Join(err, errors.New("the process does not end although it was killed"))
		}
	}
	if ctx.Err() != nil && !within(0, i.ended) {
		return endedCall(ctx, err)
	}
	cause := k.stoppedWhy(i)
	select {
	case <-i.ended:
		if i.crash != nil {
			cause = i.crash.Cause
			err = fmt.Errorf("%s: %w", i.crash.Detail, err)
		}
	default:
	}
	if !q.sent {
		return k.unavailable(time.Millisecond, err, "ended before it took the call: it %s", cause)
	}
	lost := tool.Errorf(tool.PluginCrashed, "the plugin %q %s", k.plugin.Name, cause).WithCause(err)
	k.mu.Lock()
	defer k.mu.Unlock()
	when := "at the next call"
	wait := k.backoff.wait(time.Now())
	if wait > 0 {
		when = fmt.Sprintf("at the first call after %v", wait.Round(time.Millisecond))
	}
	effect := "whether the call had an effect is not known"
	if q.preview {
		effect = "the call was not made"
	}
	return lost.WithRetry(wait).WithHint("%s; the plugin is started again %s", effect, when)
}

// stoppedWhy completes "the plugin ..." for a process that the host has stopped.
func (k *keeper) stoppedWhy(i *instance) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed():
		return "was stopped by the host, which is stopping itself"
	case i.why != "":
		return "was stopped by the host: " + i.why
	}
	return "was stopped by the host"
}

// endedCall is what a caller is told whose own context has ended. err may be
// nil.
func endedCall(ctx context.Context, err error) error {
	cause := errors.Join(context.Cause(ctx), err)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return tool.Errorf(tool.Timeout, "the call took longer than it may").WithCause(cause)
	}
	return tool.Errorf(tool.Canceled, "the call was canceled").WithCause(cause)
}

// nameLimit adds to a tool's own failure which limit it has met: the system's
// words do not tell how much is allowed, nor by whom.
func nameLimit(r *tool.Result, plugin string, l sandbox.Limits) {
	if r.Error == nil || r.Error.Hint != "" {
		return
	}
	message := strings.ToLower(r.Error.Message)
	switch {
	case l.OpenFiles > 0 && strings.Contains(message, "too many open files"):
		r.Error = r.Error.WithHint("the plugin %q met its limit of open files (%d)", plugin, l.OpenFiles)
	case l.FileSize > 0 && strings.Contains(message, "file too large"):
		r.Error = r.Error.WithHint("the plugin %q met its file size limit (%v)", plugin, l.FileSize)
	}
}
