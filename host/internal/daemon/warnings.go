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

// Warnings returns settings that are valid but probably not intended, each with its place:
// [config.Config.Warnings], and tools that are left out because of their tier, of plugins
// that were started before. It starts nothing.
func Warnings(cfg *config.Config, version string) ([]string, error) {
	tools, _, err := knownTools(cfg, version)
	if err != nil {
		return nil, err
	}
	return warningsWith(cfg, tools.Refused()), nil
}

// warningsWith returns the warnings about a configuration that leaves out these tools.
func warningsWith(cfg *config.Config, refusals []catalog.Refusal) []string {
	leftOut := map[string][]string{} // by plugin
	for _, refusal := range refusals {
		if refusal.TooHigh {
			leftOut[refusal.Plugin] = append(leftOut[refusal.Plugin], refusal.Tool)
		}
	}
	warnings := slices.Clone(cfg.Warnings)
	for _, p := range cfg.Plugins {
		if names := leftOut[p.Catalog.Name]; len(names) > 0 {
			warnings = append(warnings, cfg.Hide(fmt.Sprintf("%s: tier = %q of plugin %q leaves out tools of a higher tier: %s. Raise it, or disable these tools.",
				p.Place, p.Catalog.Ceiling, p.Catalog.Name, strings.Join(names, ", "))))
		}
	}
	warnings = append(warnings, unavailable(cfg, refusals)...)
	for _, p := range cfg.Plugins {
		s := p.Supervisor
		if level := s.Confinement.Isolation; p.Enabled && len(s.Forbidden) > 0 && executes(s.Confinement) && !level.CanHave(sandbox.LayerMounts) {
			warnings = append(warnings, cfg.Hide(fmt.Sprintf(`%s: isolation = %q of plugin %q hides nothing from the programs that it executes: only checks of calls and commands enforce paths.forbidden. Write "auto".`,
				p.Place, level, s.Name)))
		}
	}
	return warnings
}

// unavailable returns a warning for each tool block and each rule about a tool that cannot
// work in this configuration.
func unavailable(cfg *config.Config, refusals []catalog.Refusal) (warnings []string) {
	for _, refusal := range refusals {
		if !refusal.Unavailable {
			continue
		}
		for _, p := range cfg.Plugins {
			if p.Catalog.Name == refusal.Plugin && slices.ContainsFunc(p.Catalog.Tools, func(o catalog.ToolOptions) bool { return o.Name == refusal.Tool }) {
				warnings = append(warnings, cfg.Hide(fmt.Sprintf("%s: plugin %q has a block for the tool %s, which is not available: %s", p.Place, refusal.Plugin, refusal.Tool, refusal.Reason)))
			}
		}
		for _, rule := range cfg.Policy.Rules {
			if slices.Contains(rule.Tools, refusal.Tool) {
				warnings = append(warnings, cfg.Hide(fmt.Sprintf("%s: rule %q names the tool %s, which is not available: %s", rule.ToolsPlace, rule.Name, refusal.Tool, refusal.Reason)))
			}
		}
	}
	return warnings
}

// NotHidden describes what no sandbox hides of paths.forbidden.
const NotHidden = "its programs see files that a pattern with wildcards covers if they are created later, and hard links that are created later"

// Notes returns limits of what a configuration enforces.
func Notes(cfg *config.Config) []string {
	var names []string
	for _, p := range cfg.Plugins {
		if p.Enabled && len(p.Supervisor.Forbidden) > 0 && executes(p.Supervisor.Confinement) {
			names = append(names, p.Supervisor.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("paths.forbidden hides files that exist when a plugin (%s) starts from its programs; %s", strings.Join(names, ", "), NotHidden)}
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
	for _, warning := range warningsWith(cfg, d.parts.catalog.Refused()) {
		d.opts.Logger.Warn("the configuration", "warning", warning)
	}
}
