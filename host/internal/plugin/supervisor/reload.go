package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/internal/digest"
)

// errSuperseded is the error of a call that came to a replaced manager. The call
// belongs to the manager that replaced it.
var errSuperseded = errors.New("the plugin's options have changed")

// Change is a new set of plugins that is ready to replace the running set. It has no
// effect on calls until [Change.Commit]. The caller must call Commit or
// [Change.Discard]; the second call has no effect.
type Change struct {
	s        *Supervisor
	plugins  []Plugin
	managers map[string]*manager // of all plugins, unchanged ones included
	over     sync.Once

	mu    sync.Mutex // guards fresh
	fresh []*manager // made for this change
}

// Prepare prepares a new set of plugins, for a reload. A plugin with the same options, program
// and evaluated settings continues unchanged, in any state. So does a plugin with the same
// options whose program cannot be used now. Prepare starts and configures every other plugin
// while its old process runs. It skips the start if nothing runs and the tools for this program
// and these settings are known, or if a stop covers the plugin.
//
// The error names every plugin that cannot be started and every wrong setting, or
// reports that ctx has ended. Then nothing has changed.
//
// There is one Change at a time: Prepare waits for the one before, and for processes
// that an earlier change left to finish their calls. So a plugin never has more than
// two generations and a new one. ctx bounds the wait.
func (s *Supervisor) Prepare(ctx context.Context, plugins []Plugin) (*Change, error) {
	if err := checkPlugins(plugins); err != nil {
		return nil, err
	}
	select {
	case s.changing <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the change of plugins before this: %w", context.Cause(ctx))
	}
	c := &Change{s: s, plugins: slices.Clone(plugins), managers: make(map[string]*manager)}
	if err := c.prepare(ctx); err != nil {
		c.Discard()
		return nil, err
	}
	return c, nil
}

