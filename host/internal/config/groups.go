package config

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/sdk/tool"
)

// readGroups reads the group blocks.
func (d *decoder) readGroups(blocks []groupBlock, results Results) (groups auth.Groups) {
	firsts := make(map[string]hcl.Range)
	for _, block := range blocks {
		d.unique("group", block.Name, block.NameRange, firsts)
		if !isLabel(block.Name, maxLabel) {
			d.mistake(block.NameRange, "Invalid group name", labelExpected, "Logs", maxLabel)
		}
		group := auth.Group{Name: block.Name, Limits: auth.Limits{
			ActionsPerHour: d.limit(block.ActionsPerHour), ConcurrentCalls: d.limit(block.ConcurrentCalls),
		}}
		group.Limits.Results, _ = d.sizeWithin(block.Results, minQuota, results.Quota, fmt.Sprintf("a size from %q to %q (results.quota)", minQuota, results.Quota))
		group.Limits.NetworkPerDay, _ = d.sizeWithin(block.NetworkPerDay, tool.MiB, 1<<50, sizeExample+" of at least 1MiB")
		for _, w := range d.words(block.Users, `a list of users such as ["ada"], or ["*"] for all`) {
			switch {
			case !auth.ValidUser(w.text):
				d.invalidUser(w.expr)
				continue
			case w.text != auth.Everyone:
				d.warnUser(w.expr, w.text, "it makes no calls")
			}
			group.Users = d.addTo(group.Users, w.text, w)
		}
		if sets := d.toolset(block.Toolset); len(sets) > 0 {
			group.Toolset = &sets[0]
		}
		groups = append(groups, group)
	}
	return groups
}

// limit reads a limit of a group: 0 if there is none, negative for no bound.
func (d *decoder) limit(attr *hcl.Attribute) int {
	if d.is(attr, unlimited) {
		return -1
	}
	n, _ := d.actions(attr)
	return n
}

func (d *decoder) groupNames() (names []string) {
	for _, g := range d.groups {
		names = append(names, g.Name)
	}
	return names
}
