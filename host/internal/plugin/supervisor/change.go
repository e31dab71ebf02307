package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Change is a new set of plugins that is ready to take the place of the one
// that runs. Until [Change.Commit] it has no effect on calls. Either Commit or
// [Change.Discard] must be called; what is called after the first does nothing.
type Change struct {
	s       *Supervisor
	plugins []Plugin
	keepers map[string]*keeper // of all plugins, those that go on too
	over    sync.Once

	mu    sync.Mutex // guards fresh
	fresh []*keeper  // made for this change
}

// Prepare makes ready what a new set of plugins needs, for a reload. A plugin
// whose options, program and evaluated settings are the same goes on as it is,
// whatever state it is in, and so does one with the same options whose program
// cannot be used now. Any other one is started and configured beside the
// process that runs; it need not be if that one does not run either, and its
// tools are known from an earlier start with this program and these settings.
//
// The error names every plugin that cannot be started and every wrong setting,
// or says that ctx has ended. Then nothing has changed.
//
// There is one Change at a time: Prepare waits, as long as ctx allows, for the
// one before to be over. It also waits for processes that an earlier change of
// a plugin has left to finish their calls, so that there are never more than
// two generations and a new one.
func (s *Supervisor) Prepare(ctx context.Context, plugins []Plugin) (*Change, error) {
	if err := checkPlugins(plugins); err != nil {
		return nil, err
	}
	select {
	case s.changing <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the change of plugins before this: %w", context.Cause(ctx))
	}
	c := &Change{s: s, plugins: slices.Clone(plugins), keepers: make(map[string]*keeper)}
	if err := c.prepare(ctx); err != nil {
		c.Discard()
		return nil, err
	}
	return c, nil
}

func (c *Change) prepare(ctx context.Context) error {
	keepers, errs := make([]*keeper, len(c.plugins)), make([]error, len(c.plugins))
	slots := make(chan struct{}, startsAtOnce)
	var starts sync.WaitGroup
	for n, p := range c.plugins {
		starts.Go(func() { // ends with the start, or with ctx
			slots <- struct{}{}
			defer func() { <-slots }()
			keepers[n], errs[n] = c.plugin(ctx, p)
		})
	}
	starts.Wait()
	for _, k := range c.s.all() { // those that are to go are followed by none
		name := k.plugin.Name
		if slices.ContainsFunc(c.plugins, func(p Plugin) bool { return p.Name == name }) {
			continue
		}
		if err := c.s.awaitLeft(ctx, name); err != nil {
			return err
		}
	}
	for n, p := range c.plugins {
		c.keepers[p.Name] = keepers[n]
		if errs[n] != nil {
			errs[n] = fmt.Errorf("plugin %q: %w", p.Name, errs[n])
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

// plugin returns the keeper for a plugin: the one that it has, or a new one
// that is ready.
func (c *Change) plugin(ctx context.Context, p Plugin) (*keeper, error) {
	old := c.s.keeper(p.Name)
	if old != nil {
		if err := old.settle(ctx); err != nil {
			return nil, err
		}
		if old.unchanged(p) {
			return old, nil
		}
	}
	if err := c.s.awaitLeft(ctx, p.Name); err != nil {
		return nil, err
	}
	k := newKeeper(c.s, p)
	k.silent = true
	runs := old != nil && k.follow(old)
	if err := c.add(k); err != nil {
		return nil, err
	}
	return k, k.prepare(ctx, runs)
}

// add makes the Supervisor know of a new keeper, so that Close ends it.
func (c *Change) add(k *keeper) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.closed {
		return errClosed
	}
	c.s.prepared[k] = struct{}{}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = append(c.fresh, k)
	return nil
}

// awaitLeft waits until an earlier change of a plugin has left no process.
func (s *Supervisor) awaitLeft(ctx context.Context, plugin string) error {
	s.mu.RLock()
	left := s.leaving[plugin]
	s.mu.RUnlock()
	if left == nil {
		return nil
	}
	select {
	case <-left.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Commit makes the new set the one that takes calls, and returns at once. What
// the plugins offer by now is published meanwhile, and that those which are no
// longer there offer nothing, as long as [Supervisor.Run] is held back: no call
// is lost. Processes that were replaced take no new calls, and have 30 s to
// finish those that they have. A plugin that had crashed too often and is in
// the new set may start again.
//
// Whoever keeps what is published must know the new plugins before.
func (c *Change) Commit() {
	c.over.Do(func() {
		defer func() { <-c.s.changing }()
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if !c.s.closed { // else Close has ended it all
			c.s.replace(c)
		}
	})
}

// replace is called with mu held.
func (s *Supervisor) replace(c *Change) {
	before := make(map[string]string) // what is published, by plugin
	for name, old := range s.keepers {
		if c.keepers[name] == old {
			continue
		}
		before[name] = old.leave()
		s.leaving[name] = old
		s.tasks.Go(func() { // ends with the last process; Close ends these
			old.awaitEmpty()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.leaving, name)
			close(old.gone)
		})
		if c.keepers[name] == nil && before[name] != "" {
			s.opts.Publish(name, "", nil)
		}
	}
	for _, p := range c.plugins {
		k := c.keepers[p.Name]
		if _, fresh := s.prepared[k]; fresh {
			delete(s.prepared, k)
			k.speak(before[p.Name])
		} else {
			k.adopt(p)
		}
	}
	s.plugins, s.keepers = c.plugins, c.keepers
}

// Discard ends what was started for the change, and returns at once: the
// processes are gone within seconds. Calls notice nothing.
func (c *Change) Discard() {
	c.over.Do(func() {
		defer func() { <-c.s.changing }()
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if c.s.closed {
			return
		}
		for _, k := range c.fresh {
			delete(c.s.prepared, k)
			k.close()
		}
	})
}
