package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/toolhost/toolhost/host/internal/catalog"
	"github.com/toolhost/toolhost/host/internal/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxRounds bounds how often one call is checked anew because the tool that it
// was checked against was replaced.
const maxRounds = 3

// Call runs one call and always returns its outcome: at the latest when the
// tool's time-out is over or ctx ends. The steps are in the order that the
// security of the host rests on.
func (p *Pipeline) Call(ctx context.Context, req Request) Outcome {
	c := &call{Request: req, id: newCallID(), started: time.Now()}
	result, err := p.run(ctx, c)
	return p.finish(c, result, err)
}

// call is one call on its way.
type call struct {
	Request
	id      string
	started time.Time

	entry     *catalog.Entry   // after it was looked up
	arguments schema.Arguments // after they were checked
	tier      tool.Tier        // after it was decided
}

// run takes a call through its steps, and again from the start if the tool was
// replaced on the way: what was checked against one program is never sent to
// another. A panic on the way, in a runner or over what a plugin or a caller
// sent, is an error like any other.
func (p *Pipeline) run(ctx context.Context, c *call) (result tool.Result, err error) {
	defer func() {
		if value := recover(); value != nil {
			p.opts.Logger.Error("panic in a call", "call", c.id, "panic", value, "stack", string(debug.Stack()))
			result, err = tool.Result{}, errPanic
		}
	}()
	for range maxRounds {
		if result, err = p.steps(ctx, c); !errors.Is(err, errReplaced) {
			break
		}
	}
	return result, err
}

// steps takes a call through every step up to its result. The error is a
// [*tool.Error] for the caller, or something for the log, and [errReplaced]
// if the call can be made anew.
func (p *Pipeline) steps(ctx context.Context, c *call) (tool.Result, error) {
	if err := p.lookUp(c); err != nil {
		return tool.Result{}, err
	}
	if err := p.check(c); err != nil {
		return tool.Result{}, err
	}
	if err := p.decide(c); err != nil {
		return tool.Result{}, err
	}
	release, err := p.slot(ctx, c)
	if err != nil {
		return tool.Result{}, err
	}
	defer release()
	result, err := p.carry(ctx, c)
	if err != nil {
		return tool.Result{}, err
	}
	return p.checkResult(c, result), nil
}

// lookUp finds the tool by name or alias.
func (p *Pipeline) lookUp(c *call) error {
	entry, err := p.opts.Catalog.Lookup(c.Tool)
	if err != nil {
		return err
	}
	c.entry = entry
	return nil
}

// check reads the arguments and makes them canonical. From here on, the
// canonical text is what is shown, recorded and sent.
func (p *Pipeline) check(c *call) error {
	value, err := schema.Read(c.Arguments)
	if err != nil {
		return err
	}
	if c.arguments, err = c.entry.Schema.Check(value); err != nil {
		return err
	}
	return nil
}

// decide refuses a call whose tier, by its arguments, is above what is
// offered.
func (p *Pipeline) decide(c *call) error {
	tier, err := c.entry.TierOf(c.arguments.Values)
	if err != nil {
		return err
	}
	c.tier = tier
	return nil
}

// carry hands the call to the plugin and waits for the result, the tool's
// time-out or the end of ctx. The error is [errReplaced] if the plugin has not
// got the call and the tool is another one by now.
func (p *Pipeline) carry(ctx context.Context, c *call) (tool.Result, error) {
	late := tool.Errorf(tool.Timeout, "%s took longer than %s and was stopped", c.entry.Spec.Name, c.entry.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, c.entry.Timeout, late)
	defer cancel()

	result, sent, err := p.opts.Runner.Run(ctx, c.entry.Plugin, c.entry.Digest, p.toolCall(c), c.Sink)
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() == nil && !sent && p.replaced(c):
		return tool.Result{}, fmt.Errorf("%w: %w", errReplaced, err)
	}
	return tool.Result{}, endOf(ctx, err)
}

// replaced reports whether the tool is no longer the one that the call was
// checked against.
func (p *Pipeline) replaced(c *call) bool {
	now, err := p.opts.Catalog.Lookup(c.Tool)
	return err != nil || now != c.entry
}

// toolCall is the call as the plugin gets it.
func (p *Pipeline) toolCall(c *call) tool.Call {
	return tool.Call{
		ID:        c.id,
		Tool:      c.entry.Spec.Name,
		Arguments: c.arguments.Canonical,
		Context: tool.Context{
			Session:     c.Caller.Session,
			User:        c.Caller.User,
			Client:      c.Caller.Client,
			Traceparent: c.Traceparent,
			Attempt:     1,
			MaxOutput:   c.entry.MaxOutput,
			Roots:       p.opts.Roots,
		},
	}
}

// newCallID returns an id that sorts by time.
func newCallID() string {
	id, err := uuid.NewV7()
	if err != nil {
		// crypto/rand ends the process rather than fail, so that this is for
		// the signature only.
		id = uuid.New()
	}
	return "tc_" + id.String()
}
