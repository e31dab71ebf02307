package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
)

const (
	// backoffBase doubles with each failure in a row, up to backoffCap.
	backoffBase = 250 * time.Millisecond
	backoffCap  = 30 * time.Second
	// backoffReset is how long a plugin must be ready before its next crash counts
	// as the first one again.
	backoffReset = time.Minute
)

// Restart configures the circuit breaker of a plugin, which keeps it off for a while
// when it crashes again and again. Each zero field has its default.
type Restart struct {
	// MaxCrashes within Within open the breaker; the defaults are 5 and 2 minutes.
	MaxCrashes int
	Within     time.Duration
	// Pause is how long the plugin then stays off; the default is 30 seconds. After
	// the pause the next call starts the plugin. If it crashes again within a minute,
	// the pause doubles, up to MaxPause; the default is 15 minutes.
	Pause, MaxPause time.Duration
}

func (r Restart) withDefaults() Restart {
	if r.MaxCrashes <= 0 {
		r.MaxCrashes = 5
	}
	if r.Within <= 0 {
		r.Within = 2 * time.Minute
	}
	if r.Pause <= 0 {
		r.Pause = 30 * time.Second
	}
	if r.MaxPause <= 0 {
		r.MaxPause = 15 * time.Minute
	}
	return r
}

// reason completes "the plugin ..." for a breaker that has opened that many times in
// a row.
func (r Restart) reason(opened int) string {
	if opened > 1 {
		return "crashed again when it was started after a pause"
	}
	return fmt.Sprintf("crashed %d times within %v", r.MaxCrashes, r.Within)
}

// pauseAfter returns how long the plugin stays off if the breaker has opened that many
// times in a row before.
func (r Restart) pauseAfter(opened int) time.Duration {
	pause := r.Pause
	for range opened {
		if pause >= r.MaxPause/2 {
			return r.MaxPause
		}
		pause *= 2
	}
	return min(pause, r.MaxPause)
}

// restarts decides when a plugin that failed may start again. It has no clock: the
// caller passes the time.
type restarts struct {
	recent []time.Time // crashes within Restart.Within, oldest first
	row    int         // failures in a row, without backoffReset between them
	until  time.Time   // no start before
	// broken means that the breaker is open before until, and half-open afterwards.
	// opened is how often it has opened in a row.
	broken bool
	opened int
}

// crashed records a crash after the plugin was ready for the given time, 0 if
// it never was.
func (r *restarts) crashed(now time.Time, ready time.Duration, limits Restart) {
	if ready >= backoffReset {
		r.row, r.opened, r.broken = 0, 0, false
	}
	r.row++
	for len(r.recent) > 0 && now.Sub(r.recent[0]) >= limits.Within {
		r.recent = r.recent[1:]
	}
	r.recent = append(r.recent, now)
	if r.broken || len(r.recent) >= limits.MaxCrashes {
		r.until = now.Add(limits.pauseAfter(r.opened))
		r.broken = true
		r.opened++
		return
	}
	if r.row == 1 && ready > 0 {
		r.until = now // it worked: one crash is no reason to wait
		return
	}
	r.backOff(now)
}

// failed records a failed start for which the host may be the reason. It delays the
// next start and never opens the breaker.
func (r *restarts) failed(now time.Time) {
	r.row++
	r.backOff(now)
}

func (r *restarts) backOff(now time.Time) {
	// Full jitter: plugins that died of one cause do not start at the same time.
	r.until = now.Add(rand.N(r.ceiling()) + 1) //nolint:gosec // it need not be unpredictable
}

// ceiling returns the longest wait after the failures so far.
func (r *restarts) ceiling() time.Duration {
	// 2^7 * 250ms is above the cap; a larger shift would overflow.
	return min(backoffBase<<min(r.row-1, 7), backoffCap)
}

// wait returns the time until a start is allowed; 0 means now.
func (r *restarts) wait(now time.Time) time.Duration { return max(r.until.Sub(now), 0) }

// open reports whether the breaker keeps the plugin off.
func (r *restarts) open(now time.Time) bool { return r.broken && r.wait(now) > 0 }

