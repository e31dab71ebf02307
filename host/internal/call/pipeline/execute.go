package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxAttempts is how often the plugin may receive one call.
	maxAttempts = 3
	// firstPause is the longest random pause before the second attempt. It doubles with each
	// attempt.
	firstPause = 200 * time.Millisecond
	// maxPause is the longest pause that a plugin may ask for. A call that would have to wait
	// longer fails, and its error says how long to wait.
	maxPause = time.Second
)

// execute sends the call to the plugin and waits for the result. It repeats the call only if
// that is harmless: the call was certainly not sent, or it changes nothing and may succeed
// next time. All attempts share the tool's time-out, which stops while the tool asks its user.
func (p *Pipeline) execute(caller context.Context, c *call) (tool.Result, error) {
	timeout := tool.Errorf(tool.Timeout, "%s took longer than %s and was stopped", c.entry.Spec.Name, c.entry.Timeout)
	ctx, clock, cancel := withClock(caller, c.entry.Timeout, timeout)
	defer cancel()
	defer p.observeExecution(c, clock)
	c.network.begin()
	defer p.endNetwork(ctx, c)
	for {
		c.attempts++
		result, sent, err := p.attempt(ctx, c, clock)
		c.sent = c.sent || sent
		switch {
		case errors.Is(err, errReplaced):
			return tool.Result{}, err
		case ctx.Err() == nil && c.attempts < maxAttempts && repeatable(c, sent, result, err):
			if err := pause(ctx, c.attempts, wanted(result, err)); err != nil {
				return tool.Result{}, lost(c, c.sent, err)
			}
			continue
		case err != nil:
			return tool.Result{}, lost(c, sent, err)
		case p.stale(caller, c, result):
			return result, errStale
		}
		return result, nil
	}
}

// attempt sends the call once. The error is [errReplaced] if the plugin has not received the
// call and either the tool has been replaced, or a person must approve the call because the
// plugin's process may see forbidden files.
func (p *Pipeline) attempt(ctx context.Context, c *call, clock *clock) (tool.Result, bool, error) {
	c.dropStream() // of the previous attempt
	asker := c.operation.NewAsker()
	defer asker.Close()
	sink := p.sinkOf(c)
	sink.Ask = func(ctx context.Context, q tool.Question) (tool.Answer, error) {
		defer clock.stop()() // the time for an answer bounds the wait instead
		return p.askUser(ctx, c, asker, q)
	}
	sink.NetworkPerDay = c.Caller.Limits.NetworkPerDay
	sink.Connect = func(connection context.Context, to tool.Destination, wanted bool) (tool.Permission, *tool.Error) {
		return p.connect(connection, ctx, c, clock, to, wanted)
	}
	call := p.toolCall(c)
	tree, err := p.commandTree(c)
	if err != nil {
		return tool.Result{}, false, err
	}
	if err := p.refuseStopped(c); err != nil {
		return tool.Result{}, false, err
	}
	if call.CommandTree = tree; tree != nil {
		call.JudgedUntil = p.advance.until() // before the settings are loaded, for Apply
		call.Judged = p.current(c).judged(c)
		sink.MayRun = func(e tool.Execution) *tool.Error { return p.mayRun(c, e) }
	}
	result, sent, err := p.opts.Runner.Run(ctx, c.entry.Plugin, c.entry.Digest, call, sink)
	switch {
	case err == nil:
		return result, true, nil
	case ctx.Err() == nil && !sent && (p.replaced(c) || c.approval.ID == "" && p.unhidden(c)):
		return tool.Result{}, false, fmt.Errorf("%w: %w", errReplaced, err)
	}
	return tool.Result{}, sent, endOf(ctx, err)
}

// sinkOf returns the sink for the plugin's reports, which go to the current holders of the
// operation.
func (p *Pipeline) sinkOf(c *call) tool.Sink {
	return tool.Sink{
		Progress: func(report tool.Progress) { p.publishProgress(c, c.operation.Progress(report)) },
		Chunk:    func(chunk tool.Chunk) { p.put(c, chunk.Data); c.operation.Chunk(chunk) },
	}
}

// askUser passes a tool's question to its user and waits for the answer.
func (p *Pipeline) askUser(ctx context.Context, c *call, asker *operation.Asker, q tool.Question) (tool.Answer, error) {
	if strings.TrimSpace(q.Text) == "" {
		return tool.Answer{}, tool.Errorf(tool.InvalidArgument, "the tool's question is empty")
	}
	form, err := schema.CompileForm(q.Schema)
	if err != nil {
		return tool.Answer{}, tool.Errorf(tool.InvalidArgument, "the schema of the tool's question is refused: %v", err).
			WithHint("this is a mistake in the plugin: tell its author")
	}
	question, err := asker.Open(operation.Question{
		Plugin: c.entry.Plugin, Tool: c.entry.Spec.Name, Text: q.Text, Expires: time.Now().Add(p.opts.AnswerTimeout),
	}, form)
	if err != nil {
		return tool.Answer{}, err
	}
	defer question.Close()
	p.publishState(c, event.AwaitingInput)
	answer, err := question.Wait(ctx, p.opts.AnswerTimeout)
	if ctx.Err() == nil { // otherwise the end of the call publishes the state
		p.publishState(c, event.ToolExecution)
	}
	return answer, err
}

