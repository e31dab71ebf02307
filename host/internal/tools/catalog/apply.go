package catalog

import "slices"

// Apply replaces the options, for a reload: what each plugin has published
// last is judged anew, and forgotten if the plugin is no longer named. Readers
// see all of it or nothing. Calls under way keep the entries that they have,
// and a tool for which nothing changes keeps its entry. Apply refuses what
// [New] refuses, and changes nothing then.
//
// A plugin must be named before it publishes: on a reload, Apply comes before
// the change of the plugins that run.
func (c *Catalog) Apply(opts Options) error {
	if err := opts.check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plugins = slices.Clone(opts.Plugins)
	published := make(map[string]publication)
	for i := range c.plugins {
		plugin := &c.plugins[i]
		if last, ok := c.published[plugin.Name]; ok {
			published[plugin.Name] = compile(plugin, last.digest, last.specs)
		}
	}
	c.published = published
	c.offer()
	return nil
}

// offer makes current what the publications come to, and tells the watchers if
// that is another offer than before. c.mu is held.
func (c *Catalog) offer() {
	before, now := c.current.Load(), c.resolve()
	now.keep(before)
	c.current.Store(now)
	if slices.EqualFunc(before.entries, now.entries, (*Entry).offersSame) {
		return
	}
	for watcher := range c.watchers {
		select {
		case watcher <- struct{}{}:
		default: // the watcher has not yet seen the change before
		}
	}
}

// keep puts entries of the state before in the places of those that are the
// same, so that whoever holds one sees that nothing has changed.
func (s *snapshot) keep(before *snapshot) {
	for i, entry := range s.entries {
		old := before.byName[entry.Spec.Name]
		if old == nil || old.Digest != entry.Digest || !old.offersSame(entry) {
			continue
		}
		s.entries[i] = old
		s.byName[old.Spec.Name] = old
		for _, alias := range old.Aliases {
			s.byName[alias] = old
		}
	}
}
