package pipeline

import "github.com/toolhost/toolhost/host/internal/call/operation"

// Step is a part of a call whose time [Options.Observe] gets.
type Step int

// The steps that are observed.
const (
	// StepExecute is the time that the tool worked: with repetitions, but without the time in
	// which people answered its questions.
	StepExecute Step = iota + 1
	// StepEnd is the whole call, from request to result. It is the last observation of a call.
	StepEnd
)

// Observed says which call a step belongs to.
type Observed struct {
	// Plugin and Tool are the tool's names in the catalog; both are "" if there is no such tool.
	Plugin, Tool string
	// Status is "success", "error" or "rejected"; it is set with [StepEnd] only.
	Status string
}

// observeExecution reports how long the tool worked.
func (p *Pipeline) observeExecution(c *call, clock *clock) {
	if p.opts.Observe != nil {
		p.opts.Observe(StepExecute, observed(c), clock.ran())
	}
}

// observeEnd reports the end of a call.
func (p *Pipeline) observeEnd(c *call, outcome operation.Outcome) {
	if p.opts.Observe != nil {
		of := observed(c)
		of.Status = outcome.Status()
		p.opts.Observe(StepEnd, of, outcome.Duration)
	}
}

// observed leaves out names that a caller made up.
func observed(c *call) Observed {
	if c.entry == nil {
		return Observed{}
	}
	return Observed{Plugin: c.entry.Plugin, Tool: c.entry.Spec.Name}
}
