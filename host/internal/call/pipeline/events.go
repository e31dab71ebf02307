package pipeline

import (
	"sync"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/sdk/tool"
)

// busy counts the calls of each session that were announced and have not ended.
type busy struct {
	mu    sync.Mutex // guards calls
	calls map[session]int
}

// add counts a call in or out and returns how many there are then.
func (b *busy) add(s session, n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[s] += n
	if b.calls[s] == 0 {
		delete(b.calls, s)
	}
	return b.calls[s]
}

// announce tells that a call was decided, the first time that it is.
func (p *Pipeline) announce(c *call) {
	if c.announced {
		return
	}
	c.announced = true
	p.busy.add(session{c.Caller.User, c.Caller.Session}, 1)
	p.opts.Events.Publish(c.Caller.User, event.ToolCall{
		ID: c.id, Tool: c.entry.Spec.Name, Plugin: c.entry.Plugin, Session: c.Caller.Session, Client: c.Caller.Client,
		Params: p.recordable(c), Tier: c.tier, Verdict: c.decision.Verdict.String(), Rule: c.decision.Rule,
		RequiresApproval: c.decision.Verdict == policy.Ask || c.decision.Verdict == policy.Confirm,
	})
}

// publishState tells what the agent's session is doing.
func (p *Pipeline) publishState(c *call, state string) {
	p.opts.Events.Publish(c.Caller.User, event.AgentState{Session: c.Caller.Session, State: state})
}

func (p *Pipeline) publishProgress(c *call, report tool.Progress) {
	p.opts.Events.Publish(c.Caller.User, event.ToolProgress{ID: c.id, Progress: report})
}

// publishEnd tells how a call ended, what it changed, and that its session is
// idle if it was the last one.
func (p *Pipeline) publishEnd(c *call, outcome Outcome) {
	p.opts.Events.Publish(c.Caller.User, event.ResultOf(outcome.ID, outcome.Tool, outcome.Result, outcome.Duration))
	for _, effect := range effects(c, outcome) {
		if effect.Kind == "file.changed" {
			p.opts.Events.Publish(c.Caller.User, event.FileChanged{ID: c.id, Path: effect.Target, Operation: effect.Operation})
		}
	}
	if c.announced && p.busy.add(session{c.Caller.User, c.Caller.Session}, -1) == 0 {
		p.publishState(c, event.Idle)
	}
}

// effects are what a call has changed itself: a tool of the host's own tells of
// what another call has, which was told when that one ended.
func effects(c *call, outcome Outcome) []tool.Effect {
	if c.entry != nil && c.entry.OfHost() {
		return nil
	}
	return outcome.Result.Effects
}
