package daemon

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// Warnings returns what in a configuration is no mistake and probably not meant, each
// with its place: [config.Config.Warnings], and which tools are left out because of their
// tier, of the plugins that were started before. It starts nothing.
func Warnings(cfg *config.Config, version string) ([]string, error) {
	tools, _, err := knownTools(cfg, version)
	if err != nil {
		return nil, err
	}
	leftOut := map[string][]string{} // by plugin
	for _, refusal := range tools.Refused() {
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
	for _, p := range cfg.Plugins {
		s := p.Supervisor
		if level := s.Confinement.Isolation; p.Enabled && len(s.Forbidden) > 0 && executes(s.Confinement) && !level.CanHave(sandbox.LayerMounts) {
			warnings = append(warnings, cfg.Hide(fmt.Sprintf(`%s: isolation = %q of plugin %q hides nothing from the programs that it executes: paths.forbidden is held by checks of calls and commands only. Write "auto".`,
				p.Place, level, s.Name)))
		}
	}
	return warnings, nil
}

// NotHidden says what of paths.forbidden no sandbox holds.
const NotHidden = "its programs see what a pattern with wildcards covers and is made later, and hard links that somebody makes later"

// Notes returns what in a configuration holds less far than it reads.
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
	return []string{fmt.Sprintf("paths.forbidden is hidden from what plugins execute (%s) as found when each starts; %s", strings.Join(names, ", "), NotHidden)}
}

// UntoldAccounts says what becomes of tokens if this machine does not tell which account has
// opened a connection, for the reason that [auth.CheckOrigins] gives; "" if it tells, or
// if nothing is served over HTTP.
func UntoldAccounts(cfg *config.Config, reason error) string {
	switch {
	case reason == nil || cfg.Listen == "":
		return ""
	case errors.Is(reason, auth.ErrNeverTold):
		return "this system does not tell which account has opened a connection: over HTTP every token counts from each account of this machine. " +
			`Write listen = "" if no program needs HTTP.`
	}
	return fmt.Sprintf(`which account has opened a connection cannot be told here (%v): over HTTP no token counts but those with account = "any".`, reason)
}

// warn logs what is probably not meant in a configuration, once the tools of its plugins
// are known.
func (d *Daemon) warn(cfg *config.Config) {
	warnings, err := Warnings(cfg, d.opts.Version)
	if err != nil {
		d.opts.Logger.Error("the tools of the plugins cannot be listed", "error", err)
		return
	}
	for _, warning := range warnings {
		d.opts.Logger.Warn("the configuration", "warning", warning)
	}
}
