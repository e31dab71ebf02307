package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// resolve combines the publications. A name belongs to the plugin that is first in the
// configuration, whichever starts first: as the name of a tool or, if no tool of that plugin has
// it, as an alias. c.mu is held.
func (c *Catalog) resolve() *snapshot {
	now := &snapshot{byName: make(map[string]*Entry), bases: make(map[string]Basis), unavailable: make(map[string]string)}
	reserved := make(map[string]string) // names, and whose they are
	for _, plugin := range c.plugins {
		publication := c.published[plugin.Name]
		now.refusals = append(now.refusals, publication.refusals...)
		if publication.digest == "" {
			now.reserve(&plugin, reserved)
			continue
		}
		now.bases[plugin.Name] = publication.offer
		for _, spec := range publication.specs {
			for _, alias := range spec.Aliases {
				if spec.Unavailable != "" {
					now.unavailable[alias] = spec.Name
				}
			}
		}
		first := len(now.entries)
		for _, entry := range publication.entries {
			if reason := now.taken(entry.Spec.Name, reserved); reason != "" {
				now.refusals = append(now.refusals, Refusal{Plugin: plugin.Name, Tool: entry.Spec.Name, Reason: reason, Taken: true})
				continue
			}
			now.byName[entry.Spec.Name] = entry
			now.entries = append(now.entries, entry)
		}
		// Aliases are added after all names of the plugin, so that none hides one of its tools.
		for i, entry := range now.entries[first:] {
			now.entries[first+i] = now.claimAliases(entry, reserved)
		}
	}
	slices.SortFunc(now.entries, func(a, b *Entry) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	return now
}

// reserve reserves the names of a plugin whose tools are not known.
func (s *snapshot) reserve(plugin *Plugin, reserved map[string]string) {
	for _, name := range plugin.Reserved {
		if s.taken(name, reserved) == "" {
			reserved[name] = plugin.Name
		}
	}
}

// taken returns why a plugin cannot have a name, or "".
func (s *snapshot) taken(name string, reserved map[string]string) string {
	first, taken := s.byName[name]
	switch {
	case !taken && reserved[name] == "":
		return ""
	case !taken:
		return fmt.Sprintf("plugin %q, which is first in the configuration, had a tool of this name when it last ran", reserved[name])
	case first.OfHost():
		return "it is the name of a tool of the host itself"
	case first.Spec.Name != name:
		return fmt.Sprintf("plugin %q, which is first in the configuration, has this name as an alias of %q", first.Plugin, first.Spec.Name)
	}
	return fmt.Sprintf("plugin %q, which is first in the configuration, has a tool of this name", first.Plugin)
}

// claimAliases makes the aliases of an entry lead to it. It returns the entry, or a copy without
// the aliases that lead elsewhere.
func (s *snapshot) claimAliases(entry *Entry, reserved map[string]string) *Entry {
	var won []string
	for _, alias := range entry.Aliases {
		reason := s.taken(alias, reserved)
		if reason == "" {
			won = append(won, alias)
			continue
		}
		if first := s.byName[alias]; first != nil {
			reason = fmt.Sprintf("it is to be an alias of %q, and names %q of plugin %q already", entry.Spec.Name, first.Spec.Name, first.Plugin)
		}
		s.refusals = append(s.refusals, Refusal{Plugin: entry.Plugin, Tool: alias, Reason: reason, Taken: true})
	}
	if len(won) < len(entry.Aliases) {
		reduced := *entry
		reduced.Aliases = won
		entry = &reduced
		s.byName[entry.Spec.Name] = entry
	}
	for _, alias := range won {
		s.byName[alias] = entry
	}
	return entry
}
