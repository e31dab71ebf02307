package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/front/console"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/mcpserver"
	"github.com/toolhost/toolhost/host/internal/state/weblogin"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// front holds the listeners of the host.
type front struct {
	server *httpapi.Server
	// serve serves one more listener until stop.
	serve func(listener net.Listener, serve func(context.Context, net.Listener) error)
	// beside runs a task whose context ends with stop.
	beside  func(task func(context.Context))
	stop    context.CancelFunc
	serving sync.WaitGroup

	mu     sync.Mutex // guards failed
	failed []error
}

func (d *Daemon) buildFront(ctx context.Context) (err error) {
	cfg, p := d.opts.Config, &d.parts
	user := auth.LocalUser(cfg.LocalUser)
	if err := d.buildTokens(ctx); err != nil {
		return err
	}
	p.issuers = oidc.New(oidc.Options{Issuers: cfg.Issuers, Logger: d.opts.Logger.Named("auth")})
	p.onStop(p.issuers.Close)
	approver, err := auth.EnsureKey(cfg.StateDir, auth.ApproverKey)
	if err != nil {
		return err
	}
	keys, err := auth.NewTokens([]auth.Token{
		{Name: "cli", SHA256: auth.Digest(approver), User: user, Roles: auth.Approver | auth.Admin},
	})
	if err != nil {
		return err
	}
	p.mcp = mcpserver.New(mcpserver.Options{
		Catalog: p.catalog, Pipeline: p.pipeline, Approvals: p.approvals, Ready: d.ready, Patience: patience(cfg), Client: d.client, Instructions: d.instructions, Command: d.opts.Command,
		SessionEnded: p.endSession, Ephemeral: d.opts.Ephemeral, Version: d.opts.Version, Logger: d.opts.Logger.Named("mcp"),
	})
	p.onStop(p.mcp.Close)
	var handOver func() httpapi.Handover
	if d.opts.Yields {
		handOver = d.handOver
	}
	opts := httpapi.Options{
		Pipeline: p.pipeline, Catalog: p.catalog, Supervisor: p.supervisor, Approvals: p.approvals, Grants: p.grants,
		Journal: p.journal, Store: p.store, Events: p.events, Metrics: p.metrics, Command: d.opts.Command,
		User: user, Keys: keys, Tokens: p.tokens, Issuers: p.issuers, Patience: patience(cfg), Ready: d.ready, Stopping: d.stopping, RuleProblems: d.ruled.problems, PluginChanges: p.pluginChanges,
		Relay: p.mcp.ServeRelay, MCP: p.mcp.ServeHTTP, Groups: func() auth.Groups { return d.config.Load().Groups }, Toolset: d.toolset, Reload: d.Reload, AcceptDefinitions: d.AcceptDefinitions, RevokeToken: d.RevokeToken, URL: d.URL, Configuration: func() string { return d.config.Load().Contents }, HandOver: handOver, Logger: d.opts.Logger.Named("http"),
		NotifyProblems: p.notify.Problems, TestNotifier: p.notify.Test,
		IsName: d.isName, Secrets: p.secrets, UserSecrets: func() []httpapi.UserSecret { return userSecrets(d.config.Load()) },
	}
	if p.certificate, err = readCertificate(cfg); err != nil {
		return err
	}
	if p.certificate != nil {
		opts.TLS, opts.CertificateProblems = p.certificate.TLS(), p.certificate.Problems
	}
	if opts.Logins, err = weblogin.New(ctx, weblogin.Options{Store: p.store, Tokens: []*auth.Tokens{keys, p.tokens}}); err != nil {
		return err
	}
	var unmade error
	opts.Pages = func(api *httpapi.Server) http.Handler {
		var pages *console.Console
		pages, unmade = console.New(console.Options{API: api, Logins: opts.Logins})
		return pages
	}
	server, err := httpapi.New(opts)
	if err := errors.Join(err, unmade); err != nil {
		return err
	}
	p.front = newFront(ctx, server)
	p.onStop(p.front.close)
	p.front.beside(d.keepTokens)
	if p.certificate != nil {
		p.front.beside(d.keepCertificate)
	}
	return nil
}

// toolset returns a toolset of the configuration in force.
func (d *Daemon) toolset(name string) (auth.Toolset, bool) {
	for _, set := range d.config.Load().Toolsets {
		if set.Name == name {
			return set, true
		}
	}
	return auth.Toolset{}, false
}

// userSecrets returns the secrets that users set, with the plugins that may request them or whose
// proxies inject them.
func userSecrets(cfg *config.Config) []httpapi.UserSecret {
	all := []httpapi.UserSecret{} // never null in JSON
	for _, p := range cfg.Plugins {
		names := slices.Concat(p.Supervisor.UserSecrets, p.Supervisor.Network.UserSecrets())
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			i := slices.IndexFunc(all, func(s httpapi.UserSecret) bool { return s.Name == name })
			if i < 0 {
				i, all = len(all), append(all, httpapi.UserSecret{Name: name})
			}
			if p.Enabled {
				all[i].Plugins = append(all[i].Plugins, p.Supervisor.Name)
			}
		}
	}
	return all
}