// mayStart returns the reason why the plugin may not start now, or nil. An earlier
// refusal is no reason: the next attempt checks whether it was corrected. The caller
// holds mu.
func (p *pool) mayStart() error {
	wait, stopped := p.backoff.wait(time.Now()), p.stopped()
	switch {
	case p.replaced:
		return errSuperseded
	case p.closed():
		return p.unavailable(0, errClosed, "is stopped: the host is stopping")
	case stopped != nil:
		return stopped
	case wait > 0 && p.backoff.broken:
		return p.unavailable(wait, nil, "is off: it %s; the last time it %s", p.plugin.Restart.reason(p.backoff.opened), p.lastCrash.Cause).
			WithHint("the call was not made; the first call after %v starts the plugin again; a person can do so at once: %s, and %s shows how it crashed",
				roundUp(wait), p.s.opts.Command("plugins restart "+p.plugin.Name), p.s.opts.Command("plugins list"))
	case wait > 0 && p.lastCrash.During == BeforeStart: // it did nothing wrong
		return p.unavailable(wait, nil, "is not started again yet: it %s", p.lastCrash.Cause).
			WithHint("the call was not made; make it again after %v", roundUp(wait))
	case wait > 0:
		return p.unavailable(wait, nil, "crashed and is not started again yet: it %s", p.lastCrash.Cause).
			WithHint("the call was not made; make it again after %v", roundUp(wait))
	}
	return nil
}

// roundUp rounds a delay up to whole seconds.
func roundUp(wait time.Duration) time.Duration { return (wait + time.Second - 1).Truncate(time.Second) }

// forgiveNewProgram forgets the crashes of a plugin that is off if its program has
// changed. The caller holds mu; forgiveNewProgram releases it while it reads the
// file's identity.
func (p *pool) forgiveNewProgram(ctx context.Context) error {
	if p.closed() || !p.backoff.open(time.Now()) {
		return nil
	}
	file := make(chan process.FileID, 1)
	p.s.tasks.Go(func() { file <- process.LookAt(p.plugin.Path) }) // ends when the file system answers; Close waits for a while
	p.mu.Unlock()
	var err error
	var now process.FileID
	select {
	case now = <-file:
	case <-ctx.Done():
		err = contextError(ctx, nil)
	}
	p.mu.Lock()
	if err == nil && now != p.triedFile && p.backoff.open(time.Now()) {
		p.backoff = restarts{}
	}
	return err
}

// startEnded records that a start failed.
func (p *pool) startEnded(ctx context.Context, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting = nil
	_, p.unready = errors.AsType[*notNowError](err)
	defer p.admit()
	defer p.forget(p)
	if p.closed() || p.replaced || errors.Is(err, errKilled) {
		p.enter(Stopped)
		return
	}
	if refused, ok := errors.AsType[*process.RefusedError](err); ok {
		if p.refused == nil || p.refused.Error() != refused.Error() { // log each reason once
			p.log.Error("plugin cannot be started", "error", err)
		}
		p.refused = refused
		if p.phase != Broken {
			p.enter(Broken)
		}
		return
	}
	p.refused = nil
	failed, ok := errors.AsType[*process.StartError](err)
	switch {
	case ok && !failed.Slow:
		p.recordCrash(failed.Crash, 0)
	case ok: // the host may be the reason
		p.lastCrash = failed.Crash
		p.crashes++
		p.allCrashes++
		p.backoff.failed(failed.Crash.Time)
	default: // the host is the reason
		p.lastCrash = crashOf(err)
		p.backoff.failed(p.lastCrash.Time)
	}
	p.enterBackoff(ctx)
	p.log.Error("plugin did not start", "error", err)
}

// processEnded records the end of a process that was ready.
func (p *pool) processEnded(ctx context.Context, i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.instances, i.generation)
	p.free(i.claim)
	defer p.admit()
	defer p.forget(p)
	if i.stopping && (!i.blamed || p.closed() || p.stopped() != nil) {
		p.enterFor(i, Stopped)
		p.log.Info("plugin stopped", "pid", i.proc.PID())
	} else {
		i.crash = i.proc.Crash("")
		p.recordCrash(i.crash, time.Since(i.ready))
		if i.generation == p.generation {
			p.enterBackoff(ctx)
		}
		p.log.Error("plugin crashed", "pid", i.proc.PID(), "cause", i.crash.Cause, "detail", i.crash.Detail, "calls", i.calls)
	}
	close(i.ended)
}

// recordCrash records a crash after the plugin was ready for the given time. The
// caller holds mu.
func (p *pool) recordCrash(c *process.Crash, ready time.Duration) {
	p.lastCrash = c
	p.crashes++
	p.allCrashes++
	p.backoff.crashed(c.Time, ready, p.plugin.Restart)
}

// enterBackoff sets the phase after a crash of the newest process. The caller holds
// mu.
func (p *pool) enterBackoff(ctx context.Context) {
	if p.backoff.open(time.Now()) {
		p.enter(Broken)
	} else {
		p.enter(Backoff)
	}
	if p.eager() && !p.closed() && !p.replaced {
		p.again = time.AfterFunc(p.backoff.wait(time.Now()), func() { p.startAgain(ctx) })
	}
}

// startAgain starts an eager plugin after its backoff.
func (p *pool) startAgain(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current() == nil && p.mayStart() == nil {
		p.begin(ctx, nil)
	}
}
