package supervisor

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxWaiting bounds the calls that wait for one plugin to start.
	maxWaiting = 256
	// maxProcesses bounds the processes of one plugin: one takes calls while
	// another finishes its own.
	maxProcesses = 2
	// defaultIdleTimeout is the default of [Plugin.IdleTimeout].
	defaultIdleTimeout = 10 * time.Minute
	// defaultMaxInstances and defaultMaxPerUser are the defaults of [Plugin.MaxInstances] and
	// [Plugin.MaxPerUser].
	defaultMaxInstances = 64
	defaultMaxPerUser   = 4
	// degradedRetry is the delay that callers get while a plugin does not answer.
	degradedRetry = 2 * time.Second
)

// manager manages one plugin with one set of options: it knows the plugin's program and
// publishes its tools, and its pools run the processes. A reload that changes the plugin gives
// it another manager.
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

	proven atomic.Bool // a reader can be kept from changing anything here

	publishMu sync.Mutex   // guards the next six; taken before mu
	program   string       // the digest of the program whose tools were published last
	tools     []tool.Spec  // those tools
	published string       // the digest of the publication that the host knows, "" if none
	sound     string       // the digest of the last publication that was sound
	held      bool         // publications wait: it does not take calls yet, or no longer
	pending   *Publication // the last publication that waits

	mu         sync.Mutex         // guards the following, the pools, and the second half of [instance]
	base       *pool              // takes all calls, or with another scope only describes the plugin
	scoped     map[owner]*pool    // by user or session, with [Plugin.Scope]
	queue      []*turn            // scoped pools that wait for room, in the order of their wait
	histories  map[owner]*history // of users with sessions
	allCrashes int                // of all pools
	userDirs   map[string]string  // those that were made, by user
	digest     string
	version    string
	tried      string         // digest of the program that was last started or whose tools were loaded
	triedFile  process.FileID // the file that was last started
	learned    learned
	report     *sandbox.Report // of the process that started last, without readers
	ofReader   *sandbox.Report // of the reader that started last
	replaced   bool            // another manager takes the calls
	// brokenClaims are those of the tools of readers, by tool.
	brokenClaims map[string]BrokenClaim
}

func newManager(s *Supervisor, p Plugin) *manager {
	m := &manager{
		s:       s,
		plugin:  p.withDefaults(),
		log:     s.opts.Logger.With("plugin", p.Name),
		closing: make(chan struct{}),
		gone:    make(chan struct{}),
	}
	m.base, m.scoped, m.userDirs = newPool(m, owner{}, new(history)), make(map[owner]*pool), make(map[string]string)
	m.histories, m.brokenClaims = make(map[owner]*history), make(map[string]BrokenClaim)
	m.latest.Store(&p)
	return m
}

var errClosed = errors.New("the host is stopping")

// stateDir returns the directory of the plugin's state, in which users have theirs.
func (m *manager) stateDir() string {
	return filepath.Join(m.s.opts.StateDir, "plugins", m.plugin.Name)
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

// close stops all processes and refuses new calls. It does not wait.
func (m *manager) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.closing)
	for _, p := range m.pools() {
		p.halt(errClosed)
		for _, i := range p.instances {
			p.retire(i)
		}
	}
}
