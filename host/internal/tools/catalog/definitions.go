package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/tools/lock"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// DefinitionState says how the definition of a tool relates to the accepted one.
type DefinitionState string

// The states.
const (
	// DefinitionAccepted: it is the accepted one.
	DefinitionAccepted DefinitionState = "accepted"
	// DefinitionNew: none was accepted.
	DefinitionNew DefinitionState = "new"
	// DefinitionChanged: another one was accepted.
	DefinitionChanged DefinitionState = "changed"
	// DefinitionGone: one was accepted, and the plugin no longer publishes the tool.
	DefinitionGone DefinitionState = "gone"
)

// Definition compares the definition that a plugin publishes with the accepted one.
type Definition struct {
	Tool  string
	State DefinitionState
	// Accepted and Published are the definitions; zero if there is none.
	Accepted, Published lock.Definition
}

// Review compares the tools of a plugin with those that were accepted.
type Review struct {
	Plugin string
	// Locked reports whether the tools need to be accepted. Once tools of a plugin are accepted, all
	// of its tools need to be.
	Locked bool
	// Tools are the tools that are offered, pending or accepted, in the order of their names.
	Tools []Definition
}

// Of returns the part of a review about some tools, or without names, about those that are not
// [DefinitionAccepted]. The error names a tool that is not in the review.
func (r Review) Of(names ...string) (Review, error) {
	part := Review{Plugin: r.Plugin, Locked: r.Locked}
	for _, d := range r.Tools {
		if slices.Contains(names, d.Tool) || len(names) == 0 && d.State != DefinitionAccepted {
			part.Tools = append(part.Tools, d)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(part.Tools, func(d Definition) bool { return d.Tool == name }) {
			return Review{}, fmt.Errorf("the plugin %q has no tool %s to accept", r.Plugin, tool.VisibleName(schema.Shorten(name)))
		}
	}
	return part, nil
}

// Digest returns a digest of everything that a person sees of the review.
func (r Review) Digest() string {
	parts := []string{r.Plugin}
	for _, d := range r.Tools {
		parts = append(parts, d.Tool, string(d.State), d.Accepted.Digest(), d.Published.Digest())
	}
	return digest.Of(strings.Join(parts, "\n")) // none of them has a line break
}

// Review compares the tools of a plugin with those that were accepted. known is false if the plugin
// has not published its tools.
func (c *Catalog) Review(plugin string) (r Review, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, known := c.published[plugin]
	if !known || plugin == HostPlugin {
		return Review{}, false
	}
	candidates := make(map[string]bool)
	for _, entry := range p.entries {
		candidates[entry.Spec.Name] = true
	}
	for _, refusal := range p.refusals {
		if refusal.Pending {
			candidates[refusal.Tool] = true
		}
	}
	r = Review{Plugin: plugin, Locked: c.lock.Locked(plugin)}
	published := make(map[string]bool)
	for _, spec := range p.specs {
		if published[spec.Name] {
			continue // the first one counts
		}
		published[spec.Name] = true
		r.Locked = r.Locked || spec.Foreign
		definition, err := lock.Define(spec)
		if !candidates[spec.Name] || err != nil {
			continue // refused for another reason
		}
		d := Definition{Tool: spec.Name, State: DefinitionNew, Published: definition}
		if accepted, ok := c.lock.Accepted(plugin, spec.Name); ok {
			d.Accepted, d.State = accepted, DefinitionChanged
			if accepted.Digest() == definition.Digest() {
				d.State = DefinitionAccepted
			}
		}
		r.Tools = append(r.Tools, d)
	}
	for _, name := range c.lock.Tools(plugin) {
		if !published[name] {
			accepted, _ := c.lock.Accepted(plugin, name)
			r.Tools = append(r.Tools, Definition{Tool: name, State: DefinitionGone, Accepted: accepted})
		}
	}
	slices.SortFunc(r.Tools, func(a, b Definition) int { return cmp.Compare(a.Tool, b.Tool) })
	return r, true
}

// pendingError is why a locked tool is not offered: its definition is not the accepted one.
type pendingError struct{ reason, digest string }

func (e pendingError) Error() string { return e.reason }

// note notes the definition of a tool that is pending.
func (p *publication) note(name string, err error) {
	if pending, ok := errors.AsType[pendingError](err); ok {
		if p.pending == nil {
			p.pending = make(map[string]string)
		}
		p.pending[name] = pending.digest
	}
}

// checkDefinition returns the digest of the accepted definition of a tool, "" if it needs none, or a
// [pendingError]. A tool that another program defines needs one, and so does every tool of a plugin
// of which an administrator has accepted tools.
func checkDefinition(plugin *Plugin, accepted lock.Lock, spec tool.Spec) (accepts string, err error) {
	if plugin.Name == HostPlugin || !spec.Foreign && !accepted.Locked(plugin.Name) {
		return "", nil
	}
	d, err := lock.Define(spec)
	if err != nil {
		return "", err
	}
	switch was, ok := accepted.Accepted(plugin.Name, spec.Name); {
	case !ok:
		return "", pendingError{"an administrator has not accepted it; toolhost plugins diff " + plugin.Name + " shows it", d.Digest()}
	case was.Digest() != d.Digest():
		return "", pendingError{"its definition has changed since an administrator accepted it; toolhost plugins diff " + plugin.Name + " shows how", d.Digest()}
	}
	return d.Digest(), nil
}

// refuseGone adds the accepted tools that the plugin no longer publishes. So rules and tool blocks
// that name them are no mistakes: another program may remove a tool at any time.
func (p *publication) refuseGone(plugin *Plugin, accepted lock.Lock, published map[string]bool) {
	for _, name := range accepted.Tools(plugin.Name) {
		if !published[name] && plugin.Name != HostPlugin {
			p.refuse(plugin, name, errors.New("an administrator has accepted it, and the plugin no longer has it")).Gone = true
		}
	}
}
