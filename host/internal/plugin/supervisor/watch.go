package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
)

const (
	// missesDegraded health checks without an answer stop new calls, missesDead end
	// the process.
	missesDegraded = 2
	missesDead     = 3
)

// watch watches one process until it has ended. It reacts to the end of the process,
// its health, its idleness and the request to stop it.
func (p *pool) watch(ctx context.Context, i *instance, disconnected <-chan struct{}) {
	probe := time.NewTimer(p.s.timing.quiet)
	defer probe.Stop()
	idle := time.NewTimer(p.plugin.IdleTimeout)
	defer idle.Stop()
	patrol := time.NewTicker(p.s.timing.patrol)
	defer patrol.Stop()
	var answered <-chan error    // of a health check in progress
	var overdue <-chan time.Time // when a call that was given up should have ended
	for {
		select {
		case <-i.proc.Exited():
			p.processEnded(ctx, i)
			i.proc.Discard()
			return
		case <-i.stop:
			p.drain(ctx, i)
			i.proc.Discard()
			p.processEnded(ctx, i)
			return
		case <-disconnected:
			if !i.proc.EndsWithin(process.ExitGrace) {
				i.proc.End("closed its connection to the host")
			}
			disconnected = nil
		case <-probe.C:
			if rest := p.untilProbe(i); rest > 0 {
				probe.Reset(rest)
			} else {
				answered = p.probe(ctx, i)
			}
		case err := <-answered:
			answered = nil
			probe.Reset(p.probed(i, err))
		case rest := <-i.gaveUp:
			if overdue == nil {
				overdue = time.After(rest)
			}
		case <-overdue:
			overdue = nil
			if !p.replaceStuck(ctx, i) {
				overdue = time.After(p.s.timing.obey)
			}
		case <-idle.C:
			idle.Reset(p.idle(i))
		case <-patrol.C:
			p.patrol(ctx, i)
		}
	}
}

// connect serves the plugin's channel to the host, if it has one. It returns when the
// plugin has opened the channel, so that no call starts before the plugin can ask. A
// plugin that does not open it in time gets its calls nevertheless. The channel ends
// with the process or with ctx; then done is closed.
func (p *pool) connect(ctx context.Context, i *instance) (done <-chan struct{}) {
	if !i.can("connect") {
		return nil
	}
	ended, attached := make(chan struct{}), make(chan struct{})
	p.s.tasks.Go(func() { // ends with ctx, soon after the process
		defer close(ended)
		err := i.proc.Serve(ctx, func() { close(attached) }, p.changed(i))
		p.log.Debug("the plugin's channel to the host ended", "reason", err)
	})
	select {
	case <-attached:
	case <-time.After(p.s.timing.attach):
		p.log.Warn("the plugin did not open its channel to the host", "within", p.s.timing.attach)
	}
	return ended
}

// untilProbe returns how long a process may still be silent before it gets a health
// check; 0 means that it gets one now.
func (p *pool) untilProbe(i *instance) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := p.s.timing.quiet - time.Since(i.heard)
	if rest > 0 {
		p.wellAgain(i)
	}
	return max(rest, 0)
}

// probe sends a health check. The answer arrives within the time of a health check.
func (p *pool) probe(ctx context.Context, i *instance) <-chan error {
	answered := make(chan error, 1)
	p.s.tasks.Go(func() { // bounded by the timeout
		ctx, cancel := context.WithTimeout(ctx, p.s.timing.probe)
		defer cancel()
		answered <- i.proc.Healthy(ctx)
	})
	return answered
}

// probed handles the answer to a health check, nil if the process is well. It returns
// the time until the next one.
func (p *pool) probed(i *instance, err error) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i.stopping {
		return p.s.timing.quiet
	}
	if err == nil {
		i.heard = time.Now()
		p.wellAgain(i)
		return p.s.timing.quiet
	}
	i.misses++
	p.log.Warn("plugin does not answer a health check", "misses", i.misses, "error", err)
	switch i.misses {
	case missesDegraded:
		p.enterFor(i, Degraded)
	case missesDead:
		i.proc.Blame("stopped answering")
		i.proc.Dump()
		p.s.tasks.Go(func() { // ends after ExitGrace
			if !i.proc.EndsWithin(process.ExitGrace) {
				i.proc.End("")
			}
		})
	}
	return p.s.timing.again
}

