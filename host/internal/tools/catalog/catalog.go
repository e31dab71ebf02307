// Package catalog holds the tools that are offered now, each with its effective tier and limits. A
// plugin's claims about its tools count only as far as the configuration allows. A tool that breaks
// a rule is refused with the reason; other tools of the plugin are not affected. Readers never
// wait.
package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolhost/toolhost/host/internal/tools/lock"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Options configure a catalog.
type Options struct {
	// Plugins are the plugins in the order of the configuration: if two publish a tool with the
	// same name, the first one's counts.
	Plugins []Plugin
	// Lock are the accepted definitions; see [Catalog.UseLock].
	Lock lock.Lock
}

// Catalog holds the tools of all plugins. Its methods may be called from any goroutine.
type Catalog struct {
	current atomic.Pointer[snapshot]
	mu      sync.Mutex // guards plugins, lock, published, watchers and writing current
	plugins []Plugin
	lock    lock.Lock
	// published is the last publication of each plugin.
	published map[string]publication
	watchers  map[chan struct{}]struct{}
}

// snapshot is one state of the catalog. It is immutable.
type snapshot struct {
	byName   map[string]*Entry // by name and by alias
	entries  []*Entry          // sorted by name
	refusals []Refusal
	bases    map[string]Basis // by plugin, of those that have published
	// unavailable are the names of tools that are not available, by alias.
	unavailable map[string]string
}

// publication is what one plugin has published, and the resulting offer before it is compared with
// other plugins.
type publication struct {
	digest   string
	specs    []tool.Spec
	entries  []*Entry
	refusals []Refusal
	pending  map[string]string // the digests of definitions that wait to be accepted, by tool
	offer    Basis
	sound    bool // every schema compiles
}

// Refusal is why a tool is not offered.
type Refusal struct {
	Plugin string
	// Tool is the name from the plugin or the configuration, with visible characters and of
	// readable length.
	Tool string
	// Reason completes a sentence that ends with "refused because".
	Reason string
	// Unknown reports that the configuration names the tool and the plugin does not have it: a
	// mistake. Near is a tool of the plugin with a similar name, or "".
	Unknown bool
	Near    string
	// Unavailable reports that the tool cannot work in this configuration. Reason says why, and
	// what to change.
	Unavailable bool
	// TooHigh reports that its tier is above its plugin's ceiling.
	TooHigh bool
	// Pending reports that an administrator has not accepted its definition.
	Pending bool
	// Gone reports that an administrator has accepted a tool that the plugin no longer publishes.
	Gone bool
	// Taken reports that the name or alias belongs to another tool.
	Taken bool
}

// Waits reports that the tool may be offered later with the same configuration.
func (r Refusal) Waits() bool { return r.Unavailable || r.Pending || r.Gone }

