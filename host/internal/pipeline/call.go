package pipeline

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/toolhost/toolhost/host/internal/catalog"
	"github.com/toolhost/toolhost/host/internal/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

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
}

// run takes a call through every step up to its result. The error is a
// [*tool.Error] for the caller, or something for the log. A panic on the way,
// in a runner or over what a plugin or a caller sent, is an error like any
// other.
func (p *Pipeline) run(ctx context.Context, c *call) (result tool.Result, err error) {
	defer func() {
		if value := recover(); value != nil {
			p.opts.Logger.Error("panic in a call", "call", c.id, "panic", value, "stack", string(debug.Stack()))
			result, err = tool.Result{}, errPanic
		}
	}()
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
	if result, err = p.carry(ctx, c); err != nil {
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
	if _, err := c.entry.TierOf(c.arguments.Values); err != nil {
		return err
	}
	return nil
}

// carry hands the call to the plugin and waits for the result, the tool's
// time-out or the end of ctx.
func (p *Pipeline) carry(ctx context.Context, c *call) (tool.Result, error) {
	late := tool.Errorf(tool.Timeout, "%s took longer than %s and was stopped", c.entry.Spec.Name, c.entry.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, c.entry.Timeout, late)
	defer cancel()

	result, err := p.opts.Runner.Run(ctx, c.entry.Plugin, p.toolCall(c), c.Sink)
	if err != nil {
		return tool.Result{}, endOf(ctx, err)
	}
	return result, nil
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
