package pipeline

import (
	"context"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Runner carries a call to whoever owns the tool.
type Runner interface {
	// Run returns the tool's result, or an error if there is none: a
	// [*tool.Error] that the caller may read, or anything else for the log.
	// When ctx ends, Run tells the tool to stop and returns at once.
	//
	// digest is that of the program whose tools the call was checked against.
	// If another one runs by now, the call is not sent.
	//
	// sent reports whether the tool may have seen the call. If it has not, the
	// call can be made again, whatever it does.
	Run(ctx context.Context, plugin, digest string, call tool.Call, sink tool.Sink) (result tool.Result, sent bool, err error)
	// Preview says what the call would do, without doing it. Its errors are
	// those of Run; one of the tool itself says that the call cannot succeed.
	Preview(ctx context.Context, plugin, digest string, call tool.Call) (tool.Preview, error)
}

// Hider is a [Runner] that knows of plugins from which it could not hide all that is
// forbidden.
type Hider interface {
	// Unhidden reports whether programs that the plugin executes may see what is
	// forbidden. Run does not send such a plugin a call that no person has approved.
	Unhidden(plugin string) bool
}

// unhidden reports whether a person has to approve a call for what its plugin may see.
func (p *Pipeline) unhidden(c *call) bool {
	hider, ok := p.opts.Runner.(Hider)
	return ok && hider.Unhidden(c.entry.Plugin)
}
