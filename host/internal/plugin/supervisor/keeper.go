package supervisor

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// maxWaiting bounds the calls that wait for one plugin to start.
	maxWaiting = 256
	// maxGenerations bounds the processes of one scope: one that takes calls
	// while another one finishes its own.
	maxGenerations = 2
	// defaultIdleTimeout is that of a plugin that names none.
	defaultIdleTimeout = 10 * time.Minute
	// degradedRetry is what a caller is told while a plugin does not answer.
	degradedRetry = 2 * time.Second
)

// sharedScope is the scope of a process that serves every caller. There is no
// other one yet.
const sharedScope = "shared"

// instanceKey tells the processes of one plugin apart.
type instanceKey struct {
	plugin     string
	generation int    // 1 for the first process of the plugin
	scope      string // whom it serves
}

// keeper keeps the processes of one plugin: it starts them when they are
// needed, knows when they may start again, and counts their calls.
type keeper struct {
	s      *Supervisor
	plugin Plugin
	// own is plugin, or what it was last given as with other functions.
	own atomic.Pointer[Plugin]
	log hclog.Logger
	// closing is closed when the host stops, or what was prepared is discarded.
	closing chan struct{}
	// gone is closed when it was replaced and its last process has ended.
	gone chan struct{}

	publishMu sync.Mutex   // guards the next three; taken before mu
	published string       // the revision that the host knows, "" if none
	silent    bool         // it does not take calls yet, or no longer
	unsaid    *publication // what it would have published last

	mu         sync.Mutex // guards all below, and what [instance] says
	phase      Phase      // of the newest process
	since      time.Time  // when phase was entered
	instances  map[instanceKey]*instance
	starting   map[string]*attempt // by scope
	waiting    int                 // calls that wait for a start or a stop
	generation int                 // of the newest process
	crashes    int
	backoff    restarts
	lastCrash  *Crash
	refused    *refusedError // why it cannot start, nil if it can
	digest     string
	version    string
	again      *time.Timer // starts an eager plugin after its backoff
	tried      string      // digest of the binary that was last started or recalled
	triedFile  fileID      // the file of the one that was last started
	learned    learned
	leaving    bool // another one has replaced it
}

