package supervisor

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/sdk/tool"
)

// pool holds the processes of one plugin that serve the same callers: it starts them on demand,
// decides when they may start again, and counts their calls. The manager's mu guards it.
type pool struct {
	*manager
	*history

	of        owner
	log       hclog.Logger
	workspace string // the directory that its processes work in, "" if there is none

	callers    int   // calls that are about to get a process
	turn       *turn // its wait for room, or nil
	over       bool  // its session has ended
	phase      Phase // of the newest process
	since      time.Time
	instances  map[int]*instance
	starting   *attempt    // nil if nothing is starting
	unready    bool        // the last start failed because something else does not answer
	waiting    int         // calls that wait for a start or a stop
	generation int         // of the newest process; the first one is 1
	again      *time.Timer // starts an eager plugin after its backoff
}

// history is what the processes of a pool did before. All sessions of a user share one, so that a
// new session does not escape the breaker.
type history struct {
	crashes   int
	backoff   restarts
	lastCrash *process.Crash
	refused   *process.RefusedError // why it cannot start, nil if it can
}

// clean reports whether nothing in the history delays the next start.
func (h *history) clean() bool { return h.backoff.row == 0 && h.refused == nil }

func newPool(m *manager, of owner, h *history) *pool {
	// A user without a workspace is told at the start of the process.
	workspace, _ := m.s.opts.Workspace.Of(of.user)
	return &pool{manager: m, history: h, of: of, log: m.log, workspace: workspace, phase: Stopped, since: time.Now(), instances: make(map[int]*instance)}
}

// instance is one process and the pool's notes about it.
type instance struct {
	generation int
	proc       *process.Process
	about      process.Description
	digest     string // of its program
	// revision is that of the tools that it published; nil before that.
	revision  atomic.Pointer[string]
	saved     *manifest   // after the start, only takeChanges uses it
	changes   *changes    // of its tools
	readOnly  bool        // whether the workspace was read-only when it started
	workspace os.FileInfo // the directory that it sees as the workspace, nil if there is none
	stateDir  string      // its own directory
	claim     *claim      // for its memory
	ready     time.Time   // when it began to take calls

	// stop is closed to ask the watcher to stop the process.
	stop chan struct{}
	// ended is closed when the process is gone and the pool has recorded it.
	ended chan struct{}
	// crash is how it ended, nil if the host stopped it; set before ended is
	// closed.
	crash *process.Crash
	// unused is closed when it is stopping and its last call has ended.
	unused chan struct{}
	// gaveUp has room for one signal: the host gave up a call that the process may
	// still work on, and the time that it has to end the call.
	gaveUp chan time.Duration
	// sessions are ended sessions to tell it about; nil if it did not ask for them.
	sessions chan string

	// The rest is guarded by the manager's mu.
	stopping bool
	patience time.Duration // how long its calls may continue when it stops
	why      string        // the reason why it stops, for callers; may be ""
	stuck    bool          // it may still work on a call that the host gave up
	blamed   bool          // it is ended for its own fault although it was stopping
	calls    int
	lastUsed time.Time // when a call last began or ended
	heard    time.Time // when it last completed something
	looked   time.Time // when the last check of the protected files began
	looking  *look     // the check in progress, or nil
	misses   int       // health checks without an answer, in a row
}

func (p *pool) setPhase(phase Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.enter(phase)
}

// enter sets the phase. The caller holds mu.
func (p *pool) enter(phase Phase) {
	if p.phase != phase {
		p.s.opts.Entered(p.plugin.Name, p.of.user, p.of.session, p.of.reader, phase)
	}
	p.phase, p.since = phase, time.Now()
}

// enterFor sets the phase if i is the newest process: an older one does not change
// it. The caller holds mu.
func (p *pool) enterFor(i *instance, phase Phase) {
	if i.generation == p.generation {
		p.enter(phase)
	}
}

func (i *instance) can(capability string) bool {
	return slices.Contains(i.about.Capabilities, capability)
}

// markStuck notes that the process may still work on a call that the host gave up,
// and how long it has to end the call. The caller holds the manager's mu.
func (i *instance) markStuck(rest time.Duration) {
	i.stuck = true
	select {
	case i.gaveUp <- rest:
	default: // the watcher already has a signal
	}
}

// current returns the process that takes calls, or nil. The caller holds mu.
func (p *pool) current() *instance {
	for _, i := range p.instances {
		if !i.stopping {
			return i
		}
	}
	return nil
}

// oldest returns the process that will end first. The caller holds mu.
func (p *pool) oldest() (first *instance) {
	for _, i := range p.instances {
		if first == nil || i.generation < first.generation {
			first = i
		}
	}
	return first
}

// notify tells a caller why its call waits. It is nil if the host itself needs a process: that waits
// for no room.
type notify func(why string)

// acquire returns the process for a call, and its pool; see [pool.acquire].
func (m *manager) acquire(ctx context.Context, c *tool.Call, waits notify) (*pool, *instance, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.poolFor(c)
	i, err := p.acquire(ctx, waits)
	return p, i, err
}

