// Package supervisor keeps plugin processes running and carries calls to them.
//
// A plugin starts at its first call, under the limits of package sandbox, and
// stops when it is idle. One that crashes, hangs, floods or lies costs its own
// calls only: they end at once with an error that names the cause, and the
// plugin starts again with a growing delay. The supervisor never repeats a
// call; it says whether the plugin may have seen it.
//
// It is the only package of the host that knows go-plugin and gRPC.
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

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// startsAtOnce bounds the plugins that [Supervisor.Start] starts at a time.
const startsAtOnce = 4

// timing is how long a plugin may take for what is asked of it. Tests that
// provoke each of these shorten it.
type timing struct {
	// start bounds each phase of a start: handshake, connection, Describe and
	// Configure.
	start time.Duration
	// quiet is how long a plugin may complete nothing before it is asked
	// whether it is well, probe how long it may take to answer, and again the
	// time between two probes once one was missed.
	quiet, probe, again time.Duration
	// look is how long a process counts as not exposed without another look, and
	// patrol the time between two looks if nothing is called.
	look, patrol time.Duration
	// attach is how long a plugin may take to take up its channel to the host.
	attach time.Duration
	// preview is how long a plugin may take to say what a call would do.
	preview time.Duration
	// obey is how long a call may go on once the plugin was told to end it.
	// finish is how long a plugin may take to finish its calls when it stops.
	obey, finish time.Duration
	// drain is how long a process that was replaced may take for its calls
	// before it is stopped.
	drain time.Duration
	// hang is how long the end of the host waits for what is under way. What takes
	// longer waits for a file system that does not answer.
	hang time.Duration
}

func defaultTiming() timing {
	return timing{
		start: 10 * time.Second,
		quiet: 15 * time.Second, probe: 2 * time.Second, again: time.Second,
		look: 50 * time.Millisecond, patrol: time.Second,
		attach:  time.Second,
		preview: 5 * time.Second,
		obey:    5 * time.Second, finish: 2 * time.Second,
		drain: 30 * time.Second,
		hang:  30 * time.Second,
	}
}

// Supervisor keeps plugins. Its methods may be called at the same time.
type Supervisor struct {
	opts   Options // without the plugins
	timing timing
	env    []string // for tests: what every plugin gets of an environment, too
	run    *runDir
	hashes hashCache
	// exposed asks the file system what a process could change that it must not.
	exposed func(*sandbox.Process) []string
	// reprotect keeps a process from changing them, and returns what it still could.
	reprotect func(*sandbox.Process, context.Context, []string) []string
	// readOnly asks it whether nothing can be written in the workspace.
	readOnly func(dir string) bool
	tasks    sync.WaitGroup // starts, watchers and the like; Close waits for them
	// changing holds one token while there is a [Change].
	changing chan struct{}

	mu       sync.RWMutex // guards all below; taken before those of a keeper
	closed   bool
	plugins  []Plugin
	keepers  map[string]*keeper // of the plugins; it is replaced, not changed
	prepared map[*keeper]struct{}
	leaving  map[string]*keeper // replaced, and with processes or starts

	closing  sync.Once
	closeErr error
	suspects suspects
}

