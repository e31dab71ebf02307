package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/call/hosttools"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// Reload reads the configuration anew and puts it in the place of the old one.
// A configuration with any mistake, or one under which a changed plugin does
// not start, is refused as a whole, and the old one goes on. No call is lost.
//
// So is one that a plugin may have changed, unless accept is its digest, with which
// somebody says that it is what was meant; see [supervisor.Supervisor.Suspects].
func (d *Daemon) Reload(ctx context.Context, accept string) error {
	if d.opts.Load == nil {
		return errors.New("this host cannot reload its configuration")
	}
	d.reloading.Lock()
	defer d.reloading.Unlock()
	cfg, err := d.opts.Load()
	if err != nil {
		return err
	}
	// After it was read: what was changed later is not in it.
	if err := untouched(cfg, d.parts.supervisor.Suspects(), accept); err != nil {
		return err
	}
	if err := unchangeable(d.config.Load(), cfg); err != nil {
		return err
	}
	rules, err := policy.New(cfg.Policy)
	if err != nil {
		return err
	}
	toRun, toList := enabled(cfg.Plugins)
	d.parts.offers.reserve(toList)
	change, err := d.parts.supervisor.Prepare(ctx, toRun)
	if err != nil {
		return err
	}
	// By now the tools of all plugins that were started are known.
	if err := refuseRules(cfg, d.opts.Version); err != nil {
		change.Discard()
		return inLines(err)
	}
	if err := d.parts.tokens.Replace(d.withAgent(cfg.Tokens), d.revoked...); err != nil {
		change.Discard()
		return err
	}
	// What plugins publish is judged by the new rules before the new plugins
	// publish anything. The catalog refuses a plugin that stands twice only,
	// which is a mistake of the configuration.
	if err := d.parts.catalog.Apply(catalog.Options{Plugins: listed(cfg, toList)}); err != nil {
		change.Discard()
		return errors.Join(err, d.parts.tokens.Replace(d.withAgent(d.config.Load().Tokens), d.revoked...))
	}
	d.parts.pipeline.Apply(pipeline.Settings{
		Policy: rules, Roots: []string{cfg.Workspace}, ActionsPerHour: cfg.ActionsPerHour,
	})
	d.ruled.use(cfg) // before the new plugins publish anything
	change.Commit()
	d.parts.supervisor.Trust(cfg.Sources)
	d.parts.pipeline.Revoke(d.parts.tokens.Count)
	d.config.Store(cfg)
	d.pokeTokens()
	d.warn(cfg)
	d.opts.Logger.Info("reloaded the configuration", "files", cfg.Files, "policy", rules.Revision())
	return nil
}

// inLines is an error that tells all mistakes, one in a line: the client of a reload gets
// no more than its text.
func inLines(err error) error {
	mistakes, ok := errors.AsType[*config.Error](err)
	if !ok {
		return err
	}
	var lines []string
	for _, m := range mistakes.Mistakes {
		lines = append(lines, m.String())
	}
	return errors.New(strings.Join(lines, "\n"))
}

// untouched refuses a configuration that a plugin may have changed, unless somebody
// has accepted it as it is.
func untouched(cfg *config.Config, suspects map[string]string, accept string) error {
	for _, path := range cfg.Sources {
		plugin, suspect := suspects[path]
		if !suspect || accept == cfg.Digest {
			continue
		}
		return fmt.Errorf("%s was replaced where the plugin %q, which was running, could then change it: look whether it holds what you wrote, then run toolhost reload --accept %s; keep it where no plugin may write to be asked no more",
			path, plugin, cfg.Digest)
	}
	return nil
}

// unchangeable refuses a configuration that differs in what only a new host can
// take up.
func unchangeable(old, next *config.Config) error {
	for _, setting := range []struct{ name, old, next string }{
		{"workspace", old.Workspace, next.Workspace},
		{"state_dir", old.StateDir, next.StateDir},
		{"server.listen", old.Listen, next.Listen},
		{"auth.local_user", old.LocalUser, next.LocalUser},
		{"approvals.timeout", old.Approvals.Timeout.String(), next.Approvals.Timeout.String()},
		{"approvals.patience", old.Approvals.Patience.String(), next.Approvals.Patience.String()},
		{"results.ttl", old.Results.TTL.String(), next.Results.TTL.String()},
		{"results.quota", old.Results.Quota.String(), next.Results.Quota.String()},
		{"journal.keep", old.Journal.Keep.String(), next.Journal.Keep.String()},
		{"journal.max_size", old.Journal.MaxSize.String(), next.Journal.MaxSize.String()},
	} {
		if setting.old != setting.next {
			return fmt.Errorf("%s cannot be changed by a reload: it is %q and would be %q; stop the host and start it again",
				setting.name, setting.old, setting.next)
		}
	}
	if !slices.Equal(old.Secrets, next.Secrets) {
		return errors.New("a value that env(), file() or a secret block gives has changed, which a reload cannot take up; stop the host and start it again")
	}
	return nil
}

// enabled returns what the supervisor and the catalog need of the plugins that
// are to be used.
func enabled(plugins []config.Plugin) (toRun []supervisor.Plugin, toList []catalog.Plugin) {
	for _, p := range plugins {
		if p.Enabled {
			toRun = append(toRun, p.Supervisor)
			toList = append(toList, p.Catalog)
		}
	}
	return toRun, toList
}

// listed returns what the catalog is told of: the host's own tools, and those of
// plugins.
func listed(cfg *config.Config, plugins []catalog.Plugin) []catalog.Plugin {
	return append([]catalog.Plugin{hosttools.Plugin(patience(cfg))}, plugins...)
}
