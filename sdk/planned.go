package sdk

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Change is a change that is planned and not yet made; see [AddPlanned]. If it has a method
// Close() without a result, AddPlanned calls it at the end of the call, to free everything that
// the plan opened or locked.
type Change[Out any] interface {
	// State returns a text that identifies everything the plan depends on. The
	// approval of a preview holds as long as the text stays the same.
	State(ctx context.Context) (string, error)
	// Show returns the text for the person who approves the change: a summary of one line, and
	// the details, such as a unified diff. It changes nothing.
	Show(ctx context.Context) (summary string, content []tool.Content, err error)
	// Apply makes the change that was planned, or fails without a change.
	Apply(ctx context.Context) (Out, error)
}

// AddPlanned adds a tool that changes something. plan reads the state that the
// change depends on, refuses a call that cannot succeed, and changes nothing. With an
// error it returns no Change: it frees what it opened itself.
// For a preview AddPlanned plans the change and shows it. For a call it plans the
// change again, returns [tool.Conflict] if its state is not the one of the
// approved preview, and applies it. In and Out are as for [AddTool].
func AddPlanned[In, Out any](p *Plugin, spec tool.Spec, plan func(context.Context, *Call, In) (Change[Out], error)) {
	if plan == nil {
		p.mistake(spec.Name, "", "has no function that plans")
		return
	}
	run := func(ctx context.Context, call *Call, in In) (out Out, err error) {
		c, err := planned(ctx, call, in, plan)
		defer closeChange(c)
		approved := call.PreviewDigest()
		var digest []byte
		if err == nil && len(approved) > 0 {
			digest, err = digestOf(ctx, c)
		}
		if err := CheckPreview(approved, digest, err); err != nil {
			return out, err
		}
		return c.Apply(ctx)
	}
	preview := func(ctx context.Context, call *Call, in In) (tool.Preview, error) {
		c, err := planned(ctx, call, in, plan)
		if err != nil {
			return tool.Preview{}, err
		}
		defer closeChange(c)
		digest, err := digestOf(ctx, c)
		if err != nil {
			return tool.Preview{}, err
		}
		summary, content, err := c.Show(ctx)
		if err != nil {
			return tool.Preview{}, err
		}
		return tool.Preview{Summary: summary, Content: content, Digest: digest}, nil
	}
	add(p, spec, run, preview)
}

// planned returns the change of a call, or an error.
func planned[In, Out any](ctx context.Context, call *Call, in In, plan func(context.Context, *Call, In) (Change[Out], error)) (Change[Out], error) {
	c, err := plan(ctx, call, in)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, errors.New("the tool has planned nothing and returned no error")
	}
	return c, nil
}

func digestOf[Out any](ctx context.Context, c Change[Out]) ([]byte, error) {
	state, err := c.State(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(state))
	return sum[:], nil
}

func closeChange(c any) {
	if closer, ok := c.(interface{ Close() }); ok {
		closer.Close()
	}
}
