package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/certificate"
	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/host/internal/call/hosttools"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/call/results"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/decide/notify"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/mcpserver"
	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/hosts"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/metrics"
	"github.com/toolhost/toolhost/host/internal/state/secrets"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/lock"
)

// parts are the parts of a host, each built from those before it.
type parts struct {
	mark       *hosts.Mark
	store      *store.Store
	secrets    *secrets.Store
	journal    *journal.Journal
	events     *event.Bus
	metrics    *metrics.Metrics
	grants     *approval.Grants
	approvals  *approval.Service
	notify     *notify.Service
	stops      *killswitch.Switch
	results    *results.Dir
	catalog    *catalog.Catalog
	watcher    *watcher
	offers     *offers
	lock       *lockFile
	supervisor *supervisor.Supervisor
	usage      *workspace.Usage
	pipeline   *pipeline.Pipeline
	mcp        *mcpserver.Server
	tokens     *auth.Tokens
	issuers    *oidc.Issuers
	front      *front
	// certificate is what HTTP is served with; nil means no TLS.
	certificate *certificate.Reloader

	closers []func(context.Context) error // stop calls them, last first
}

// onStop makes stop call a function before the functions that were registered earlier.
func (p *parts) onStop(closer func() error) {
	p.closers = append(p.closers, func(context.Context) error { return closer() })
}

// build makes the parts. After an error, stop takes down the parts made so far.
func (d *Daemon) build(ctx context.Context) error {
	for _, step := range []struct {
		what  string
		build func(context.Context) error
	}{
		{"state", d.buildState},
		{"approvals", d.buildApprovals},
		{"plugins", d.buildPlugins},
		{"pipeline", d.buildPipeline},
		{"front ends", d.buildFront},
	} {
		err := step.build(ctx)
		if mistakes, ok := errors.AsType[*config.Error](err); ok {
			return mistakes // with their places
		}
		if err != nil {
			return fmt.Errorf("set up the %s: %w", step.what, err)
		}
	}
	return nil
}

func (d *Daemon) buildState(ctx context.Context) (err error) {
	cfg, p := d.opts.Config, &d.parts
	lock, err := store.Lock(cfg.StateDir)
	if err != nil {
		return err
	}
	p.onStop(lock.Close)
	if err := readSecrets(ctx, cfg); err != nil {
		return err
	}
	if p.store, err = store.Open(ctx, store.Options{Dir: cfg.StateDir, Logger: d.opts.Logger.Named("store")}); err != nil {
		return err
	}
	p.onStop(p.store.Close)
	p.secrets = secrets.New(p.store, cfg.StateDir)
	if p.lock, err = openLock(cfg, d.opts); err != nil {
		return err
	}
	p.onStop(p.lock.file.Release)
	p.mark = hosts.NewMark(cfg.Path)
	p.onStop(p.mark.Close) // before the lock, so that the next host does not find it
	d.saveOrigin(cfg)
	if p.journal, err = journal.Open(ctx, journal.Options{
		Store: p.store, KeyPath: journalKey(cfg.StateDir), Redact: cfg.Hide,
		Keep: cfg.Journal.Keep, MaxSize: cfg.Journal.MaxSize, Older: !d.opts.Ephemeral, Logger: d.opts.Logger.Named("journal"),
	}); err != nil {
		return err
	}
	p.closers = append(p.closers, p.journal.Close)
	if p.results, err = results.Open(results.Options{
		Path: filepath.Join(cfg.StateDir, "results"), TTL: cfg.Results.TTL, Quota: cfg.Results.Quota,
		Logger: d.opts.Logger.Named("results"),
	}); err != nil {
		return err
	}
	p.onStop(p.results.Close)
	return nil
}

// saveOrigin records in the state directory which configuration it belongs to, so that a moved
// configuration finds it.
func (d *Daemon) saveOrigin(cfg *config.Config) {
	if err := hosts.OriginOf(cfg.Path, cfg.Contents).Save(cfg.StateDir); err != nil {
		d.opts.Logger.Warn("if the configuration is moved, its state will not be found", "error", err)
	}
}

func (d *Daemon) buildApprovals(ctx context.Context) (err error) {
	p := &d.parts
	p.events = event.NewBus()
	d.buildMetrics()
	if p.grants, err = approval.NewGrants(ctx, approval.GrantOptions{
		Store: p.store, Logger: d.opts.Logger.Named("grants"),
		Basis: func(plugin string) catalog.Basis { return p.catalog.Basis(plugin) }, // called after the catalog was made
	}); err != nil {
		return err
	}
	p.onStop(p.grants.Close)
	p.notify = notify.New(ctx, notify.Options{Notifiers: d.opts.Config.Notifiers, Link: d.approvalURL, Logger: d.opts.Logger.Named("notify")})
	p.onStop(p.notify.Close)
	if p.approvals, err = approval.New(ctx, approval.Options{
		Store: p.store, Grants: p.grants, Timeout: d.opts.Config.Approvals.Timeout,
		Logger: d.opts.Logger.Named("approvals"), Changed: d.announceApproval,
	}); err != nil {
		return err
	}
	p.onStop(p.approvals.Close)
	p.stops, err = killswitch.New(ctx, p.store)
	return err
}

