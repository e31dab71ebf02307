package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/hosttools"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/plugin/install"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/lock"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/internal/excerpt"
)

// Reload reads the configuration again and replaces the old one. It refuses the
// whole configuration, and the old one stays in force, if it has a mistake, if a
// changed plugin does not start with it, or if it changes a setting that only a
// new host can apply ([config.Config.CheckReload]). No call is lost.
//
// Reload also refuses a configuration that a plugin may have changed, unless
// accept is its digest, with which a person confirms the content; see
// [supervisor.Supervisor.Suspects].
//
// The log and the journal record the reload or the refusal, with the caller and the channel
// of the request, such as "cli".
func (d *Daemon) Reload(ctx context.Context, accept string, by auth.Caller, via string) error {
	if d.opts.Load == nil {
		return errors.New("this host cannot reload its configuration")
	}
	d.reloading.Lock()
	defer d.reloading.Unlock()
	revision, err := d.reload(ctx, accept)
	change := "reloaded the configuration"
	who := []any{"by", by.User, "via", via}
	if err != nil {
		why := beginning(err)
		change = "refused to reload the configuration: " + why
		d.opts.Logger.Warn("refused to reload the configuration", append(who, "error", why)...)
	} else {
		d.opts.Logger.Info(change, append(who, "files", d.config.Load().Files, "policy", revision)...)
	}
	switch {
	case via == "cli" || by.Token == "":
	case by.Issuer != "":
		change += fmt.Sprintf("; with an access token of the issuer %q", by.Issuer)
	default:
		change += fmt.Sprintf("; with the token %q", by.Token)
	}
	if failed := d.parts.journal.ChangeBy(context.WithoutCancel(ctx), by.User, via, change); failed != nil {
		d.opts.Logger.Error("the journal cannot record a reload", "error", failed)
	}
	return err
}

// Bounds on the mistakes that log and journal repeat: the caller gets all of them.
const (
	maxMistakes = 3
	maxMistake  = 400 // bytes
)

// beginning returns the first mistakes of a configuration in one line.
func beginning(err error) string {
	lines := strings.Split(inLines(err).Error(), "\n")
	more := ""
	if n := len(lines) - maxMistakes; n > 0 {
		lines, more = lines[:maxMistakes], fmt.Sprintf("; and %d more", n)
	}
	for i, line := range lines {
		lines[i] = excerpt.Printable(line, maxMistake)
	}
	return strings.Join(lines, "; ") + more
}

// reload replaces the configuration and returns the revision of the new policy. The caller holds
// d.reloading.
func (d *Daemon) reload(ctx context.Context, accept string) (revision string, err error) {
	cfg, err := d.opts.Load()
	if err != nil {
		return "", err
	}
	// After the files were read: later changes are not in cfg.
	if err := d.untouched(cfg, accept); err != nil {
		return "", err
	}
	if err := readSecrets(ctx, cfg); err != nil {
		return "", inLines(err)
	}
	if err := d.config.Load().CheckReload(cfg); err != nil {
		return "", err
	}
	d.opts.Config.AlsoHide(cfg) // before a plugin gets new ones
	rules, err := policy.New(cfg.Policy)
	if err != nil {
		return "", err
	}
	accepted, err := d.parts.lock.read(cfg)
	if err != nil {
		return "", err
	}
	toRun, toList := enabled(cfg.Plugins, accepted.Lock)
	d.parts.offers.reserve(toList)
	change, err := d.parts.supervisor.Prepare(ctx, toRun)
	if err != nil {
		return "", err
	}
	// The tools of all started plugins are known now.
	if err := refuseMistakes(cfg, d.opts.Version); err != nil {
		change.Discard()
		return "", inLines(err)
	}
	if err := d.parts.tokens.Replace(d.withAgent(cfg.Tokens), d.revoked...); err != nil {
		change.Discard()
		return "", err
	}
	// The new rules apply before the new plugins publish tools. The catalog only
	// refuses a plugin that is listed twice, which Load has refused already.
	if err := d.parts.catalog.Apply(catalog.Options{Plugins: listed(cfg, toList), Lock: accepted.Lock}); err != nil {
		change.Discard()
		return "", errors.Join(err, d.parts.tokens.Replace(d.withAgent(d.config.Load().Tokens), d.revoked...))
	}
	d.parts.lock.use(accepted)
	d.parts.pipeline.Apply(settings(cfg, rules))
	d.ruled.use(cfg) // before the new plugins publish anything
	change.Commit()
	d.parts.supervisor.BoundMemory(cfg.InstancesMemory)
	d.parts.supervisor.Trust(cfg.Sources)
	d.parts.issuers.Replace(cfg.Issuers)
	d.parts.notify.Use(ctx, cfg.Notifiers)
	d.parts.pipeline.Operations().Revoke(d.parts.counts)
	if d.parts.certificate != nil {
		d.logCertificate(d.parts.certificate.Use(cfg.TLS))
	}
	before := d.config.Swap(cfg)
	if d.parts.mcp != nil && !slices.Equal(listBounds(before), listBounds(cfg)) {
		d.parts.mcp.Relist()
	}
	d.pokeTokens()
	d.parts.mark.Renew()
	d.saveOrigin(cfg)
	d.warn(cfg)
	return rules.Revision(), nil
}

