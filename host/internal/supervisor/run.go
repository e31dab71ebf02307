package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toolhost/toolhost/host/internal/sandbox"
	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

var (
	// ErrNotSent is in the chain of an error of [Supervisor.Run] if the plugin
	// has certainly not seen the call.
	ErrNotSent = errors.New("the call was not sent")
	// ErrLost is in the chain of an error of [Supervisor.Run] if the plugin
	// may have seen the call, and how it ended is not known.
	ErrLost = errors.New("the call was lost")
)

// Run carries one call to the plugin that owns the tool and waits for its
// result. It starts the plugin if it is not running. When ctx ends, Run tells
// the plugin to stop and returns at once with code [tool.Timeout] or
// [tool.Canceled]; it never waits for the plugin to agree.
//
// Every error is a [*tool.Error] with [ErrNotSent] or [ErrLost] in its chain.
// Run does not retry.
func (s *Supervisor) Run(ctx context.Context, plugin string, call tool.Call, sink tool.Sink) (tool.Result, error) {
	k, ok := s.keepers[plugin]
	if !ok {
		return tool.Result{}, tool.Errorf(tool.Unavailable, "there is no plugin %q", plugin).WithCause(ErrNotSent)
	}
	if err := k.complete(&call.Context); err != nil {
		return tool.Result{}, tool.Errorf(tool.Internal, "internal error").WithCause(errors.Join(ErrNotSent, err))
	}
	i, err := k.acquire(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	defer k.release(i)

	// gRPC would tell the plugin ctx's deadline, but the clock is the host's:
	// it may be stopped while a person is asked.
	callCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()

	result, sent, err := i.wire.call(callCtx, call, k.heardFrom(i, sink))
	if err != nil {
		return tool.Result{}, k.explain(ctx, i, sent, err)
	}
	nameLimit(&result, plugin, k.plugin.Limits)
	return result, nil
}

// complete adds what the caller left to the supervisor.
func (k *keeper) complete(c *tool.Context) error {
	if len(c.Roots) == 0 && k.s.opts.Workspace != "" {
		c.Roots = []string{k.s.opts.Workspace}
	}
	if c.UserDir != "" || c.User == "" {
		return nil
	}
	// A hash: a user's name may hold anything, "../" too.
	sum := sha256.Sum256([]byte(c.User))
	c.UserDir = filepath.Join(k.stateDir(), "users", hex.EncodeToString(sum[:16]))
	if err := os.MkdirAll(c.UserDir, 0o700); err != nil {
		return fmt.Errorf("make the user's directory: %w", err)
	}
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

// explain turns what gRPC says into what a caller can use.
func (k *keeper) explain(ctx context.Context, i *instance, sent bool, err error) error {
	outcome := ErrLost
	if !sent {
		outcome = ErrNotSent
	}
	name := k.plugin.Name
	switch code := status.Code(err); {
	case ctx.Err() != nil:
		return endedCall(ctx, outcome)
	case errors.Is(err, errNonsense):
		return tool.Errorf(tool.OutputInvalid, "the plugin %q broke the contract: %v", name, err).
			WithHint("this is a mistake in the plugin: tell its author").WithCause(errors.Join(outcome, err))
	case code == codes.ResourceExhausted:
		return tool.Errorf(tool.ResourceExhausted, "the message of the plugin %q is larger than %v", name, tool.ByteSize(toolpluginv1.MaxMessageBytes)).
			WithHint("ask for less at once").WithCause(errors.Join(outcome, err))
	case answered(err):
		return k.protocolError(outcome, err)
	}
	if k.alive(ctx, i) { // it made up the code of a broken connection
		return k.protocolError(outcome, err)
	}
	return k.explainEnd(i, outcome, err)
}

func (k *keeper) protocolError(outcome, err error) error {
	return tool.Errorf(tool.OutputInvalid, "the plugin %q answered with a protocol error (%v) instead of a result", k.plugin.Name, status.Code(err)).
		WithHint("this is a mistake in the plugin: tell its author").WithCause(errors.Join(outcome, err))
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
// connection did.
func (k *keeper) explainEnd(i *instance, outcome, err error) error {
	if !within(exitGrace, i.ended) {
		i.runner.end("lost its connection to the host")
		if !within(deathTimeout, i.ended) {
			err = errors.Join(err, errors.New("the process does not end although it was killed"))
		}
	}
	cause := "was stopped by the host"
	select {
	case <-i.ended:
		if i.crash != nil {
			cause = i.crash.Cause
			err = fmt.Errorf("%s: %w", i.crash.Detail, err)
		}
	default:
	}
	if errors.Is(outcome, ErrNotSent) {
		return k.unavailable(time.Millisecond, err, "ended before it took the call: it %s", cause)
	}
	lost := tool.Errorf(tool.PluginCrashed, "the plugin %q %s", k.plugin.Name, cause).WithCause(errors.Join(outcome, err))
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.backoff.broken {
		return lost.WithHint("it crashed %d times within %v and stays off until an operator has looked at it: toolhost plugins list", breakerCrashes, breakerWindow)
	}
	return lost.WithRetry(k.backoff.wait(time.Now())).
		WithHint("whether the call had an effect is not known; the plugin is started again at the next call")
}

// endedCall is what a caller is told whose own context has ended.
func endedCall(ctx context.Context, outcome error) error {
	cause := errors.Join(outcome, context.Cause(ctx))
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