func newKeeper(s *Supervisor, p Plugin) *keeper {
	k := &keeper{
		s:         s,
		plugin:    p.withDefaults(),
		log:       s.opts.Logger.With("plugin", p.Name),
		closing:   make(chan struct{}),
		gone:      make(chan struct{}),
		phase:     Stopped,
		since:     time.Now(),
		instances: make(map[instanceKey]*instance),
		starting:  make(map[string]*attempt),
	}
	k.own.Store(&p)
	return k
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
func (k *keeper) enter(p Phase) {
	if k.phase != p {
		k.s.opts.Entered(k.plugin.Name, p)
	}
	k.phase, k.since = p, time.Now()
}

// enterFor is [keeper.enter] for what happens to one process: an older one
// says nothing about the plugin. It is called with mu held.
func (k *keeper) enterFor(i *instance, p Phase) {
	if i.key.generation == k.generation {
		k.enter(p)
	}
}

// closed is called with mu held.
func (k *keeper) closed() bool { return within(0, k.closing) }

// current returns the process that takes the calls of a scope, or nil. It is
// called with mu held.
func (k *keeper) current(scope string) *instance {
	for key, i := range k.instances {
		if key.scope == scope && !i.stopping {
			return i
		}
	}
	return nil
}

// oldest returns the process of a scope that will end first, and how many
// there are. It is called with mu held.
func (k *keeper) oldest(scope string) (first *instance, n int) {
	for key, i := range k.instances {
		if key.scope != scope {
			continue
		}
		n++
		if first == nil || key.generation < first.key.generation {
			first = i
		}
	}
	return first, n
}

// acquire returns the process for one call and starts it if there is none. The
// caller releases it. Its error is for callers, or errSuperseded; the call was
// not sent.
func (k *keeper) acquire(ctx context.Context, scope string) (*instance, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	// A process that was started may be gone before this call sees it, but
	// not again and again: that is what the backoff is for.
	for range 3 {
		var err error
		i := k.current(scope)
		if i != nil {
			err = k.look(ctx, i)
		} else {
			err = k.chance(ctx)
		}
		if err != nil {
			return nil, err
		}
		if k.leaving {
			return nil, errSuperseded
		}
		if now := k.current(scope); now != nil && now != i {
			continue // another one has taken its place meanwhile
		}
		if i != nil && !i.stopping && k.instances[i.key] == i {
			if i.misses >= missesDegraded {
				return nil, k.unavailable(degradedRetry, nil, "does not answer")
			}
			i.calls++
			i.lastUsed = time.Now()
			return i, nil
		}
		if err := k.mayStart(); err != nil {
			return nil, err
		}
		if k.waiting >= maxWaiting {
			return nil, k.unavailable(time.Second, nil, "is starting, and %d calls wait for it already", k.waiting)
		}
		err = k.await(ctx, scope)
		if k.leaving && ctx.Err() == nil {
			return nil, errSuperseded
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, k.unavailable(time.Second, nil, "ended before it took the call")
}

// release ends one call's use of a process.
func (k *keeper) release(i *instance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i.calls--
	i.lastUsed = time.Now()
	i.heard = i.lastUsed
	if i.stopping && i.calls == 0 {
		close(i.unused)
	}
}

// ensure starts the plugin if it is not running.
func (k *keeper) ensure(ctx context.Context) error {
	i, err := k.acquire(ctx, sharedScope)
	if err != nil {
		return err
	}
	k.release(i)
	return nil
}

// mayStart says why the plugin may not start now. Whether it was refused
// before is no reason: the next attempt looks whether that is mended. It is
// called with mu held.
func (k *keeper) mayStart() error {
	wait := k.backoff.wait(time.Now())
	switch {
	case k.leaving:
		return errSuperseded
	case k.closed():
		return k.unavailable(0, errClosed, "is stopped: the host is stopping")
	case wait > 0 && k.backoff.broken:
		return k.unavailable(wait, nil, "is off: it %s; the last time it %s", k.plugin.Restart.reason(k.backoff.opened), k.lastCrash.Cause).
			WithHint("the call was not made; the first call after %v starts the plugin again; a person can do so at once: toolhost plugins restart %s, and toolhost plugins list shows how it crashed",
				roundUp(wait), k.plugin.Name)
	case wait > 0:
		return k.unavailable(wait, nil, "crashed and is not started again yet: it %s", k.lastCrash.Cause).
			WithHint("the call was not made; make it again after %v", roundUp(wait))
	}
	return nil
}

// roundUp is a wait as a caller is told it: never shorter than it is.
func roundUp(wait time.Duration) time.Duration { return (wait + time.Second - 1).Truncate(time.Second) }

// chance forgets the crashes of a plugin that stays off if there is a new binary. It is
// called with mu held and returns with mu held; it releases it meanwhile.
func (k *keeper) chance(ctx context.Context) error {
	if k.closed() || !k.backoff.open(time.Now()) {
		return nil
	}
	file := make(chan fileID, 1)
	k.s.tasks.Go(func() { file <- lookAt(k.plugin.Path) }) // ends when the file system answers; Close waits, not for ever
	k.mu.Unlock()
	var err error
	var now fileID
	select {
	case now = <-file:
	case <-ctx.Done():
		err = endedCall(ctx, nil)
	}
	k.mu.Lock()
	if err == nil && now != k.triedFile && k.backoff.open(time.Now()) {
		k.backoff = restarts{}
	}
	return err
}

// await waits until a start, or a stop that must precede it, is over. It is
// called with mu held and returns with mu held; it releases it meanwhile.
func (k *keeper) await(ctx context.Context, scope string) error {
	var over <-chan struct{}
	var start *attempt
	if first, n := k.oldest(scope); n >= maxGenerations {
		over = first.ended
	} else {
		start = k.begin(ctx, scope)
		over = start.done
	}
	k.waiting++
	k.mu.Unlock()
	var err error
	select { // both channels are closed within the bounds of a start or stop
	case <-over:
	case <-ctx.Done():
		err = endedCall(ctx, nil)
	}
	k.mu.Lock()
	k.waiting--
	if err == nil && start != nil && start.err != nil {
		return k.startFailed(start.err)
	}
	return err
}

// retire asks the watcher of a process to stop it. It is called with mu held.
func (k *keeper) retire(i *instance) {
	if i.stopping {
		return
	}
	i.stopping = true
	k.enterFor(i, Draining)
	close(i.stop)
	if i.calls == 0 {
		close(i.unused)
	}
}

// close refuses what comes, and stops what runs. It does not wait.
func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.closing)
	if k.again != nil {
		k.again.Stop()
	}
	for _, a := range k.starting {
		a.cancel(errClosed)
	}
	for _, i := range k.instances {
		k.retire(i)
	}
}
