package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxAttempts bounds how often one call is handed to its plugin.
	maxAttempts = 3
	// firstPause is the longest pause before the second attempt; each further
	// one doubles it.
	firstPause = 200 * time.Millisecond
	// maxPause is the longest that a plugin may ask to be waited for; a call
	// that would have to wait longer fails, and the caller is told how long.
	maxPause = time.Second
)

// carry hands the call to the plugin and waits for the result. It hands it over
// again only if that can do no harm: it was certainly not sent, or it changes
// nothing and may succeed the next time. All of it has the tool's time-out, which
// stops while the tool asks its user.
func (p *Pipeline) carry(caller context.Context, c *call) (tool.Result, error) {
	late := tool.Errorf(tool.Timeout, "%s took longer than %s and was stopped", c.entry.Spec.Name, c.entry.Timeout)
	ctx, clock, cancel := withClock(caller, c.entry.Timeout, late)
	defer cancel()
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

// attempt hands the call over once. The error is [errReplaced] if the plugin has not
// got the call and the tool is another one by now, or a person has to approve the call
// for what the process may see that it would have got to.
func (p *Pipeline) attempt(ctx context.Context, c *call, clock *clock) (tool.Result, bool, error) {
	c.dropStream() // of the attempt before
	asker := &asker{p: p, c: c, clock: clock}
	c.flight.letAsk(asker)
	defer c.flight.letAsk(nil)
	sink := c.flight.toSink()
	sink.Ask = asker.ask
	call := p.toolCall(c)
	tree, err := p.commandTree(c)
	if err != nil {
		return tool.Result{}, false, err
	}
	if call.CommandTree = tree; tree != nil {
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

// replaced reports whether the tool is no longer the one that the call was
// checked against.
func (p *Pipeline) replaced(c *call) bool {
	now, err := p.opts.Catalog.Lookup(c.Tool)
	return err != nil || now != c.entry
}

// repeatable reports whether a call may be handed over again after it has ended
// like this.
func repeatable(c *call, sent bool, result tool.Result, err error) bool {
	failure := result.Error
	if err != nil {
		failure = tool.AsError(err)
	}
	switch {
	case failure == nil || failure.RetryAfter > maxPause:
		return false
	case c.entry.OfHost(): // what it tells of was repeated as far as it may be
		return false
	case failure.Code == tool.PluginCrashed: // its caller is told at once: the call may be why
		return false
	case !sent:
		return failure.Retryable
	case c.tier != tool.ReadOnly:
		return false
	}
	return failure.Retryable || failure.Code == tool.Timeout
}

// wanted is how long the plugin wants to be waited for.
func wanted(result tool.Result, err error) time.Duration {
	if err != nil {
		return tool.AsError(err).RetryAfter
	}
	return result.Error.RetryAfter // a result without an error is not repeated
}

// pause waits before the next attempt: as long as the plugin wants, and for a
// random part of a time that doubles with each attempt, so that calls which
// failed together do not come back together.
func pause(ctx context.Context, attempts int, wanted time.Duration) error {
	timer := time.NewTimer(wanted + rand.N(firstPause<<(attempts-1))) //nolint:gosec // spreads load; nothing rests on its being secret
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

// lost is the error of a call that the plugin may have seen and has not
// answered. Of one that changes something nobody knows whether it has.
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

// files is what the plugin is told of files by their names.
func (p *Pipeline) files(c *call) *tool.FilePolicy {
	rules := p.rules()
	return &tool.FilePolicy{Sensitive: rules.Sensitive(), Allowed: c.sensitive, Protect: rules.Presets(c.entry.Plugin), Forbidden: rules.Forbidden()}
}

// toolCall is the call as the plugin gets it.
func (p *Pipeline) toolCall(c *call) tool.Call {
	call := tool.Call{
		ID:        c.id,
		Tool:      c.entry.Spec.Name,
		Arguments: c.arguments.Canonical,
		Context: tool.Context{
			Session:     c.Caller.Session,
			User:        c.Caller.User,
			Client:      c.Caller.Client,
			Traceparent: c.Traceparent,
			Attempt:     max(1, c.attempts),
			MaxOutput:   c.entry.MaxOutput,
			Roots:       p.roots(),
			Protected:   p.rules().Protected(),
			Files:       p.files(c),
			ApprovalID:  c.approval.ID,
		},
	}
	if c.preview != nil {
		call.Context.PreviewDigest = c.preview.Digest
	}
	return call
}
