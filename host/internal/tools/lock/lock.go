// Package lock keeps the lock file: the definitions of tools that an administrator has accepted,
// beside the configuration. A tool of a locked plugin is offered only with exactly such a
// definition. The package reads the file strictly and replaces it as a whole; it decides nothing
// about tools.
package lock

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Path returns the path of the lock file of a configuration: config.lock.json for the file
// config.hcl, and config.lock.json in a directory.
func Path(configuration string, isDir bool) string {
	if isDir {
		return filepath.Join(configuration, "config.lock.json")
	}
	return strings.TrimSuffix(configuration, filepath.Ext(configuration)) + ".lock.json"
}

// Lock is the content of a lock file. The zero Lock has accepted nothing. A Lock that several
// goroutines read must not change: see [Lock.Clone].
type Lock struct {
	Plugins map[string]Plugin
}

// Plugin is what was accepted of one plugin.
type Plugin struct {
	// Tools are the accepted definitions, by the name of the tool. A plugin is locked if it is not
	// nil.
	Tools map[string]Definition
	// Package is what the plugin was installed from, as JSON of the command that installed it; nil
	// if it was not installed by one. This package keeps it unchanged.
	Package json.RawMessage
}

// Locked reports whether an administrator has accepted tools of a plugin. Then all of its tools need
// an entry.
func (l Lock) Locked(plugin string) bool { return l.Plugins[plugin].Tools != nil }

// Accepted returns the accepted definition of a tool, and whether there is one.
func (l Lock) Accepted(plugin, tool string) (Definition, bool) {
	d, ok := l.Plugins[plugin].Tools[tool]
	return d, ok
}

// Tools returns the names of the accepted tools of a plugin, sorted.
func (l Lock) Tools(plugin string) []string {
	return slices.Sorted(maps.Keys(l.Plugins[plugin].Tools))
}

// Accept adds the definition of a tool, or replaces it.
func (l *Lock) Accept(plugin string, d Definition) {
	p := l.Plugins[plugin]
	if p.Tools == nil {
		p.Tools = map[string]Definition{}
	}
	p.Tools[d.Name()] = d
	l.put(plugin, p)
}

// Forget removes the definition of a tool. The plugin stays locked.
func (l *Lock) Forget(plugin, tool string) { delete(l.Plugins[plugin].Tools, tool) }

// SetPackage sets what a plugin was installed from; nil removes it.
func (l *Lock) SetPackage(plugin string, from json.RawMessage) {
	p := l.Plugins[plugin]
	p.Package = from
	l.put(plugin, p)
}

// put replaces what is known of a plugin.
func (l *Lock) put(plugin string, p Plugin) {
	if l.Plugins == nil {
		l.Plugins = map[string]Plugin{}
	}
	l.Plugins[plugin] = p
	if p.Tools == nil && p.Package == nil {
		delete(l.Plugins, plugin)
	}
}

// Clone returns a copy that may be changed.
func (l Lock) Clone() Lock {
	plugins := make(map[string]Plugin, len(l.Plugins))
	for name, p := range l.Plugins {
		p.Tools = maps.Clone(p.Tools)
		plugins[name] = p
	}
	return Lock{Plugins: plugins}
}

// compare orders names.
func compare[T any](a, b named[T]) int { return cmp.Compare(a.name, b.name) }

// named is an entry of a map.
type named[T any] struct {
	name  string
	value T
}

// sorted returns the entries of a map by name.
func sorted[T any](m map[string]T) []named[T] {
	all := make([]named[T], 0, len(m))
	for name, value := range m {
		all = append(all, named[T]{name, value})
	}
	slices.SortFunc(all, compare)
	return all
}
