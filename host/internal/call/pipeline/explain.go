package pipeline

import (
	"encoding/json"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Explanation says what would happen to a call.
type Explanation struct {
	policy.Decision

	Tool      string          `json:"tool"`
	Plugin    string          `json:"plugin"`
	Tier      tool.Tier       `json:"tier"`
	Arguments json.RawMessage `json:"arguments"`
	// Repairs are what the arguments needed to fit.
	Repairs []schema.Repair `json:"repairs,omitempty"`
	// Commands are the simple commands of arguments that are shell commands, and
	// Problems why they may not be all that runs.
	Commands []command.Segment `json:"commands,omitempty"`
	Problems []command.Problem `json:"problems,omitempty"`
}

// Explain decides a call without running it, asking anybody or counting it. The
// error is that of the call if its tool or its arguments are wrong.
func (p *Pipeline) Explain(req Request) (Explanation, error) {
	c := &call{Request: req}
	if err := p.lookUp(c); err != nil {
		return Explanation{}, err
	}
	if err := c.check(); err != nil {
		return Explanation{}, err
	}
	e := Explanation{
		Decision: p.judge(c), Tool: c.entry.Spec.Name, Plugin: c.entry.Plugin, Tier: c.tier,
		Arguments: p.recordable(c), Repairs: c.arguments.Repairs,
	}
	for _, read := range c.commands {
		e.Commands, e.Problems = append(e.Commands, read.Line.Segments...), append(e.Problems, read.Line.Problems...)
	}
	return e, nil
}
