package config

import (
	"fmt"
	"path"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/sdk/tool"
)

// toolsets reads the toolset blocks.
func (d *decoder) toolsets(blocks []toolsetBlock) (sets []auth.Toolset) {
	firsts := make(map[string]hcl.Range)
	for _, block := range blocks {
		d.unique("toolset", block.Name, block.NameRange, firsts)
		if !tool.ValidPluginName(block.Name) {
			d.mistake(block.NameRange, "Invalid toolset name",
				"The name is part of the address /mcp/NAME. Expected a lower-case letter, then at most 63 lower-case letters, digits, _ and -, not %q.", block.Name)
		}
		set := auth.Toolset{Name: block.Name}
		words := d.words(block.Tools, `a list of tools such as ["read_*", "git_status"]`)
		for _, w := range words {
			if _, err := path.Match(w.text, ""); err != nil || !toolPattern().MatchString(w.text) {
				d.mistake(w.expr.Range(), "Not a pattern", "Expected the name of a tool: lower-case letters, digits and _, and * for any part, not %s.", quote(w.expr, w.text))
				continue
			}
			set.Tools = d.addTo(set.Tools, w.text, w)
			d.toolNames = append(d.toolNames, ToolName{Place: diag.Place(w.expr.Range()), Where: fmt.Sprintf("toolset %q", block.Name), Pattern: w.text})
		}
		if len(words) == 0 {
			d.mistake(block.NameRange, "Toolset without tools", `Add the tools that are in it: tools = ["read_*"].`)
		}
		sets = append(sets, set)
	}
	return sets
}

// toolset finds the toolset that a token names.
func (d *decoder) toolset(attr *hcl.Attribute) []auth.Toolset {
	name, ok := d.text(attr, "the name of a toolset")
	if !ok {
		return nil
	}
	var names []string
	for _, set := range d.sets {
		if set.Name == name {
			return []auth.Toolset{set}
		}
		names = append(names, set.Name)
	}
	d.mistake(attr.Expr.Range(), "Unknown toolset", "There is no block toolset %s.%s", quote(attr.Expr, name), diag.DidYouMean(name, names))
	return nil
}