// settings returns the settings of the pipeline.
func settings(cfg *config.Config, rules *policy.Rules) pipeline.Settings {
	s := pipeline.Settings{Policy: rules, ActionsPerHour: cfg.ActionsPerHour}
	if cfg.Workspace.PerUser() {
		s.Own = cfg.Workspace.Of
	} else {
		s.Roots = []string{cfg.Workspace.Shared}
	}
	return s
}

// listBounds describes the bounds of the clients' lists of tools.
func listBounds(cfg *config.Config) []string {
	bounds := []string{fmt.Sprint(cfg.ToolSearchAbove), fmt.Sprint(cfg.Toolsets)}
	for _, t := range cfg.Tokens {
		bounds = append(bounds, fmt.Sprint(t.Name, " ", t.Toolsets))
	}
	for _, g := range cfg.Groups {
		bounds = append(bounds, fmt.Sprint(g.Name, " ", g.Users, " ", g.Toolset))
	}
	for _, c := range cfg.Clients {
		bounds = append(bounds, fmt.Sprint(c.Name, " ", c.ToolSearchAbove))
	}
	return bounds
}

// inLines returns an error whose text has all mistakes, one in a line: the client of
// a reload gets the text only.
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

// untouched refuses a configuration that a plugin may have changed, unless accept is
// its digest.
func (d *Daemon) untouched(cfg *config.Config, accept string) error {
	accepted, err := d.parts.lock.file.Load()
	if err != nil {
		return err
	}
	reviewed := cfg.Digest
	if accepted.Foreign {
		reviewed = digest.Of(cfg.Digest + accepted.Digest)
	}
	if accept == reviewed {
		return d.parts.lock.file.Trust(accepted.Digest)
	}
	if accept == cfg.Contents && !accepted.Foreign { // of a command that has written exactly this
		return nil
	}
	command := d.command("reload --accept " + reviewed)
	if accepted.Foreign {
		return fmt.Errorf("%s was changed where plugins could change it, and not by this host: check that its definitions and your configuration are what you accept, then run %s",
			cfg.Lock, command)
	}
	suspects := d.parts.supervisor.Suspects()
	for _, path := range cfg.Sources {
		plugin, suspect := suspects[path]
		if !suspect {
			continue
		}
		return fmt.Errorf("%s was replaced where the plugin %q, which was running, could then change it: check that it contains what you wrote, then run %s; keep it where no plugin may write to be asked no more",
			path, plugin, command)
	}
	return nil
}

// command returns the line that a person types for a command of toolhost.
func (d *Daemon) command(words string) string { return commandOf(d.opts, words) }

func commandOf(opts Options, words string) string {
	if opts.Command == nil {
		return "toolhost " + words
	}
	return opts.Command(words)
}

// enabled returns the enabled plugins, for the supervisor and for the catalog. Packages of the lock file
// are checked before what they contain runs.
func enabled(plugins []config.Plugin, accepted lock.Lock) (toRun []supervisor.Plugin, toList []catalog.Plugin) {
	for _, p := range plugins {
		if p.Enabled {
			from := accepted.Plugins[p.Supervisor.Name].Package
			p.Supervisor.Verify, p.Supervisor.Runs = install.Verifier(from), string(from)
			toRun = append(toRun, p.Supervisor)
			toList = append(toList, p.Catalog)
		}
	}
	return toRun, toList
}

// listed returns the plugins of the catalog: the host's own tools and the plugins.
func listed(cfg *config.Config, plugins []catalog.Plugin) []catalog.Plugin {
	return append([]catalog.Plugin{hosttools.Plugin(patience(cfg))}, plugins...)
}
