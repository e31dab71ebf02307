package daemon

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// Warnings returns settings that are valid but probably not intended, each with its place, unless
// a comment in the file silences them: [config.Config.Warnings], and those about the tools of
// plugins that were started before. It starts nothing.
func Warnings(cfg *config.Config, version string) ([]string, error) {
	tools, err := knownTools(cfg, version)
	if err != nil {
		return nil, err
	}
	return warningsWith(cfg, tools), nil
}

// warningsWith returns the warnings about a configuration with these tools.
func warningsWith(cfg *config.Config, tools *catalog.Catalog) []string {
	refusals := tools.Refused()
	warnings := slices.Concat(leftOut(cfg, refusals), unavailable(cfg, tools), notHidden(cfg))
	for i := range warnings {
		warnings[i].Text = cfg.Hide(warnings[i].Text)
	}
	return cfg.Unaccepted(warnings, complete(cfg, tools))
}

// leftOut returns a warning for each plugin with tools that its tier or another plugin leaves
// out, and for each tool that the plugin describes wrongly.
func leftOut(cfg *config.Config, refusals []catalog.Refusal) (warnings []config.Warning) {
	for _, p := range cfg.Plugins {
		var tooHigh, taken []string
		for _, refusal := range refusals {
			switch {
			case refusal.Plugin != p.Catalog.Name:
			case refusal.TooHigh:
				tooHigh = append(tooHigh, refusal.Tool)
			case refusal.Taken && !isAlias(p.Catalog, refusal.Tool):
				taken = append(taken, refusal.Tool)
			case !refusal.Taken && !refusal.Unknown && !refusal.Waits():
				warnings = append(warnings, config.Warning{Place: p.Place, Word: config.WarnRefused, Text: fmt.Sprintf(
					"tool %s of plugin %q is refused: %s. This is a mistake in the plugin.", refusal.Tool, p.Catalog.Name, strings.TrimSuffix(refusal.Reason, "."))})
			}
		}
		if len(tooHigh) > 0 {
			warnings = append(warnings, config.Warning{Place: p.TierPlace, Word: config.WarnTier, Text: fmt.Sprintf(
				"tier = %q of plugin %q leaves out tools of a higher tier: %s. Raise it, or disable these tools.", p.Catalog.Ceiling, p.Catalog.Name, strings.Join(tooHigh, ", "))})
		}
		if len(taken) > 0 {
			warnings = append(warnings, config.Warning{Place: p.Place, Word: config.WarnTaken, Text: fmt.Sprintf(
				"tools of plugin %q are left out, since other plugins have their names: %s. Disable the tools of one of these plugins.", p.Catalog.Name, strings.Join(taken, ", "))})
		}
	}
	return warnings
}

// isAlias reports whether the configuration gives a tool of the plugin this alias.
func isAlias(p catalog.Plugin, name string) bool {
	return slices.ContainsFunc(p.Tools, func(o catalog.ToolOptions) bool { return slices.Contains(o.Aliases, name) })
}

// unavailable returns a warning for each plugin without an available tool, and for each tool
// block and each rule about a tool that cannot work in this configuration.
func unavailable(cfg *config.Config, tools *catalog.Catalog) (warnings []config.Warning) {
	warn := func(place, format string, args ...any) {
		warnings = append(warnings, config.Warning{Place: place, Word: config.WarnUnavailable, Text: fmt.Sprintf(format, args...) + "."})
	}
	for _, p := range cfg.Plugins {
		offers := slices.ContainsFunc(tools.Entries(), func(e *catalog.Entry) bool { return e.Plugin == p.Catalog.Name }) ||
			slices.ContainsFunc(tools.Refused(), func(r catalog.Refusal) bool { return r.Plugin == p.Catalog.Name && (r.TooHigh || r.Taken || r.Pending) })
		for _, refusal := range tools.Refused() {
			if refusal.Plugin == p.Catalog.Name && refusal.Unavailable && !offers {
				warn(p.Place, "none of the tools of plugin %q is available: %s", p.Catalog.Name, refusal.Reason)
				break
			}
		}
	}
	for _, refusal := range tools.Refused() {
		if !refusal.Unavailable {
			continue
		}
		for _, p := range cfg.Plugins {
			i := slices.IndexFunc(p.Catalog.Tools, func(o catalog.ToolOptions) bool { return o.Name == refusal.Tool })
			if p.Catalog.Name == refusal.Plugin && i >= 0 {
				warn(p.Catalog.Tools[i].Place, "plugin %q has a block for the tool %s, which is not available: %s", refusal.Plugin, refusal.Tool, refusal.Reason)
			}
		}
		for _, rule := range cfg.Policy.Rules {
			if slices.Contains(rule.Tools, refusal.Tool) {
				warn(rule.ToolsPlace, "rule %q names the tool %s, which is not available: %s", rule.Name, refusal.Tool, refusal.Reason)
			}
		}
	}
	return warnings
}

// notHidden returns a warning for each plugin from whose programs nothing is hidden.
func notHidden(cfg *config.Config) (warnings []config.Warning) {
	for _, p := range cfg.Plugins {
		s := p.Supervisor
		if level := s.Confinement.Isolation; p.Enabled && len(s.Forbidden) > 0 && executes(s.Confinement) && !level.CanHave(sandbox.LayerMounts) {
			warnings = append(warnings, config.Warning{Place: p.Place, Word: config.WarnForbidden, Text: fmt.Sprintf(
				`isolation = %q of plugin %q hides nothing from the programs that it executes: only checks of calls and commands enforce paths.forbidden. Write "auto".`, level, s.Name)})
		}
	}
	return warnings
}

// NotHidden describes what no sandbox hides of paths.forbidden.
const NotHidden = "its programs see files that a pattern with wildcards covers if they are created later, and hard links that are created later"

// Notes returns limits of what a configuration enforces, and the hosts that registry() stands for.
func Notes(cfg *config.Config) (notes []string) {
	var names []string
	for _, p := range cfg.Plugins {
		if p.Enabled && len(p.Supervisor.Forbidden) > 0 && executes(p.Supervisor.Confinement) {
			names = append(names, p.Supervisor.Name)
		}
	}
	if len(names) > 0 {
		notes = append(notes, fmt.Sprintf("paths.forbidden hides files that exist when a plugin (%s) starts from its programs; %s", strings.Join(names, ", "), NotHidden))
	}
	for _, p := range cfg.Plugins {
		if p.Supervisor.Network == nil {
			continue
		}
		for _, to := range p.Supervisor.Network.Allow {
			if to.From != "" {
				notes = append(notes, fmt.Sprintf("plugin %q: %s is %s", p.Supervisor.Name, to.From, to))
			}
		}
	}
	return notes
}

// UntoldAccounts returns a warning about tokens if this machine does not report the account of
// a connection, for the reason of [auth.CheckOrigins]; "" if it does, or if the host does
// not serve HTTP.
func UntoldAccounts(cfg *config.Config, reason error) string {
	switch {
	case reason == nil || cfg.Listen == "":
		return ""
	case errors.Is(reason, auth.ErrNeverTold):
		return "this system does not report the account of a connection: over HTTP every account of this machine may use every token. " +
			`Write listen = "" if no program needs HTTP.`
	}
	return fmt.Sprintf(`the account of a connection is not known here (%v): over HTTP only tokens with account = "any" are valid.`, reason)
}

// warn logs the warnings about a configuration, once the tools of its plugins are known.
func (d *Daemon) warn(cfg *config.Config) {
	for _, warning := range warningsWith(cfg, d.parts.catalog) {
		d.opts.Logger.Warn("the configuration", "warning", warning)
	}
}
