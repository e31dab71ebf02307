package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxWaiting bounds the calls that wait for one plugin to start.
	maxWaiting = 256
	// defaultIdleTimeout is that of a plugin that names none.
	defaultIdleTimeout = 10 * time.Minute
	// degradedRetry is what a caller is told while a plugin does not answer.
	degradedRetry = 2 * time.Second
)

// keeper keeps the process of one plugin: it starts it when it is needed,
// knows when it may start again, and counts its calls.
type keeper struct {
	s      *Supervisor
	plugin Plugin
	log    hclog.Logger

	publishMu sync.Mutex // guards published; taken before mu
	published []byte     // the tools as JSON, nil before the first

	mu         sync.Mutex // guards all below, and what [instance] says
	phase      Phase
	since      time.Time // when phase was entered
	live       *instance // the process that takes calls, or stops; nil if none
	starting   *attempt  // nil if it is not being started
	waiting    int       // calls that wait for starting
	generation int       // of the last process
	restarts   int       // starts after a crash
	backoff    restarts
	lastCrash  *Crash
	refused    error  // why it cannot start
	refusedFor fileID // the binary for which that is so
	digest     string
	version    string
	again      *time.Timer // starts an eager plugin after its backoff
	closed     bool
}

// attempt is one start that others may wait for.
type attempt struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when err is known
	err    error
}

var errClosed = errors.New("the host is stopping")

func (k *keeper) stateDir() string {
	return filepath.Join(k.s.opts.StateDir, "plugins", k.plugin.Name)
}

func (k *keeper) setPhase(p Phase) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.enter(p)
}

// enter is called with mu held.
func (k *keeper) enter(p Phase) { k.phase, k.since = p, time.Now() }

// acquire returns the process for one call and starts it if there is none. The
// caller releases it. Its error is for callers; the call was not sent.
func (k *keeper) acquire(ctx context.Context) (*instance, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	// A process that was started may be gone before this call sees it, but
	// not again and again: that is what the backoff is for.
	for range 3 {
		if k.live != nil && !k.live.stopping {
			if k.phase == Degraded {
				return nil, k.unavailable(degradedRetry, nil, "does not answer")
			}
			k.live.calls++
			return k.live, nil
		}
		if err := k.mayStart(); err != nil {
			return nil, err
		}
		if k.waiting >= maxWaiting {
			return nil, k.unavailable(time.Second, nil, "is starting, and %d calls wait for it already", k.waiting)
		}
		if err := k.await(ctx); err != nil {
			return nil, err
		}
	}
	return nil, k.unavailable(time.Second, nil, "ended before it took the call")
}

// ensure starts the plugin if it is not running.
func (k *keeper) ensure(ctx context.Context) error {
	i, err := k.acquire(ctx)
	if err != nil {
		return err
	}
	k.release(i)
	return nil
}

// mayStart says why the plugin may not start now. It is called with mu held.
func (k *keeper) mayStart() error {
	now := time.Now()
	changed := k.refusedFor != lookAt(k.plugin.Path)
	switch {
	case k.closed:
		return k.unavailable(0, errClosed, "is stopped: the host is stopping")
	case k.refused != nil && !changed:
		return k.refusal()
	case k.backoff.broken && !changed:
		return k.unavailable(0, nil, "crashed %d times within %v and stays off; the last time it %s", breakerCrashes, breakerWindow, k.lastCrash.Cause).
			WithHint("an operator must look at it: toolhost plugins list")
	case k.backoff.broken:
		k.backoff = restarts{} // a new binary deserves a new chance
	case k.backoff.wait(now) > 0:
		return k.unavailable(k.backoff.wait(now), nil, "crashed and is not started again yet: it %s", k.lastCrash.Cause)
	}
	return nil
}

// await waits until a start, or a stop that must precede it, is over. It is
// called with mu held and returns with mu held; it releases it meanwhile.
func (k *keeper) await(ctx context.Context) error {
	var over <-chan struct{}
	var start *attempt
	if k.live != nil {
		over = k.live.ended
	} else {
		start = k.begin(ctx)
		over = start.done
	}
	k.waiting++
	k.mu.Unlock()
	var err error
	select { // both channels are closed within the bounds of a start or stop
	case <-over:
	case <-ctx.Done():
		err = endedCall(ctx, ErrNotSent)
	}
	k.mu.Lock()
	k.waiting--
	if err == nil && start != nil && start.err != nil {
		return k.startFailed(start.err)
	}
	return err
}