// replaced reports whether the tool has changed since the call was checked.
func (p *Pipeline) replaced(c *call) bool {
	now, err := p.opts.Catalog.LookupFor(c.Tool, c.Caller.MayUse)
	return err != nil || now != c.entry
}

// repeatable reports whether a call that ended this way may be sent again.
func repeatable(c *call, sent bool, result tool.Result, err error) bool {
	failure := result.Error
	if err != nil {
		failure = tool.AsError(err)
	}
	switch {
	case failure == nil || failure.RetryAfter > maxPause:
		return false
	case c.entry.OfHost(): // call_wait returns the result of a call that was already repeated
		return false
	case failure.Code == tool.PluginCrashed: // the call may be the cause, so report it at once
		return false
	case !sent:
		return failure.Retryable
	case c.tier != tool.ReadOnly:
		return false
	}
	return failure.Retryable || failure.Code == tool.Timeout
}

// wanted returns the pause that the plugin asked for.
func wanted(result tool.Result, err error) time.Duration {
	if err != nil {
		return tool.AsError(err).RetryAfter
	}
	return result.Error.RetryAfter // a result without an error is not repeated
}

// pause waits before the next attempt: for the time that the plugin asked for, plus a random
// part of a time that doubles with each attempt. So calls that failed together are not
// repeated together.
func pause(ctx context.Context, attempts int, wanted time.Duration) error {
	timer := time.NewTimer(wanted + rand.N(firstPause<<(attempts-1))) //nolint:gosec // only spreads load
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return operation.Cause(ctx)
	}
}

// lost returns the error of a call that the plugin may have seen but did not answer. If the
// call changes something, its outcome is unknown.
func lost(c *call, sent bool, err error) error {
	failure := tool.AsError(err)
	if !sent || c.tier == tool.ReadOnly {
		return err
	}
	const hint = "see whether it has had its effect before you call it again"
	if failure.Code == tool.Timeout || failure.Code == tool.Canceled {
		return failure.WithHint(hint)
	}
	return tool.Errorf(tool.UnknownOutcome, "the outcome of %s (call %s) is unknown: %s", c.entry.Spec.Name, c.id, failure.Message).
		WithHint(hint).WithCause(err)
}

// previewCall returns the call as the plugin receives it for a preview. A person reads the
// preview, so the caller's form of results does not apply.
func (p *Pipeline) previewCall(c *call) tool.Call {
	call := p.toolCall(c)
	call.Context.MaxOutput = c.entry.MaxOutput
	return call
}

// toolCall returns the call as the plugin receives it.
func (p *Pipeline) toolCall(c *call) tool.Call {
	settings := p.current(c)
	rules := settings.Policy
	call := tool.Call{
		ID:        c.id,
		Tool:      c.entry.Spec.Name,
		Arguments: c.arguments.Canonical,
		Tier:      c.tier,
		Context: tool.Context{
			Session:     c.Caller.Session,
			User:        c.Caller.User,
			Client:      c.Caller.Client,
			Traceparent: c.Traceparent,
			Attempt:     max(1, c.attempts),
			MaxOutput:   min(c.budget(), c.entry.MaxOutput),
			Roots:       settings.Roots,
			Protected:   rules.Protected(),
			Files: &tool.FilePolicy{
				Sensitive: rules.Sensitive(), Allowed: c.sensitive,
				Protect: rules.Presets(c.entry.Plugin), Forbidden: rules.Forbidden(),
			},
			ApprovalID: c.approval.ID,
		},
	}
	if c.preview != nil {
		call.Context.PreviewDigest = c.preview.Digest
	}
	return call
}

// clock ends a context when its time is up. It can be stopped while a person is asked.
type clock struct {
	total   time.Duration
	mu      sync.Mutex // guards the fields below
	timer   *time.Timer
	left    time.Duration // when it was last started
	started time.Time
	stops   int // calls of stop without a call of start
	over    bool
}

// withClock returns a context that ends with ctx, or with expired as its cause when the clock
// has run for d. The caller must call cancel.
func withClock(ctx context.Context, d time.Duration, expired error) (context.Context, *clock, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	k := &clock{total: d, left: d, started: time.Now()}
	k.timer = time.AfterFunc(d, func() { end(expired) })
	return ctx, k, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.over = true
		k.timer.Stop()
		end(nil)
	}
}

// ran returns how long the clock has run.
func (k *clock) ran() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	ran := k.total - k.left
	if k.stops == 0 {
		ran += time.Since(k.started)
	}
	return ran
}

// stop stops the clock until start is called. start has an effect only once.
func (k *clock) stop() (start func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stops++; k.stops == 1 {
		k.timer.Stop() // if it has fired, the context has ended
		k.left -= time.Since(k.started)
	}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.stops--; k.stops == 0 && !k.over {
			k.started = time.Now()
			k.timer.Reset(k.left)
		}
	}
}
