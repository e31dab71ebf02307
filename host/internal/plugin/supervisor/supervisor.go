// Package supervisor decides when plugin processes run, and sends calls to them.
//
// A plugin starts at its first call and stops when it is idle. A plugin that
// crashes, hangs, floods or lies costs its own calls only: they end at once with an
// error that names the cause, and the plugin starts again after a growing delay.
// The supervisor never repeats a call; it reports whether the plugin may have seen
// it.
//
// Each plugin has a manager, whose pools start and stop its processes. Package process
// runs one process.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// startsAtOnce bounds the plugins that [Supervisor.Start] and [Supervisor.Prepare]
// start at the same time.
const startsAtOnce = 4

// timing holds the time limits of a plugin. Tests that exceed a limit shorten it.
type timing struct {
	// start bounds each phase of a start: handshake, connection, Describe and
	// Configure.
	start time.Duration
	// quiet is how long a plugin may complete nothing before it gets a health
	// check, probe how long it may take to answer, and again the time between two
	// checks after one without an answer.
	quiet, probe, again time.Duration
	// patrol is the time between two checks of the protected files without calls.
	patrol time.Duration
	// attach is how long a plugin may take to open its channel to the host.
	attach time.Duration
	// preview is how long a plugin may take for a preview.
	preview time.Duration
	// obey is how long a call may continue after the plugin was told to end it. finish is how
	// long a stopping plugin may take to finish its calls.
	obey, finish time.Duration
	// drain is how long a replaced process may take to finish its calls.
	drain time.Duration
	// hang is how long Close waits. A longer wait would be for a file system that
	// does not answer.
	hang time.Duration
	// room is how long a call waits for one of [Plugin.MaxInstances] processes.
	room time.Duration
	// change is the time between two changes of a plugin's tools, after the first few.
	change time.Duration
}

func defaultTiming() timing {
	return timing{
		start: 10 * time.Second,
		quiet: 15 * time.Second, probe: 2 * time.Second, again: time.Second,
		patrol:  time.Second,
		attach:  time.Second,
		preview: 5 * time.Second,
		obey:    5 * time.Second, finish: 2 * time.Second,
		drain: 30 * time.Second,
		hang:  30 * time.Second,
		room:  30 * time.Second,

		change: 15 * time.Second,
	}
}

// Supervisor runs plugins. It is safe for concurrent use.
type Supervisor struct {
	opts   Options // without the plugins
	host   process.FileID
	timing timing
	env    []string // for tests: further variables of every plugin
	run    *process.RunDir
	hashes process.Hashes
	// exposed returns the protected files that a process could change, reprotect
	// protects them again and returns the rest, and readOnly reports whether the
	// workspace cannot be written. Tests replace them.
	exposed   func(*sandbox.Process) []string
	reprotect func(*sandbox.Process, context.Context, []string) []string
	readOnly  func(dir string) bool
	tasks     sync.WaitGroup // starts, watchers and the like; Close waits for them
	// changing holds one token while there is a [Change].
	changing chan struct{}
	memory   memory
	places   *egress.Places // for the connections of all processes
	quotas   *egress.Quotas // of their users

	mu       sync.RWMutex // guards the following; taken before the mu of a manager
	closed   bool
	started  bool // Start was called
	plugins  []Plugin
	managers map[string]*manager // of the plugins; replaced as a whole
	prepared map[*manager]struct{}
	replaced map[string]*manager // those that still have a process or a start

	closing  sync.Once
	closeErr error
	suspects suspects
}

// New returns a Supervisor that has started nothing. It removes the directories
// that dead hosts left in the run directory. The caller must Close it.
func New(opts Options) (*Supervisor, error) {
	switch {
	case opts.Launcher == nil:
		return nil, errors.New("supervisor: Options.Launcher is required")
	case !filepath.IsAbs(opts.StateDir):
		return nil, fmt.Errorf("supervisor: Options.StateDir is %q, expected an absolute path", opts.StateDir)
	}
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	if opts.Redact == nil {
		opts.Redact = func(text string) string { return text }
	}
	if opts.Hide == nil {
		opts.Hide = func(_, text string) string { return text }
	}
	if opts.Command == nil {
		opts.Command = func(words string) string { return "toolhost " + words }
	}
	if opts.Stopped == nil {
		opts.Stopped = func(string, string) error { return nil }
	}
	if opts.Entered == nil {
		opts.Entered = func(_, _, _ string, _ bool, _ Phase) {}
	}
	if opts.Publish == nil {
		opts.Publish = func(Publication) bool { return false }
	}
	plugins := slices.Clone(opts.Plugins)
	if err := checkPlugins(plugins); err != nil {
		return nil, err
	}
	opts.Plugins = nil
	s := &Supervisor{
		opts: opts, host: hostProgram(), timing: defaultTiming(), exposed: (*sandbox.Process).Exposed, reprotect: (*sandbox.Process).Reprotect, readOnly: sandbox.ReadOnly,
		changing: make(chan struct{}, 1), places: egress.HalfOfDescriptors(), quotas: egress.NewQuotas(), plugins: plugins,
		managers: make(map[string]*manager), prepared: make(map[*manager]struct{}), replaced: make(map[string]*manager),
	}
	s.memory.size, s.memory.of = opts.InstancesMemory, make(map[string]tool.ByteSize)
	for _, p := range plugins {
		s.managers[p.Name] = newManager(s, p)
	}
	if err := os.MkdirAll(filepath.Join(opts.StateDir, "plugins"), 0o700); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	var err error
	if s.run, err = process.OpenRunDir(opts.RunDir); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	return s, nil
}

