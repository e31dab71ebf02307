package daemon

import (
	"fmt"
	"path"
	"slices"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
)

// wrongNames returns the names in a configuration that no tool has, except those in rules, and
// the aliases that are names of tools.
func wrongNames(cfg *config.Config, tools *catalog.Catalog) []pipeline.RuleMistake {
	var wrong []pipeline.RuleMistake
	for _, refusal := range tools.Refused() {
		for _, p := range cfg.Plugins {
			if p.Catalog.Name == refusal.Plugin {
				wrong = append(wrong, wrongBlock(p.Catalog, refusal)...)
			}
		}
	}
	hasPlugins := slices.ContainsFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Enabled })
	disabled, known := disabledTools(cfg)
	if !hasPlugins || !known || !complete(cfg, tools) {
		return wrong
	}
	for _, named := range cfg.ToolNames {
		if near, exists := matches(tools, disabled, named.Pattern); !exists {
			wrong = append(wrong, pipeline.RuleMistake{
				Place: named.Place, Word: named.Pattern, Summary: "Unknown tool",
				Text: fmt.Sprintf("%s: there is no tool %q%s", named.Where, named.Pattern, near),
			})
		}
	}
	return wrong
}

// wrongBlock returns the mistake in a tool block that the refusal is about.
func wrongBlock(plugin catalog.Plugin, refusal catalog.Refusal) (wrong []pipeline.RuleMistake) {
	for _, o := range plugin.Tools {
		switch {
		case refusal.Unknown && o.Name == refusal.Tool:
			near := ""
			if refusal.Near != "" {
				near = fmt.Sprintf("; did you mean %q?", refusal.Near)
			}
			wrong = append(wrong, pipeline.RuleMistake{
				Place: o.Place, Word: o.Name, Summary: "Unknown tool",
				Text: fmt.Sprintf("plugin %q, with its settings, has no tool %q%s", plugin.Name, o.Name, near),
			})
		case refusal.Taken && slices.Contains(o.Aliases, refusal.Tool):
			wrong = append(wrong, pipeline.RuleMistake{
				Place: o.Place, Word: refusal.Tool, Summary: "Alias that is taken",
				Text: fmt.Sprintf("%q cannot be an alias of the tool %q, since another tool has this name or alias; choose another one", refusal.Tool, o.Name),
			})
		}
	}
	return wrong
}

// matches reports whether a pattern matches a tool, one that is left out, or one of the disabled.
// Otherwise it suggests a similar name.
func matches(tools *catalog.Catalog, disabled []string, pattern string) (near string, exists bool) {
	names := slices.Clone(disabled)
	for _, entry := range tools.Entries() {
		names = append(names, entry.Spec.Name)
	}
	for _, refusal := range tools.Refused() {
		if !refusal.Unknown {
			names = append(names, refusal.Tool)
		}
	}
	if slices.ContainsFunc(names, func(name string) bool { ok, err := path.Match(pattern, name); return ok && err == nil }) {
		return "", true
	}
	if similar := schema.Nearest(pattern, names); len(similar) > 0 {
		near = fmt.Sprintf("; did you mean %q?", similar[0])
	}
	return near, false
}

// refuseNames returns the wrong names as an error.
func refuseNames(cfg *config.Config, tools *catalog.Catalog) error {
	check := pipeline.RuleCheck{Mistakes: wrongNames(cfg, tools)}
	hide(&check, cfg)
	return Mistakes(cfg, check)
}