// instructions returns the instructions for the model of a caller, derived from the current
// configuration.
func (d *Daemon) instructions(c auth.Caller) string {
	cfg := d.config.Load()
	var online, offline []string
	for _, p := range cfg.Plugins {
		switch {
		case !p.Enabled:
		case !p.Supervisor.Confinement.HasNetwork():
			offline = append(offline, p.Catalog.Name)
		default:
			online = append(online, p.Catalog.Name)
		}
	}
	waits := "Some calls wait until a person approves them"
	if cfg.Policy.Mode == policy.ReadOnly {
		waits = "Calls that change something are refused"
	}
	network := "No tool has a network."
	if len(online) > 0 && len(offline) > 0 {
		network = fmt.Sprintf("The tools of %s have a network, those of %s have none.", strings.Join(online, ", "), strings.Join(offline, ", "))
	} else if len(online) > 0 {
		network = "The tools have a network."
	}
	place, err := cfg.Workspace.Of(c.User)
	if err != nil {
		place = "of the user, who has none"
	}
	return fmt.Sprintf("Paths are relative to the workspace %s. %s. A call that answers \"Not run yet\" or \"Still running\" is not lost: get its result with %s. %s "+
		"Long output is cut; its last lines name a handle for %s, which also searches it.",
		place, waits, catalog.CallWait, network, catalog.ResultRead)
}

// client returns how the client with a name gets lists and results, by the configuration in
// force.
func (d *Daemon) client(name string) mcpserver.Client {
	cfg := d.config.Load()
	for _, c := range cfg.Clients {
		if c.Name == name {
			return mcpserver.Client{MaxOutput: c.MaxOutput, Structured: c.Structured, SearchAbove: cmp.Or(c.ToolSearchAbove, cfg.ToolSearchAbove)}
		}
	}
	return mcpserver.Client{SearchAbove: cfg.ToolSearchAbove}
}

// endSession ends the grants and the plugins' state of one session.
func (p *parts) endSession(id string) {
	p.grants.EndSession(id)
	p.supervisor.EndSession(id)
}

// patience is how long a caller waits for a person.
func patience(cfg *config.Config) time.Duration {
	return max(cfg.Approvals.Patience, 1) // 0 would be the default of the parts
}

// newFront returns a front without listeners.
func newFront(ctx context.Context, server *httpapi.Server) *front {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	f := &front{server: server, stop: stop}
	f.serve = func(listener net.Listener, serve func(context.Context, net.Listener) error) {
		f.serving.Go(func() { f.note(serve(running, listener)) }) // ends with stop; close waits for it
	}
	f.beside = func(task func(context.Context)) {
		f.serving.Go(func() { task(running) }) // ends with stop; close waits for it
	}
	return f
}

// ServeControl serves the control socket in the state directory until Close. If the socket
// is removed, the daemon makes it again.
func (d *Daemon) ServeControl(ctx context.Context) error {
	listener, err := auth.ListenControl(ctx, d.config.Load().StateDir)
	if err != nil {
		return err
	}
	f := d.parts.front
	f.serve(listener, f.server.ServeControl)
	f.beside(func(ctx context.Context) { d.keepControl(ctx, listener) })
	return nil
}

// lookAtSocket is the time between two checks that the control socket exists.
const lookAtSocket = time.Second

// keepControl makes the control socket again when it is gone, and the mark of the configuration
// when its file was replaced. Open connections continue.
func (d *Daemon) keepControl(ctx context.Context, listener *auth.ControlListener) {
	f, failed := d.parts.front, ""
	tick := time.NewTicker(lookAtSocket)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		d.parts.mark.Renew()
		if listener.Bound() {
			continue
		}
		again, err := auth.ListenControl(ctx, d.config.Load().StateDir)
		if err != nil {
			if failed != err.Error() { // otherwise the log says it already
				d.opts.Logger.Error("the control socket was removed and cannot be created again", "error", err)
			}
			failed = err.Error()
			continue
		}
		d.opts.Logger.Warn("the control socket was removed and is made again")
		listener, failed = again, ""
		f.serve(listener, f.server.ServeControl)
	}
}

// ServeHTTP serves the configured address until Close, or the first free one that choose returns
// for it, if choose is not nil. It returns the address; "" if none is configured. If all are in
// use, the error is about the first.
func (d *Daemon) ServeHTTP(ctx context.Context, choose func(configured netip.AddrPort) []netip.AddrPort) (address string, err error) {
	listen := d.config.Load().Listen
	if listen == "" {
		return "", nil
	}
	configured, err := netip.ParseAddrPort(listen)
	if err != nil {
		return "", fmt.Errorf("server.listen: %w", err)
	}
	addresses := []netip.AddrPort{configured}
	if choose != nil {
		addresses = choose(configured)
	}
	listener, err := listenOn(ctx, addresses)
	if err != nil {
		return "", err
	}
	if warning := UntoldAccounts(d.config.Load(), auth.CheckOrigins()); warning != "" {
		d.opts.Logger.Warn(warning)
	}
	d.parts.front.serve(listener, d.parts.front.server.Serve)
	address = listener.Addr().String()
	d.address.Store(&address)
	return address, nil
}

// listenOn listens on the first address that is not in use.
func listenOn(ctx context.Context, addresses []netip.AddrPort) (listener net.Listener, err error) {
	var first error
	for _, address := range addresses {
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address.String())
		if err == nil {
			return listener, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("listen on %s: %w; server.listen in the configuration names another address", address, err)
		}
		first = cmp.Or(first, fmt.Errorf("listen on %s: %w", address, err))
	}
	if more := len(addresses) - 1; more > 0 {
		first = fmt.Errorf("%w, as the next %d ports are", first, more)
	}
	return nil, first
}

// note records the error of a listener.
func (f *front) note(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = append(f.failed, err)
}

// close ends the listeners, and returns when every request has been answered. Requests that
// wait for calls end, too.
func (f *front) close() error {
	f.stop()
	f.serving.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.failed...)
}
