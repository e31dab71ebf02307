package operation

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Progress passes a report of the tool on to the sink and the watchers. It
// returns the report as they get it.
func (o *Operation) Progress(p tool.Progress) tool.Progress { return o.sink.report(p) }

// Chunk passes a piece of the tool's output on to the sink.
func (o *Operation) Chunk(c tool.Chunk) { o.sink.chunk(c) }

// Remind reports what the call does, as [Operation.Progress] does, for callers
// that hear nothing from the tool.
func (o *Operation) Remind() tool.Progress {
	o.mu.Lock()
	message := o.activity()
	o.mu.Unlock()
	return o.sink.remind(message)
}

// activity describes to a model what the call is doing. o.mu is held.
func (o *Operation) activity() string {
	waited := time.Since(o.call.Started).Round(time.Second)
	switch o.state {
	case AwaitingApproval:
		return "waiting for a person to approve " + o.approval
	case AwaitingInput:
		return fmt.Sprintf("%s waits for the user to answer its question", o.call.Tool)
	case Queued:
		return fmt.Sprintf("%s waits for its turn: %s runs first", o.call.Tool, o.waitsFor.seenBy(o))
	case Running, Done:
	}
	return fmt.Sprintf("%s has taken %s so far", o.call.Tool, waited)
}

// seenBy names a call to the caller of another one, who must not learn the ids of calls
// outside its own session.
func (t Turn) seenBy(o *Operation) string {
	switch by := o.call.Caller; {
	case t.User != by.User:
		return "a call of another user"
	case t.Session != by.Session:
		return "a call of " + t.Tool + " in another session"
	}
	return fmt.Sprintf("%s (%s)", t.Tool, t.Call)
}

// sink passes reports on to a sink that can be replaced.
//
// "The progress value MUST increase with each notification" (MCP, basic/utilities/progress),
// so the host's reminders and the tool's reports share one sequence of numbers. Without
// reminders they are the tool's own. After reminders, a tool without a total counts on from
// them; for a tool with a total, its numbers fill the range from the reminders up to
// [sink.total]. A reminder between the reports of a tool with a total advances by a hundredth
// of the remaining range.
type sink struct {
	mu       sync.Mutex // guards everything below, and keeps reports one at a time
	to       tool.Sink
	watchers []*watcher
	last     tool.Progress // the numbers of the last report
	before   float64       // how many reminders the tool counts on from
}

// watcher gets the progress beside the sink.
type watcher struct{ progress func(tool.Progress) }

func (s *sink) watch(progress func(tool.Progress)) (stop func()) {
	w := &watcher{progress}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = append(s.watchers, w)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watchers = slices.DeleteFunc(s.watchers, func(other *watcher) bool { return other == w })
	}
}

func (s *sink) set(to tool.Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
}

func (s *sink) get() tool.Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to
}

// report numbers and sends a report of the tool.
func (s *sink) report(p tool.Progress) tool.Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.before == 0:
	case p.Total > 0:
		p.Progress, p.Total = s.before+(s.total()-s.before)*p.Progress/p.Total, s.total()
	default:
		p.Progress += s.before
	}
	return s.send(p)
}

// total is the total of a tool's reports after reminders, which have none.
func (s *sink) total() float64 { return max(100, 2*s.before) }

// remind numbers and sends a reminder.
func (s *sink) remind(message string) tool.Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := tool.Progress{Message: message, Total: s.last.Total}
	if p.Total > 0 { // a hundredth of the remaining range
		p.Progress = s.last.Progress + (p.Total-s.last.Progress)/100
		return s.send(p)
	}
	s.before++
	p.Progress = s.last.Progress + 1
	return s.send(p)
}

// send sends a report. s.mu is held.
func (s *sink) send(p tool.Progress) tool.Progress {
	s.last = p
	if s.to.Progress != nil {
		s.to.Progress(p)
	}
	for _, w := range s.watchers {
		w.progress(p)
	}
	return p
}

func (s *sink) chunk(c tool.Chunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to.Chunk != nil {
		s.to.Chunk(c)
	}
}