// wellAgain notes that a process is well. The caller holds mu.
func (p *pool) wellAgain(i *instance) {
	if i.misses >= missesDegraded {
		p.enterFor(i, Ready)
	}
	i.misses = 0
}

// idle retires a process that has had no call for long enough. It returns the time
// until the next check.
func (p *pool) idle(i *instance) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := p.plugin.IdleTimeout - time.Since(i.lastUsed)
	switch {
	case p.eager() || i.calls > 0:
		return p.plugin.IdleTimeout
	case rest > 0:
		return rest
	}
	p.retire(i)
	return p.plugin.IdleTimeout
}

// giveUp makes sure that a call ends which the host no longer waits for. A plugin
// that can report the end of a call is asked. Any other process is replaced after a
// while, because gRPC forgets a canceled call.
func (p *pool) giveUp(ctx context.Context, i *instance, call string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed():
	case i.can("drain_call"):
		ctx = context.WithoutCancel(ctx)
		p.s.tasks.Go(func() { p.awaitEnd(ctx, i, call) }) // bounded; Close waits
	default:
		i.markStuck(p.s.timing.obey)
	}
}

// awaitEnd waits for the plugin to end a call, for as long as that may take.
func (p *pool) awaitEnd(ctx context.Context, i *instance, call string) {
	ctx, cancel := context.WithTimeout(ctx, p.s.timing.obey)
	defer cancel()
	if err := i.proc.Drain(ctx, call); !errors.Is(err, context.DeadlineExceeded) {
		return // the call has ended, or the process has
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i.markStuck(0)
}

// replaceStuck retires a process that may still work on a call that was given up. It
// reports false if it must wait, because an older process still finishes its calls
// and there is no room for a third.
func (p *pool) replaceStuck(ctx context.Context, i *instance) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.instances) >= maxProcesses {
		return false
	}
	p.renew(ctx, i)
	return true
}

// drain lets a plugin that stops finish its calls.
func (p *pool) drain(ctx context.Context, i *instance) {
	p.mu.Lock()
	stuck, patience := i.stuck, i.patience
	p.mu.Unlock()
	if (stuck || patience > 0) && !p.awaitCalls(i, patience) {
		return
	}
	if !i.can("drain") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.s.timing.finish)
	defer cancel()
	err := i.proc.Drain(ctx, "")
	if err == nil {
		return
	}
	p.log.Debug("the plugin did not finish its calls", "error", err)
	if stuck && errors.Is(err, context.DeadlineExceeded) {
		p.mu.Lock()
		i.blamed = true
		p.mu.Unlock()
		i.proc.Blame("did not stop a call when it was told to")
	}
}

// awaitCalls waits until a stopping process has ended its calls, at most for
// patience; 0 means without a bound, because each call has its own. It reports false
// if the process has ended.
func (p *pool) awaitCalls(i *instance, patience time.Duration) bool {
	var over <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-i.unused:
	case <-over:
		p.log.Warn("the plugin's old process is stopped although it has calls: another process has replaced it", "pid", i.proc.PID(), "after", patience)
	case <-p.closing:
	case <-i.proc.Exited():
		p.mu.Lock()
		defer p.mu.Unlock()
		i.blamed = i.blamed || patience > 0 // it was not asked to end yet
		return false
	}
	return true
}

// maxEnded bounds the ended sessions that a process has not been told about yet.
const maxEnded = 1024

// endSession tells the plugin's processes that a session has ended. It does not wait.
func (m *manager) endSession(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pools() {
		if p.of.session == id && id != "" { // its calls go on, and end it
			p.over = true
			p.retireOver()
			m.forget(p)
			continue
		}
		for _, i := range p.instances {
			if i.sessions == nil {
				continue
			}
			select {
			case i.sessions <- id:
			default:
				m.log.Warn("the plugin is not told of the end of a session: too many others wait", "waiting", maxEnded)
			}
		}
	}
}

// tellSessions tells a process about ended sessions until ctx ends.
func (p *pool) tellSessions(ctx context.Context, i *instance) {
	for {
		select {
		case id := <-i.sessions:
			bounded, cancel := context.WithTimeout(ctx, p.s.timing.probe)
			err := i.proc.EndSession(bounded, id)
			if err != nil && ctx.Err() == nil && !errors.Is(err, process.ErrLost) {
				p.log.Warn("the plugin cannot be told of the end of a session", "error", err)
			}
			cancel()
		case <-ctx.Done():
			return
		}
	}
}