// acquire returns the process for one call, and starts it if there is none. The
// caller releases it. The error is for callers, or errSuperseded; the plugin has
// not seen the call. The caller holds mu; acquire releases it while it waits.
func (p *pool) acquire(ctx context.Context, waits notify) (*instance, error) {
	p.callers++
	defer func() {
		p.callers--
		p.manager.forget(p)
	}()
	// A started process may end before this call gets it, but not again and again:
	// the backoff prevents that.
	for range 3 {
		var err error
		i := p.current()
		if i != nil {
			err = p.look(ctx, i)
		} else {
			err = p.forgiveNewProgram(ctx)
		}
		if err != nil {
			return nil, err
		}
		if p.replaced {
			return nil, errSuperseded
		}
		if now := p.current(); now != nil && now != i {
			continue // another process has replaced it in the meantime
		}
		if i != nil && !i.stopping && p.instances[i.generation] == i {
			if i.misses >= missesDegraded {
				return nil, p.unavailable(degradedRetry, nil, "does not answer")
			}
			i.calls++
			i.lastUsed = time.Now()
			return i, nil
		}
		if err := p.mayStart(); err != nil {
			return nil, err
		}
		if p.waiting >= maxWaiting {
			return nil, p.unavailable(time.Second, nil, "is starting, and %d calls already wait for it", p.waiting)
		}
		err = p.await(ctx, waits)
		if p.replaced && ctx.Err() == nil {
			return nil, errSuperseded
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, p.unavailable(time.Second, nil, "ended before it took the call")
}

// release ends one call's use of a process.
func (p *pool) release(i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i.calls--
	i.lastUsed = time.Now()
	i.heard = i.lastUsed
	if i.stopping && i.calls == 0 {
		p.markUnused(i)
	}
	p.retireOver()
	p.yieldMemory() // now: the next call of its user may come at once
	p.admit()
}

// markUnused notes that a stopping process has no calls any more. The caller holds mu.
func (p *pool) markUnused(i *instance) {
	close(i.unused)
	p.s.memory.end(i.claim)
}

// retireOver ends the processes of a session that has ended, once they have no calls. The caller
// holds mu.
func (p *pool) retireOver() {
	for _, i := range p.instances {
		if p.over && p.callers == 0 && i.calls == 0 && !i.stopping {
			i.why = "its session ended"
			p.retire(i)
		}
	}
}

// ensure starts the plugin if it is not running, to learn what it offers. If users or sessions have
// processes of their own, it stops this one.
func (m *manager) ensure(ctx context.Context) error {
	m.mu.Lock()
	i, err := m.base.acquire(ctx, nil)
	m.mu.Unlock()
	if err != nil {
		return err
	}
	m.base.release(i)
	if m.plugin.Scope == Shared {
		return nil
	}
	m.mu.Lock()
	m.base.retire(i)
	m.mu.Unlock()
	select {
	case <-i.ended:
	case <-ctx.Done():
	}
	return nil
}

// await waits for a start, or for a stop that must come before it. The caller holds
// mu; await releases it while it waits.
func (p *pool) await(ctx context.Context, waits notify) error {
	var over <-chan struct{}
	var start *attempt
	if len(p.instances) >= maxProcesses {
		over = p.oldest().ended
	} else {
		claim, err := p.awaitRoom(ctx, waits)
		if err != nil {
			return err
		}
		used := claim == nil && waits != nil && p.starting == nil // by another call of this turn
		if used || !p.needsStart() {                              // it changed during the wait
			if claim != nil {
				p.s.memory.release(claim)
			}
			p.admit()
			return nil
		}
		start = p.begin(ctx, claim)
		over = start.done
	}
	p.waiting++
	p.mu.Unlock()
	var err error
	select { // a start and a stop are bounded
	case <-over:
	case <-ctx.Done():
		err = contextError(ctx, nil)
	}
	p.mu.Lock()
	p.waiting--
	if err == nil && start != nil && start.err != nil {
		return p.startFailed(start.err)
	}
	return err
}

// needsStart reports whether a call must wait for a start, which may be in progress. The caller
// holds mu.
func (p *pool) needsStart() bool {
	return p.current() == nil && (p.starting != nil || p.mayStart() == nil)
}

// eager reports whether a process shall run without a call. A reader waits for its first one.
func (p *pool) eager() bool { return p.plugin.Eager && p == p.base }

// retire asks the watcher of a process to stop it. The caller holds mu.
func (p *pool) retire(i *instance) {
	if i.stopping {
		return
	}
	i.stopping = true
	p.enterFor(i, Draining)
	close(i.stop)
	if i.calls == 0 {
		p.markUnused(i)
	}
}

// renew retires a process, and starts the next one if the plugin is eager and there
// is room for it. The caller holds mu.
func (p *pool) renew(ctx context.Context, i *instance) {
	room := len(p.instances) < maxProcesses
	p.retire(i)
	if room && p.eager() && p.mayStart() == nil {
		p.begin(ctx, nil)
	}
}

// halt cancels a start in progress and a planned one. The caller holds mu.
func (p *pool) halt(cause error) {
	if p.again != nil {
		p.again.Stop()
	}
	if p.starting != nil {
		p.starting.cancel(cause)
	}
}