// New returns a Supervisor that has started nothing. It removes what dead
// hosts left in the run directory. The caller must Close it.
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
	if opts.Entered == nil {
		opts.Entered = func(string, Phase) {}
	}
	if opts.Publish == nil {
		opts.Publish = func(string, string, []tool.Spec) {}
	}
	plugins := slices.Clone(opts.Plugins)
	if err := checkPlugins(plugins); err != nil {
		return nil, err
	}
	if opts.RunDir == "" {
		var err error
		if opts.RunDir, err = ownRunParent(defaultRunParent(), sharedDir); err != nil {
			return nil, fmt.Errorf("run directory: %w", err)
		}
	}
	opts.Plugins = nil
	s := &Supervisor{
		opts: opts, timing: defaultTiming(), exposed: (*sandbox.Process).Exposed, reprotect: (*sandbox.Process).Reprotect, readOnly: readOnly,
		changing: make(chan struct{}, 1), plugins: plugins,
		keepers: make(map[string]*keeper), prepared: make(map[*keeper]struct{}), leaving: make(map[string]*keeper),
	}
	for _, p := range plugins {
		s.keepers[p.Name] = newKeeper(s, p)
	}
	if err := os.MkdirAll(filepath.Join(opts.StateDir, "plugins"), 0o700); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	var err error
	if s.run, err = newRunDir(opts.RunDir); err != nil {
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

// keeper returns the one that takes the calls of a plugin, or nil.
func (s *Supervisor) keeper(plugin string) *keeper {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.keepers[plugin]
}

// all returns the keepers that take calls, in the order of the plugins.
func (s *Supervisor) all() []*keeper {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var keepers []*keeper
	for _, p := range s.plugins {
		keepers = append(keepers, s.keepers[p.Name])
	}
	return keepers
}

// Start makes the tools of all plugins known: from what an earlier host has
// learned, or else by starting the plugin. It starts eager plugins too. It
// returns when all are known or have failed, which [Supervisor.Plugins] tells,
// at most a minute per four plugins later. Its error says that ctx has ended,
// or which plugins' settings are wrong: those are mistakes of the configuration.
func (s *Supervisor) Start(ctx context.Context) error {
	slots := make(chan struct{}, startsAtOnce)
	var starts sync.WaitGroup
	for _, k := range s.all() {
		if k.recall() && !k.plugin.Eager {
			continue
		}
		starts.Go(func() { // ends with the start, or with ctx
			slots <- struct{}{}
			defer func() { <-slots }()
			_ = k.ensure(ctx) // kept for Plugins, and in the log
		})
	}
	starts.Wait()
	return errors.Join(context.Cause(ctx), s.settingsMistakes())
}

// settingsMistakes says which plugins did not start because of their settings.
func (s *Supervisor) settingsMistakes() error {
	var wrong []error
	for _, k := range s.all() {
		if refused := k.refusedNow(); refused != nil && refused.brief == wrongSettings {
			wrong = append(wrong, fmt.Errorf("plugin %q: %w", k.plugin.Name, refused))
		}
	}
	return errors.Join(wrong...)
}

func (k *keeper) refusedNow() *refusedError {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refused
}

// Restart stops a plugin if it runs, forgets its crashes and starts it. Its
// error says, to an operator, why it did not start. A process that had no calls
// has ended when Restart returns, unless ctx ends before: it takes seconds if it
// hangs. Others may still finish theirs.
func (s *Supervisor) Restart(ctx context.Context, plugin string) error {
	for {
		k := s.keeper(plugin)
		if k == nil {
			return fmt.Errorf("there is no plugin %q", plugin)
		}
		idle := k.stop()
		err := k.ensure(ctx)
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

// stop ends the plugin's processes and forgets its crashes. It returns what is closed
// when those have ended that have no calls.
func (k *keeper) stop() (idle []<-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.backoff, k.refused = restarts{}, nil
	for _, i := range k.instances {
		if i.stopping { // an operator does not wait for its calls
			i.runner.end("")
		}
		if i.calls == 0 {
			idle = append(idle, i.ended)
		}
		i.why = "an operator restarted it"
		k.retire(i)
	}
	return idle
}

// Close stops all plugins and returns when nothing of them is left: at once if
// they are well, after some seconds if they hang. Calls under way fail, and
// count as sent. If a file system does not answer, Close returns after half a minute
// with an error that says so. It is idempotent.
func (s *Supervisor) Close() error {
	s.closing.Do(func() {
		s.closeKeepers()
		over := make(chan struct{})
		go func() { // ends with the tasks: with the process if a file system hangs
			s.tasks.Wait()
			close(over)
		}()
		if !within(s.timing.hang, over) {
			s.closeErr = fmt.Errorf("a file system does not answer: the host does not wait for it after %v", s.timing.hang)
			return
		}
		s.closeErr = s.run.Close()
	})
	return s.closeErr
}

// closeKeepers closes all keepers there are. There will be no others.
func (s *Supervisor) closeKeepers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, k := range s.keepers {
		k.close()
	}
	for _, k := range s.leaving {
		k.close()
	}
	for k := range s.prepared {
		k.close()
	}
}
