// Package catalog knows which tools exist now, each with the tier and the
// limits that hold for it. A plugin's word about its own tools counts only as
// far as the admin lets it; a tool that breaks a rule is refused with the
// reason and costs its plugin nothing else. Readers never wait.
package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Options say what a catalog may hold.
type Options struct {
	// Plugins are the plugins in the order of the configuration: where two
	// publish a tool of the same name, the first one's counts.
	Plugins []Plugin
}

// Catalog holds the tools of all plugins. Its methods may be called from any
// goroutine.
type Catalog struct {
	current atomic.Pointer[snapshot]
	mu      sync.Mutex // guards plugins, published, watchers and writing current
	plugins []Plugin
	// published is what each plugin said last.
	published map[string]publication
	watchers  map[chan struct{}]struct{}
}

// snapshot is one state of the catalog. It never changes.
type snapshot struct {
	byName   map[string]*Entry // by name and by alias
	entries  []*Entry          // sorted by name
	refusals []Refusal
	bases    map[string]Basis // by plugin, of those that have published
}

// publication is what one plugin has published, and what of it is offered
// before it is compared with others.
type publication struct {
	digest   string
	specs    []tool.Spec
	entries  []*Entry
	refusals []Refusal
	offer    Basis
}

// Refusal says why a tool is not offered.
type Refusal struct {
	Plugin string
	// Tool is the name as the plugin or the configuration gives it, made
	// visible and cut to a readable length.
	Tool string
	// Reason stands well after "refused because".
	Reason string
	// Unknown says that the configuration names the tool and the plugin has
	// none of this name: a mistake.
	Unknown bool
	// TooHigh says that its tier is above the ceiling of its plugin.
	TooHigh bool
	// Taken says that the name, of a tool or an alias, belongs to another tool.
	Taken bool
}

// New returns a catalog in which no plugin has published anything yet. It
// refuses options that name a plugin twice.
func New(opts Options) (*Catalog, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	c := &Catalog{
		plugins:   slices.Clone(opts.Plugins),
		published: make(map[string]publication),
		watchers:  make(map[chan struct{}]struct{}),
	}
	c.current.Store(&snapshot{})
	return c, nil
}

func (o Options) check() error {
	seen := make(map[string]bool)
	for _, plugin := range o.Plugins {
		if seen[plugin.Name] {
			return fmt.Errorf("plugin %q stands twice in the catalog's options", plugin.Name)
		}
		seen[plugin.Name] = true
	}
	return nil
}

// Publish replaces all tools of a plugin by those of the program with the
// given digest. Calls under way keep the entries that they have. It fails only
// for tools of a plugin that the options do not name; tools that cannot be
// offered are listed by [Catalog.Refused].
func (c *Catalog) Publish(plugin, digest string, specs []tool.Spec) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.plugins, func(p Plugin) bool { return p.Name == plugin })
	switch {
	case i < 0 && len(specs) == 0:
		return nil // it has none to take away
	case i < 0:
		return fmt.Errorf("publish tools of plugin %q: the catalog does not know it", plugin)
	}
	c.published[plugin] = compile(&c.plugins[i], digest, specs)
	c.offer()
	return nil
}

// Lookup returns the tool with a name or an alias. The error has code
// [tool.NotFound] and offers the nearest names.
func (c *Catalog) Lookup(name string) (*Entry, *tool.Error) {
	now := c.current.Load()
	if entry, ok := now.byName[name]; ok {
		return entry, nil
	}
	for _, refusal := range now.refusals {
		if refusal.Tool == name {
			return nil, tool.Errorf(tool.NotFound, "the tool %q is not offered: %s", name, refusal.Reason)
		}
	}
	unknown := tool.Errorf(tool.NotFound, "unknown tool %q", schema.Shorten(name))
	near := schema.Nearest(name, slices.Collect(maps.Keys(now.byName)))
	if len(near) == 0 {
		return nil, unknown.WithHint("list the tools to see which there are")
	}
	return nil, unknown.WithHint("did you mean %s?", strings.Join(near, " or "))
}

// Entries returns every tool that is offered, sorted by name. The caller must
// not change the slice.
func (c *Catalog) Entries() []*Entry { return c.current.Load().entries }

// Refused returns every tool that is not offered, and every tool that the
// configuration names and no plugin has, in the order of the plugins.
func (c *Catalog) Refused() []Refusal { return slices.Clone(c.current.Load().refusals) }

// Changed returns a channel that receives when other tools are offered than
// before, or one is offered in another way; not when only the program behind it
// is another. Changes that come before the last one was received are merged
// with it. stop ends the subscription and must be called once.
func (c *Catalog) Changed() (changes <-chan struct{}, stop func()) {
	watcher := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers[watcher] = struct{}{}
	return watcher, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, watcher)
	}
}

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