func (c *Change) prepare(ctx context.Context) error {
	managers, errs := make([]*manager, len(c.plugins)), make([]error, len(c.plugins))
	slots := make(chan struct{}, startsAtOnce)
	var starts sync.WaitGroup
	for n, p := range c.plugins {
		starts.Go(func() { // ends with the start, or with ctx
			slots <- struct{}{}
			defer func() { <-slots }()
			managers[n], errs[n] = c.plugin(ctx, p)
		})
	}
	starts.Wait()
	for _, m := range c.s.all() { // the plugins that the reload removes
		name := m.plugin.Name
		if slices.ContainsFunc(c.plugins, func(p Plugin) bool { return p.Name == name }) {
			continue
		}
		if err := c.s.awaitReplaced(ctx, name); err != nil {
			return err
		}
	}
	for n, p := range c.plugins {
		c.managers[p.Name] = managers[n]
		if errs[n] != nil {
			errs[n] = fmt.Errorf("plugin %q: %w", p.Name, errs[n])
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

// plugin returns the manager of a plugin: the current one, or a new one that is ready.
func (c *Change) plugin(ctx context.Context, p Plugin) (*manager, error) {
	old := c.s.manager(p.Name)
	if old != nil {
		if err := old.awaitStarts(ctx); err != nil {
			return nil, err
		}
		if old.unchanged(p) {
			return old, nil
		}
	}
	if err := c.s.awaitReplaced(ctx, p.Name); err != nil {
		return nil, err
	}
	m := newManager(c.s, p)
	m.held = true
	runs := old != nil && m.inherit(old)
	if err := c.add(m); err != nil {
		return nil, err
	}
	return m, m.prepare(ctx, runs)
}

// add registers a new manager with the Supervisor, so that Close closes it.
func (c *Change) add(m *manager) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.closed {
		return errClosed
	}
	c.s.prepared[m] = struct{}{}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = append(c.fresh, m)
	return nil
}

// awaitReplaced waits until the replaced manager of a plugin has no process.
func (s *Supervisor) awaitReplaced(ctx context.Context, plugin string) error {
	s.mu.RLock()
	old := s.replaced[plugin]
	s.mu.RUnlock()
	if old == nil {
		return nil
	}
	select {
	case <-old.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Commit makes the new set take the calls, and returns at once. It publishes the new
// tools, and no tools for plugins that are gone, while it holds back
// [Supervisor.Run]: no call is lost. Replaced processes take no new calls and have
// 30 s to finish their own. A plugin of the new set that had crashed too often may
// start again.
//
// The receiver of [Options.Publish] must know the new plugins before Commit.
func (c *Change) Commit() {
	c.over.Do(func() {
		defer func() { <-c.s.changing }()
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if !c.s.closed { // otherwise Close has ended everything
			c.s.apply(c)
		}
	})
}

// apply makes a change take effect. The caller holds mu.
func (s *Supervisor) apply(c *Change) {
	before := make(map[string]string) // the published revisions, by plugin
	for name, old := range s.managers {
		if c.managers[name] == old {
			continue
		}
		before[name] = old.retireAll()
		s.replaced[name] = old
		s.tasks.Go(func() { // ends with the last process; Close ends these
			old.awaitEmpty()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.replaced, name)
			close(old.gone)
		})
		if c.managers[name] == nil && before[name] != "" {
			s.opts.Publish(Publication{Plugin: name})
		}
	}
	for _, p := range c.plugins {
		m := c.managers[p.Name]
		if _, fresh := s.prepared[m]; fresh {
			delete(s.prepared, m)
			m.publishHeld(before[p.Name])
		} else {
			m.update(p)
		}
	}
	s.plugins, s.managers = c.plugins, c.managers
}

// Discard ends everything that was started for the change, and returns at once: the
// processes end within seconds. It does not affect calls.
func (c *Change) Discard() {
	c.over.Do(func() {
		defer func() { <-c.s.changing }()
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if c.s.closed {
			return
		}
		for _, m := range c.fresh {
			delete(c.s.prepared, m)
			m.close()
		}
	})
}

// learned holds the facts that a program reported at its last start, or at an
// earlier one.
type learned struct {
	program string // its digest
	schema  []byte // of its settings
	outcome string // of evaluating its settings
}

// outcomeOf returns a text that is equal for settings with the same evaluation.
func outcomeOf(p *Plugin, settings []byte, err error) string {
	if err != nil {
		return "wrong " + digest.Of(err.Error())
	}
	return conditionsOf(p, settings)
}

// conditionsOf returns a digest of what the plugin is told at its start and its tools
// depend on: its settings, and whether it has a network.
func conditionsOf(p *Plugin, settings []byte) string {
	if p.Confinement.HasNetwork() {
		return digest.Of(settings)
	}
	return digest.Of(string(settings) + " without a network")
}

func (m *manager) learn(l learned) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tried, m.learned = l.program, l
}

// evaluated identifies the settings that the plugin has.
func (m *manager) evaluated() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.learned.outcome
}

// awaitStarts waits until the starts that are in progress have ended.
func (m *manager) awaitStarts(ctx context.Context) error {
	var starts []*attempt
	m.mu.Lock()
	for _, p := range m.pools() {
		if p.starting != nil {
			starts = append(starts, p.starting)
		}
	}
	m.mu.Unlock()
	for _, start := range starts {
		select {
		case <-start.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// unchanged reports whether the plugin can continue as it is with new options.
func (m *manager) unchanged(p Plugin) bool {
	if !sameOptions(m.plugin, p.withDefaults()) {
		return false
	}
	program, err := process.OpenProgram(p.Path, p.SHA256, &m.s.hashes)
	if err != nil {
		m.log.Warn("the plugin's program cannot be used; the plugin is unchanged", "error", err)
		return true
	}
	defer program.Close()
	m.mu.Lock()
	tried, known := m.tried, m.learned
	m.mu.Unlock()
	switch {
	case program.Digest != tried:
		return false
	case program.Digest != known.program:
		return true // it failed before it reported anything, and would fail again
	}
	settings, err := evaluate(p, known.schema)
	return outcomeOf(&p, settings, err) == known.outcome
}

// sameOptions compares all options but the functions.
func sameOptions(a, b Plugin) bool {
	a.Settings, a.Locate, a.Verify, b.Settings, b.Locate, b.Verify = nil, nil, nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

// prepare makes the tools of a new plugin known. It starts the plugin if it must run,
// or if its tools are not known. If a stop covers the plugin, its tools may stay unknown until
// [Supervisor.Revive]. The error is for operators.
func (m *manager) prepare(ctx context.Context, run bool) error {
	if schema, known := KnownSchema(m.s.opts.StateDir, m.plugin); known {
		if _, err := m.settings(schema); err != nil {
			return err
		}
	}
	starts := (run || m.plugin.Eager) && m.base.stopped() == nil
	if !starts && m.loadTools() {
		return nil
	}
	// A stop must not keep operators from a reload that repairs its cause.
	if err := m.ensure(ctx); err != nil && m.base.stopped() == nil && !m.base.notNow() {
		return operatorError(err)
	}
	return nil
}

// notNow reports whether the last start failed because something that the plugin needs does not answer.
// That is no reason to refuse a configuration.
func (p *pool) notNow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unready
}

// inherit takes over the counters of the manager that m will replace, and reports whether that
// manager has a process.
func (m *manager) inherit(old *manager) (runs bool) {
	old.mu.Lock()
	defer old.mu.Unlock()
	from, to := old.base, m.base
	to.generation, to.lastCrash = from.generation, from.lastCrash
	m.allCrashes, m.brokenClaims = old.allCrashes, maps.Clone(old.brokenClaims)
	return slices.ContainsFunc(old.pools(), func(p *pool) bool { return p.current() != nil })
}

// update takes the functions of new but otherwise equal options, and forgets crashes.
func (m *manager) update(p Plugin) {
	m.latest.Store(&p)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.histories { // also of users without a pool
		h.backoff = restarts{}
	}
	for _, p := range m.pools() {
		p.backoff = restarts{}
		m.forget(p)
		if p.refused == nil && (p.phase == Broken || p.phase == Backoff) {
			p.enter(Stopped)
		}
	}
}

// publishHeld publishes the tools that were held back, unless their revision is
// known, which the host has already.
func (m *manager) publishHeld(known string) {
	m.publishMu.Lock()
	defer m.publishMu.Unlock()
	m.held, m.published = false, known
	if m.pending != nil {
		m.announce(*m.pending)
	}
	m.pending = nil
}

// retireAll makes the manager a replaced one: it publishes and starts nothing more
// and takes no calls. Its processes may finish their calls; retireAll does not wait
// for them. It returns the published revision.
func (m *manager) retireAll() (published string) {
	m.publishMu.Lock()
	m.held, published = true, m.published
	m.publishMu.Unlock()

	m.mu.Lock()
	defer m.mu.Unlock()
	m.replaced = true
	for _, p := range m.pools() {
		p.skipTurn()
		p.halt(errSuperseded)
		for _, i := range p.instances {
			if !i.stopping {
				i.patience = m.s.timing.drain
				i.why = "its configuration or its program changed"
			}
			p.retire(i)
		}
	}
	return published
}

// awaitEmpty waits until a replaced manager has no process and no start.
func (m *manager) awaitEmpty() {
	for {
		over := m.unfinished()
		if over == nil {
			return
		}
		<-over
	}
}

// unfinished returns a channel that is closed when the start, or one of the
// processes, is over; nil if there is none.
func (m *manager) unfinished() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pools() {
		if p.starting != nil {
			return p.starting.done
		}
		for _, i := range p.instances {
			return i.ended
		}
	}
	return nil
}
