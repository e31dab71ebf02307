package supervisor

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
)

const (
	// maxWaiting bounds the calls that wait for one plugin to start.
	maxWaiting = 256
	// maxProcesses bounds the processes of one plugin: one takes calls while
	// another finishes its own.
	maxProcesses = 2
	// defaultIdleTimeout is the default of [Plugin.IdleTimeout].
	defaultIdleTimeout = 10 * time.Minute
	// degradedRetry is the delay that callers get while a plugin does not answer.
	degradedRetry = 2 * time.Second
)

// manager manages the processes of one plugin with one set of options: it starts
// them on demand, decides when they may start again, and counts their calls. A
// reload that changes the plugin gives it another manager.
type manager struct {
	s      *Supervisor
	plugin Plugin
	// latest is plugin, except that a reload may have replaced its functions.
	latest atomic.Pointer[Plugin]
	log    hclog.Logger
	// closing is closed when the host stops, or when the manager is discarded.
	closing chan struct{}
	// gone is closed when the manager was replaced and its last process has ended.
	gone chan struct{}

	publishMu sync.Mutex   // guards the next four; taken before mu
	published string       // the digest of the publication that the host knows, "" if none
	sound     string       // the digest of the last publication that was sound
	held      bool         // publications wait: it does not take calls yet, or no longer
	pending   *Publication // the last publication that waits

	mu         sync.Mutex // guards the following, and the second half of [instance]
	phase      Phase      // of the newest process
	since      time.Time  // when phase was entered
	instances  map[int]*instance
	starting   *attempt // nil if nothing is starting
	waiting    int      // calls that wait for a start or a stop
	generation int      // of the newest process; the first one is 1
	crashes    int
	backoff    restarts
	lastCrash  *process.Crash
	refused    *process.RefusedError // why it cannot start, nil if it can
	digest     string
	version    string
	again      *time.Timer    // starts an eager plugin after its backoff
	tried      string         // digest of the program that was last started or whose tools were loaded
	triedFile  process.FileID // the file that was last started
	learned    learned
	replaced   bool // another manager takes the calls
}

// instance is one process and the manager's notes about it.
type instance struct {
	generation int
	proc       *process.Process
	about      process.Description
	digest     string    // of its program
	revision   string    // of the tools that it published
	readOnly   bool      // whether the workspace was read-only when it started
	ready      time.Time // when it began to take calls

	// stop is closed to ask the watcher to stop the process.
	stop chan struct{}
	// ended is closed when the process is gone and the manager has recorded it.
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

func newManager(s *Supervisor, p Plugin) *manager {
	m := &manager{
		s:         s,
		plugin:    p.withDefaults(),
		log:       s.opts.Logger.With("plugin", p.Name),
		closing:   make(chan struct{}),
		gone:      make(chan struct{}),
		phase:     Stopped,
		since:     time.Now(),
		instances: make(map[int]*instance),
	}
	m.latest.Store(&p)
	return m
}

var errClosed = errors.New("the host is stopping")

func (m *manager) stateDir() string {
	return filepath.Join(m.s.opts.StateDir, "plugins", m.plugin.Name)
}

func (m *manager) setPhase(p Phase) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.enter(p)
}

// enter sets the phase. The caller holds mu.
func (m *manager) enter(p Phase) {
	if m.phase != p {
		m.s.opts.Entered(m.plugin.Name, p)
	}
	m.phase, m.since = p, time.Now()
}

// enterFor sets the phase if i is the newest process: an older one does not change
// it. The caller holds mu.
func (m *manager) enterFor(i *instance, p Phase) {
	if i.generation == m.generation {
		m.enter(p)
	}
}

// closed reports whether the manager was closed.
func (m *manager) closed() bool { return isClosed(m.closing) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
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
func (m *manager) current() *instance {
	for _, i := range m.instances {
		if !i.stopping {
			return i
		}
	}
	return nil
}

// oldest returns the process that will end first. The caller holds mu.
func (m *manager) oldest() (first *instance) {
	for _, i := range m.instances {
		if first == nil || i.generation < first.generation {
			first = i
		}
	}
	return first
}

// acquire returns the process for one call, and starts it if there is none. The
// caller releases it. The error is for callers, or errSuperseded; the plugin has
// not seen the call.
func (m *manager) acquire(ctx context.Context) (*instance, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// A started process may end before this call gets it, but not again and again:
	// the backoff prevents that.
	for range 3 {
		var err error
		i := m.current()
		if i != nil {
			err = m.look(ctx, i)
		} else {
			err = m.forgiveNewProgram(ctx)
		}
		if err != nil {
			return nil, err
		}
		if m.replaced {
			return nil, errSuperseded
		}
		if now := m.current(); now != nil && now != i {
			continue // another process has replaced it in the meantime
		}
		if i != nil && !i.stopping && m.instances[i.generation] == i {
			if i.misses >= missesDegraded {
				return nil, m.unavailable(degradedRetry, nil, "does not answer")
			}
			i.calls++
			i.lastUsed = time.Now()
			return i, nil
		}
		if err := m.mayStart(); err != nil {
			return nil, err
		}
		if m.waiting >= maxWaiting {
			return nil, m.unavailable(time.Second, nil, "is starting, and %d calls already wait for it", m.waiting)
		}
		err = m.await(ctx)
		if m.replaced && ctx.Err() == nil {
			return nil, errSuperseded
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, m.unavailable(time.Second, nil, "ended before it took the call")
}

// release ends one call's use of a process.
func (m *manager) release(i *instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i.calls--
	i.lastUsed = time.Now()
	i.heard = i.lastUsed
	if i.stopping && i.calls == 0 {
		close(i.unused)
	}
}

// ensure starts the plugin if it is not running.
func (m *manager) ensure(ctx context.Context) error {
	i, err := m.acquire(ctx)
	if err != nil {
		return err
	}
	m.release(i)
	return nil
}

// await waits for a start, or for a stop that must come before it. The caller holds
// mu; await releases it while it waits.
func (m *manager) await(ctx context.Context) error {
	var over <-chan struct{}
	var start *attempt
	if len(m.instances) >= maxProcesses {
		over = m.oldest().ended
	} else {
		start = m.begin(ctx)
		over = start.done
	}
	m.waiting++
	m.mu.Unlock()
	var err error
	select { // a start and a stop are bounded
	case <-over:
	case <-ctx.Done():
		err = contextError(ctx, nil)
	}
	m.mu.Lock()
	m.waiting--
	if err == nil && start != nil && start.err != nil {
		return m.startFailed(start.err)
	}
	return err
}

// retire asks the watcher of a process to stop it. The caller holds mu.
func (m *manager) retire(i *instance) {
	if i.stopping {
		return
	}
	i.stopping = true
	m.enterFor(i, Draining)
	close(i.stop)
	if i.calls == 0 {
		close(i.unused)
	}
}

// renew retires a process, and starts the next one if the plugin is eager and there
// is room for it. The caller holds mu.
func (m *manager) renew(ctx context.Context, i *instance) {
	room := len(m.instances) < maxProcesses
	m.retire(i)
	if room && m.plugin.Eager && m.mayStart() == nil {
		m.begin(ctx)
	}
}

// close stops all processes and refuses new calls. It does not wait.
func (m *manager) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.closing)
	if m.again != nil {
		m.again.Stop()
	}
	if m.starting != nil {
		m.starting.cancel(errClosed)
	}
	for _, i := range m.instances {
		m.retire(i)
	}
}
