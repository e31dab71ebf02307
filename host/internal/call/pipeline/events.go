package pipeline

import (
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/sdk/tool"
)

// busy counts the announced calls of each session that have not ended.
type busy struct {
	mu    sync.Mutex // guards calls
	calls map[session]int
}

// add adds n to the calls of a session and returns their number.
func (b *busy) add(s session, n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[s] += n
	if b.calls[s] == 0 {
		delete(b.calls, s)
	}
	return b.calls[s]
}

// announce publishes the decision about a call, once for each call.
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

// publishState publishes what the agent's session is doing.
func (p *Pipeline) publishState(c *call, state string) {
	p.opts.Events.Publish(c.Caller.User, event.AgentState{Session: c.Caller.Session, State: state})
}

func (p *Pipeline) publishProgress(c *call, report tool.Progress) {
	c.silence.restart()
	p.opts.Events.Publish(c.Caller.User, event.ToolProgress{ID: c.id, Progress: report})
}

// remindEvery is how long a tool may be silent before the host reports what the call does.
const remindEvery = 10 * time.Second

// remind reports what a call does while its tool is silent.
func (p *Pipeline) remind(c *call) { p.publishProgress(c, c.operation.Remind()) }

// silence calls a function whenever remindEvery passes without a report. The zero value does
// nothing, nor does a stopped one.
type silence struct {
	mu    sync.Mutex // guards timer
	timer *time.Timer
}

// start begins to wait for reports. Only the first call has an effect.
func (s *silence) start(remind func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		return
	}
	s.timer = time.AfterFunc(remindEvery, func() {
		s.restart()
		remind()
	})
}

// restart records a report.
func (s *silence) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Reset(remindEvery)
	}
}

// stop ends the calls. One that has just begun may still run.
func (s *silence) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// publishEnd publishes how a call ended and what it changed. If it was its session's last
// call, it also publishes that the session is idle.
func (p *Pipeline) publishEnd(c *call, outcome operation.Outcome) {
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

// effects returns the changes that a call made itself. A result of the host's own tools may
// list those of another call, which were published when that call ended.
func effects(c *call, outcome operation.Outcome) []tool.Effect {
	if c.entry != nil && c.entry.OfHost() {
		return nil
	}
	return outcome.Result.Effects
}