func checkPlugins(plugins []Plugin) error {
	seen := make(map[string]bool)
	for _, p := range plugins {
		if !tool.ValidPluginName(p.Name) {
			return fmt.Errorf("plugin %q: not a name: expected a lower-case letter, then letters, digits, _ and -", p.Name)
		}
		if seen[p.Name] {
			return fmt.Errorf("plugin %q: two plugins have this name", p.Name)
		}
		seen[p.Name] = true
	}
	return nil
}

// manager returns the manager that takes the calls of a plugin, or nil.
func (s *Supervisor) manager(plugin string) *manager {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.managers[plugin]
}

// all returns the managers that take calls, in the order of the plugins.
func (s *Supervisor) all() []*manager {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var managers []*manager
	for _, p := range s.plugins {
		managers = append(managers, s.managers[p.Name])
	}
	return managers
}

// Start publishes the tools of all plugins. It starts a plugin only if it is eager
// or if no earlier host has saved its tools. Start returns when every plugin has
// published its tools or has failed, at most a minute per four plugins;
// [Supervisor.Plugins] lists the failures. The error reports that ctx has ended, or
// the plugins whose settings are wrong, which is a mistake in the configuration.
func (s *Supervisor) Start(ctx context.Context) error {
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	slots := make(chan struct{}, startsAtOnce)
	var starts sync.WaitGroup
	for _, m := range s.all() {
		if m.loadTools() && !m.plugin.Eager {
			continue
		}
		starts.Go(func() { // ends with the start, or with ctx
			slots <- struct{}{}
			defer func() { <-slots }()
			_ = m.ensure(ctx) // Plugins and the log report it
		})
	}
	starts.Wait()
	return errors.Join(context.Cause(ctx), s.settingsMistakes())
}

// settingsMistakes reports the plugins that did not start because of their settings.
func (s *Supervisor) settingsMistakes() error {
	var wrong []error
	for _, m := range s.all() {
		m.mu.Lock()
		refused := m.base.refused
		m.mu.Unlock()
		if refused != nil && refused.Brief == wrongSettings {
			wrong = append(wrong, fmt.Errorf("plugin %q: %w", m.plugin.Name, refused))
		}
	}
	return errors.Join(wrong...)
}

// Restart stops a plugin if it runs, forgets its crashes and starts it. The error
// tells an operator why it did not start. When Restart returns, a process without
// calls has ended, unless ctx ended first; a process that hangs takes seconds to
// end. A process with calls may still finish them.
func (s *Supervisor) Restart(ctx context.Context, plugin string) error {
	for {
		m := s.manager(plugin)
		if m == nil {
			return fmt.Errorf("there is no plugin %q", plugin)
		}
		idle := m.stop()
		err := m.ensure(ctx)
		switch {
		case err == nil:
			for _, ended := range idle {
				select {
				case <-ended:
				case <-ctx.Done():
				}
			}
			return nil
		case !errors.Is(err, errSuperseded):
			return fmt.Errorf("start plugin %q: %w", plugin, operatorError(err))
		}
	}
}

// stop ends the plugin's processes and forgets its crashes. It returns a channel
// for each process without calls, closed when that process has ended.
func (m *manager) stop() (idle []<-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.histories { // also of users without a pool
		h.backoff, h.refused = restarts{}, nil
	}
	for _, p := range m.pools() {
		p.backoff, p.refused = restarts{}, nil
		m.forget(p)
		for _, i := range p.instances {
			if i.stopping { // an operator does not wait for its calls
				i.proc.End("")
			}
			if i.calls == 0 {
				idle = append(idle, i.ended)
			}
			i.why = "an operator restarted it"
			p.retire(i)
		}
	}
	return idle
}

// EndSession tells the processes of all plugins that asked for it that a session has ended. It
// does not wait for them. A process that is a thousand sessions behind is skipped.
func (s *Supervisor) EndSession(id string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, m := range s.managers {
		m.endSession(id)
	}
	for _, m := range s.replaced {
		m.endSession(id)
	}
}

// Close stops all plugins and returns when nothing of them is left: at once if they
// are well, after some seconds if they hang. Calls in progress fail and count as
// sent. If a file system does not answer, Close returns an error after half a
// minute. Calling it again has no effect.
func (s *Supervisor) Close() error {
	s.closing.Do(func() {
		s.closeManagers()
		over := make(chan struct{})
		go func() { // ends with the tasks, or with the host if a file system hangs
			s.tasks.Wait()
			close(over)
		}()
		select {
		case <-over:
			s.closeErr = s.run.Close()
		case <-time.After(s.timing.hang):
			s.closeErr = fmt.Errorf("a file system does not answer: the host does not wait for it after %v", s.timing.hang)
		}
	})
	return s.closeErr
}

// closeManagers closes all managers and prevents new ones.
func (s *Supervisor) closeManagers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, m := range s.managers {
		m.close()
	}
	for _, m := range s.replaced {
		m.close()
	}
	for m := range s.prepared {
		m.close()
	}
}