// begin starts the plugin unless it is being started. It is called with mu
// held, after mayStart.
func (k *keeper) begin(ctx context.Context) *attempt {
	if k.starting != nil {
		return k.starting
	}
	// The start outlives the call that asked for it: others wait for it too.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	a := &attempt{cancel: cancel, done: make(chan struct{})}
	k.starting = a
	k.generation++
	k.enter(Starting)
	generation := k.generation
	k.s.tasks.Go(func() { k.start(ctx, a, generation) }) // bounded by its phases; Close waits
	return a
}

// start runs one attempt.
func (k *keeper) start(ctx context.Context, a *attempt, generation int) {
	defer a.cancel(nil)
	defer close(a.done)
	i, err := k.launch(ctx, generation)
	if err != nil {
		a.err = err
		k.failed(ctx, err)
		return
	}
	k.publish(i.about.Tools)

	k.mu.Lock()
	defer k.mu.Unlock()
	k.starting = nil
	k.live, k.refused = i, nil
	k.digest, k.version = i.digest, i.about.Version
	i.ready = time.Now()
	i.heard = i.ready
	k.enter(Ready)
	if k.closed {
		k.retire(i)
	}
	k.s.tasks.Go(func() { k.watch(ctx, i) }) // ends with the process; Close waits
	k.log.Info("plugin started", "pid", i.runner.ID(), "generation", i.generation, "version", i.about.Version, "tools", len(i.about.Tools), "sandbox", i.runner.proc.Report.String())
}

// failed records why a start failed.
func (k *keeper) failed(ctx context.Context, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.starting = nil
	if k.closed {
		k.enter(Stopped)
		return
	}
	if _, ok := errors.AsType[*refusedError](err); ok {
		k.refused, k.refusedFor = err, lookAt(k.plugin.Path)
		k.enter(Broken)
		k.log.Error("plugin cannot be started", "error", err)
		return
	}
	k.recordCrash(ctx, crashOf(err), 0)
	k.log.Error("plugin did not start", "error", err)
}

// recordCrash is called with mu held.
func (k *keeper) recordCrash(ctx context.Context, c *Crash, ready time.Duration) {
	k.lastCrash = c
	k.backoff.crashed(c.Time, ready)
	if k.backoff.broken {
		k.refusedFor = lookAt(k.plugin.Path)
		k.enter(Broken)
		return
	}
	k.enter(Backoff)
	k.restarts++
	if k.plugin.Eager && !k.closed {
		k.again = time.AfterFunc(k.backoff.wait(time.Now()), func() { k.startAgain(ctx) })
	}
}

// startAgain starts an eager plugin after its backoff.
func (k *keeper) startAgain(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.live == nil && k.mayStart() == nil {
		k.begin(ctx)
	}
}

// ended records the end of a process that was ready.
func (k *keeper) ended(ctx context.Context, i *instance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.live = nil
	if i.stopping {
		k.enter(Stopped)
		k.log.Info("plugin stopped", "pid", i.runner.ID())
	} else {
		i.crash = i.runner.crash("")
		k.recordCrash(ctx, i.crash, time.Since(i.ready))
		k.log.Error("plugin crashed", "pid", i.runner.ID(), "cause", i.crash.Cause, "detail", i.crash.Detail, "calls", i.calls)
	}
	close(i.ended)
}

// release ends one call's use of a process.
func (k *keeper) release(i *instance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i.calls--
	i.heard = time.Now()
}

// retire asks the watcher of a process to stop it. It is called with mu held.
func (k *keeper) retire(i *instance) {
	if !i.stopping {
		i.stopping = true
		k.enter(Draining)
		close(i.stop)
	}
}

// close refuses what comes, and stops what runs. It does not wait.
func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.again != nil {
		k.again.Stop()
	}
	if k.starting != nil {
		k.starting.cancel(errClosed)
	}
	if k.live != nil {
		k.retire(k.live)
	}
}

// publish tells the tools to the host, if they are news.
func (k *keeper) publish(tools []tool.Spec) {
	k.publishMu.Lock()
	defer k.publishMu.Unlock()
	// As JSON, since the manifest cache changes the white space of schemas.
	encoded, err := json.Marshal(tools)
	if err == nil && bytes.Equal(k.published, encoded) {
		return
	}
	k.published = encoded
	k.s.opts.Publish(k.plugin.Name, tools)
}