// New returns an empty catalog. It refuses options that name a plugin twice.
func New(opts Options) (*Catalog, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	c := &Catalog{
		plugins:   slices.Clone(opts.Plugins),
		lock:      opts.Lock,
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

// Publish replaces all tools of a plugin by those of the program with the given digest. Running
// calls keep their entries. It fails only for tools of a plugin that the options do not name;
// [Catalog.Refused] lists tools that cannot be offered.
func (c *Catalog) Publish(plugin, digest string, specs []tool.Spec) error {
	return c.publish(plugin, digest, specs, false)
}

// PublishKnown is Publish for tools that were [Catalog.Sound] in an earlier process of this program:
// it compiles their schemas when they are used first.
func (c *Catalog) PublishKnown(plugin, digest string, specs []tool.Spec) error {
	return c.publish(plugin, digest, specs, true)
}

// Sound reports whether every schema in the last publication of a plugin compiles.
func (c *Catalog) Sound(plugin string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.published[plugin].sound
}

func (c *Catalog) publish(plugin, digest string, specs []tool.Spec, known bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.plugins, func(p Plugin) bool { return p.Name == plugin })
	switch {
	case i < 0 && len(specs) == 0:
		return nil // it has nothing to take away
	case i < 0:
		return fmt.Errorf("publish tools of plugin %q: the catalog does not know it", plugin)
	}
	c.published[plugin] = compile(&c.plugins[i], c.lock, digest, specs, known)
	c.offer()
	return nil
}

// Lookup returns the tool with a name or an alias. The error has code [tool.NotFound] and suggests
// similar names.
func (c *Catalog) Lookup(name string) (*Entry, *tool.Error) {
	return c.LookupFor(name, func(string) bool { return true })
}

// LookupFor is Lookup for a caller that may use some tools, by their names, and those of
// the host. To the caller, others do not exist.
func (c *Catalog) LookupFor(name string, mayUse func(tool string) bool) (*Entry, *tool.Error) {
	now := c.current.Load()
	entry, ok := now.byName[name]
	if ok && (entry.OfHost() || mayUse(entry.Spec.Name)) {
		return entry, nil
	}
	for _, refusal := range now.refusals {
		switch {
		case refusal.Tool != cmp.Or(now.unavailable[name], name) || !mayUse(refusal.Tool):
		case refusal.Unavailable:
			return nil, tool.Errorf(tool.NotFound, "the tool %q is not available: %s", name, refusal.Reason)
		default:
			return nil, tool.Errorf(tool.NotFound, "the tool %q is not offered: %s", name, refusal.Reason)
		}
	}
	unknown := tool.Errorf(tool.NotFound, "unknown tool %q", schema.Shorten(name))
	var names []string
	for known, entry := range now.byName {
		if entry.OfHost() || mayUse(entry.Spec.Name) {
			names = append(names, known)
		}
	}
	near := schema.Nearest(name, names)
	if len(near) == 0 {
		return nil, unknown.WithHint("list the tools to see which there are, or search them with %s if your list has it", FindTool)
	}
	return nil, unknown.WithHint("did you mean %s?", strings.Join(near, " or "))
}

// Entries returns every offered tool, sorted by name. The caller must not change the slice.
func (c *Catalog) Entries() []*Entry { return c.current.Load().entries }

// Refused returns every tool that is not offered, including tools that only the configuration
// names, in the order of the plugins.
func (c *Catalog) Refused() []Refusal { return slices.Clone(c.current.Load().refusals) }

// Changed returns a channel that receives when the offered tools change, but not when only the
// program behind a tool does. Changes before the last one was received are merged. stop ends the
// subscription and must be called once.
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

// Apply replaces the options on a reload. It judges the last publication of each plugin again, and
// forgets plugins that are no longer named. Readers see all of the change or nothing. Running calls
// keep their entries, and a tool that does not change keeps its entry. Apply refuses what [New]
// refuses, and then changes nothing.
//
// A plugin must be named before it publishes: on a reload, Apply comes before the change of the
// running plugins.
func (c *Catalog) Apply(opts Options) error {
	if err := opts.check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plugins, c.lock = slices.Clone(opts.Plugins), opts.Lock
	c.judge()
	return nil
}

// UseLock replaces the accepted definitions, which must not change later. A locked tool whose
// definition is another one is refused as pending; running calls keep their entries.
func (c *Catalog) UseLock(l lock.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lock = l
	c.judge()
}

// judge judges the last publication of each plugin again. c.mu is held.
func (c *Catalog) judge() {
	published := make(map[string]publication)
	for i := range c.plugins {
		plugin := &c.plugins[i]
		if last, ok := c.published[plugin.Name]; ok {
			published[plugin.Name] = compile(plugin, c.lock, last.digest, last.specs, last.sound)
		}
	}
	c.published = published
	c.offer()
}

// offer publishes the result of the publications, and notifies the watchers if the offer has
// changed. c.mu is held.
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

// keep reuses unchanged entries of the previous state, so that their holders see that nothing has
// changed.
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
