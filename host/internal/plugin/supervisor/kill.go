package supervisor

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// errKilled ends the starts that an admin's stop covers.
var errKilled = errors.New("an administrator stopped it")

// stopped returns why no process of the pool may run now, or nil.
func (p *pool) stopped() error { return p.s.opts.Stopped(p.of.user, p.plugin.Name) }

// Kill kills the processes of the users and plugins that covers selects, with all calls, and cancels
// their starts. The user is "" for a process of all users. They do not count as crashed. Kill returns
// when they have ended, or with ctx, and reports how many have ended and how many have not.
//
// [Options.Stopped] must cover them before: it keeps new processes from starting.
func (s *Supervisor) Kill(ctx context.Context, covers func(user, plugin string) bool) (killed, left int) {
	var ending []<-chan struct{}
	for _, m := range s.everyManager() {
		ending = append(ending, m.kill(covers)...)
	}
	for _, ended := range ending {
		select {
		case <-ended:
		case <-ctx.Done():
		}
		if isClosed(ended) {
			killed++
		} else {
			left++
		}
	}
	return killed, left
}

// everyManager returns the managers that may have processes.
func (s *Supervisor) everyManager() []*manager {
	s.mu.RLock()
	defer s.mu.RUnlock()
	managers := slices.Collect(maps.Values(s.managers))
	managers = slices.AppendSeq(managers, maps.Values(s.replaced))
	return slices.AppendSeq(managers, maps.Keys(s.prepared))
}

// kill kills the processes of the pools that covers selects and cancels their starts. It returns a
// channel for each, which is closed at its end.
func (m *manager) kill(covers func(user, plugin string) bool) (ending []<-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pools() {
		if !covers(p.of.user, m.plugin.Name) {
			continue
		}
		if p.starting != nil {
			ending = append(ending, p.starting.done)
			p.starting.cancel(errKilled)
		}
		for _, i := range p.instances {
			ending = append(ending, i.ended)
			p.kill(i)
		}
	}
	return ending
}

// kill kills a process. The caller holds mu.
func (p *pool) kill(i *instance) {
	i.why = errKilled.Error()
	p.retire(i)
	i.proc.End("")
}

// Revive starts the plugins that should run but could not while [Options.Stopped] covered them:
// those that are eager, and those whose tools are not known. It returns at once, and does
// nothing before [Supervisor.Start].
func (s *Supervisor) Revive(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed || !s.started {
		return
	}
	for _, m := range s.managers {
		if m.wantsStart() {
			s.tasks.Go(func() { _ = m.ensure(ctx) }) // a start is bounded, Close ends it, and the log reports it
		}
	}
}

// wantsStart reports whether the plugin would have been started without a call.
func (m *manager) wantsStart() bool {
	m.publishMu.Lock()
	known := m.published != ""
	m.publishMu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	known = known && m.learned.program != "" // otherwise the manager before has published them
	p := m.base
	return (m.plugin.Eager || !known) && p.current() == nil && p.starting == nil && p.mayStart() == nil
}