// announceApproval publishes the state of an approval, and tells people elsewhere.
func (d *Daemon) announceApproval(r approval.Record) {
	d.parts.answered(r)
	d.parts.notify.Changed(r)
	d.parts.events.Publish(r.User, event.ToolApproval{
		ID: r.ID, Call: r.Call, Tool: r.Tool, Plugin: r.Plugin, State: string(r.State), Expires: r.Expires,
		DecidedBy: r.DecidedBy, Message: r.Message,
	})
}

func (d *Daemon) buildPlugins(ctx context.Context) (err error) {
	cfg, p := d.opts.Config, &d.parts
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		return err
	}
	p.onStop(launcher.Close)
	if p.offers, err = readOffers(ctx, p.store, p.journal, d.opts.Logger); err != nil {
		return err
	}
	p.offers.waits = func(plugin string, definitions int) {
		p.events.Publish("", event.Definitions{Plugin: plugin, Pending: definitions})
	}
	living := context.WithoutCancel(ctx)
	toRun, toList := enabled(cfg.Plugins, p.lock.accepted())
	p.offers.reserve(toList)
	if p.catalog, err = listing(d.opts, toList, p.lock.accepted()); err != nil {
		return err
	}
	p.watcher = watch(p.catalog, p.events, func() { d.ruled.look(d.opts.Version, d.opts.Logger) }, func() { p.offers.look(living, p.catalog) })
	p.onStop(p.watcher.stop)
	if p.supervisor, err = supervisor.New(supervisor.Options{
		Plugins:   toRun,
		Launcher:  launcher,
		StateDir:  cfg.StateDir,
		Workspace: cfg.Workspace,

		InstancesMemory: cfg.InstancesMemory,

		Hidden:     cfg.Hidden,
		Version:    d.opts.Version,
		Command:    d.opts.Command,
		Logger:     d.opts.Logger,
		Redact:     cfg.Hide,
		Hide:       p.secrets.Hide,
		UserSecret: p.secrets.Give,
		Stopped:    p.stopped,
		Connected:  func(c egress.Connection, open bool) { d.connected(living, c, open) },
		Entered: func(plugin, user, session string, reader bool, phase supervisor.Phase) {
			// An event of the user would name a plugin that the toolset of a credential may hide.
			p.events.Publish("", event.PluginState{Name: plugin, User: user, Session: session, Reader: reader, Phase: phase.String()})
		},
		Publish: func(tools supervisor.Publication) (sound bool) {
			if err := publish(p.catalog, tools); err != nil {
				d.opts.Logger.Error("tools are not listed", "error", err)
			}
			p.watcher.poke()
			return p.catalog.Sound(tools.Plugin)
		},
	}); err != nil {
		return err
	}
	p.onStop(p.supervisor.Close)
	return nil
}

// stopped returns the error of the calls of a user to a plugin if an admin has stopped them.
func (p *parts) stopped(user, plugin string) error {
	if stop, ok := p.stops.Covering(user, plugin); ok {
		return stop.Refusal()
	}
	return nil
}

// pluginChanges returns the last changes of the present plugins.
func (p *parts) pluginChanges(ctx context.Context) map[string]httpapi.PluginChange {
	p.offers.look(context.WithoutCancel(ctx), p.catalog) // a change is recorded even if the caller leaves
	return p.offers.changes()
}

// publish replaces the tools of a plugin in a catalog.
func publish(c *catalog.Catalog, p supervisor.Publication) error {
	if p.Sound {
		return c.PublishKnown(p.Plugin, p.Digest, p.Tools)
	}
	return c.Publish(p.Plugin, p.Digest, p.Tools)
}

// listing returns a catalog with the host's own tools and no plugins' tools yet.
func listing(opts Options, plugins []catalog.Plugin, accepted lock.Lock) (*catalog.Catalog, error) {
	c, err := catalog.New(catalog.Options{Plugins: listed(opts.Config, plugins), Lock: accepted})
	if err != nil {
		return nil, err
	}
	return c, c.Publish(catalog.HostPlugin, opts.Version, hosttools.Specs())
}

func (d *Daemon) buildPipeline(ctx context.Context) error {
	cfg, p := d.opts.Config, &d.parts
	rules, err := policy.New(cfg.Policy)
	if err != nil {
		return err
	}
	if err := refuseRules(cfg, d.opts.Version); err != nil {
		return err
	}
	p.usage = workspace.NewUsage(context.WithoutCancel(ctx), cfg.Workspace)
	p.onStop(p.usage.Close)
	run := &router{plugins: p.supervisor}
	living := context.WithoutCancel(ctx)
	now := settings(cfg, rules)
	p.pipeline, err = pipeline.New(pipeline.Options{
		Catalog: p.catalog, Runner: run, Policy: now.Policy, Approvals: p.approvals, Grants: p.grants,
		Journal: p.journal, Store: p.store, Results: p.results, Stops: p.stops, Events: p.events, Logger: d.opts.Logger,
		Observe: p.observe, Redact: cfg.Hide, Hide: p.secrets.Hide, Full: d.full, BrokenClaim: func(plugin, tool, sign string) { d.brokenClaim(living, plugin, tool, sign) },
		Roots: now.Roots, Own: now.Own, ActionsPerHour: now.ActionsPerHour, AnswerTimeout: cfg.Approvals.Timeout,
	})
	if err != nil {
		return err
	}
	run.own, err = hosttools.New(hosttools.Options{
		Pipeline: p.pipeline, Catalog: p.catalog, Approvals: p.approvals, Results: p.results, Patience: patience(cfg), Command: d.opts.Command,
	})
	return err
}
