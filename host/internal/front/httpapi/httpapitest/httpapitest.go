// Package httpapitest runs the interface in a test, over a network listener on loopback and over
// a control socket, with the real parts below it and one plugin that the test controls.
package httpapitest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/mcpserver"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/metrics"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/state/weblogin"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The users of a [Host]. Ann's calls come over the control socket too.
const (
	Ann = "ann"
	Bob = "bob"
)

// Options change a [Host]. The zero value is as a host is without
// configuration.
type Options struct {
	// Run does the work of a tool; nil answers with the arguments, and makes the tool "slow" run
	// until it is canceled.
	Run func(ctx context.Context, call tool.Call, sink tool.Sink) (tool.Result, error)
	// Patience, Ready, Reload and HandOver are those of the server.
	Patience time.Duration
	Ready    <-chan struct{}
	Reload   func(context.Context, string, auth.Caller, string) error
	HandOver func() httpapi.Handover
	// MCP serves /mcp too.
	MCP bool
	// TLS, IsName and CertificateProblems are those of the server.
	TLS                 *tls.Config
	IsName              func(name string) bool
	CertificateProblems func() []string
	// Wrap changes the network listener; nil leaves it.
	Wrap func(net.Listener) net.Listener
	// Issuers and Command are those of the server.
	Issuers *oidc.Issuers
	Command func(words string) string
	// Pages makes the pages of the network listener; nil means that there are none. The host then
	// has Logins.
	Pages func(*httpapi.Server, *weblogin.Logins) http.Handler
	// Configure changes the server before it serves; nil leaves it.
	Configure func(*httpapi.Server)
}

// Host is a host that serves its interface.
type Host struct {
	// URL is the address of the network listener, StateDir the directory of the
	// control socket.
	URL, StateDir string
	// The secrets of tokens: agents of Ann and Bob, one of Ann with elicitation,
	// Ann's approver, one of Ann's that approves Bob's too, an admin, a monitor,
	// and the approver's key.
	Agent, BobsAgent, Asker, Approver, BothApprover, Admin, Monitor, Key string
	// Started receives the id of each call of the tool "slow".
	Started chan string

	Tokens     *auth.Tokens
	TokenList  []auth.Token
	Events     *event.Bus
	Approvals  *approval.Service
	Journal    *journal.Journal
	Store      *store.Store
	Catalog    *catalog.Catalog
	Pipeline   *pipeline.Pipeline
	Server     *httpapi.Server
	Logins     *weblogin.Logins
	MCP        *mcpserver.Server // if it is asked for
	supervisor *supervisor.Supervisor
	launcher   *sandbox.Launcher
	grants     *approval.Grants

	run     func(ctx context.Context, call tool.Call, sink tool.Sink) (tool.Result, error)
	stop    context.CancelFunc
	serving sync.WaitGroup
	once    sync.Once
}

// Start starts a host, which stops at the end of the test.
func Start(tb testing.TB, opts Options) *Host {
	tb.Helper()
	return StartIn(tb, tb.TempDir(), opts)
}

// StartIn starts a host with a state directory, where an earlier one may have
// left something.
func StartIn(tb testing.TB, dir string, opts Options) *Host {
	tb.Helper()
	h := &Host{StateDir: dir, Started: make(chan string, 64), run: opts.Run}
	tb.Cleanup(h.Stop)
	if err := h.start(context.WithoutCancel(tb.Context()), opts); err != nil {
		tb.Fatal(err)
	}
	return h
}

// Stop stops the host. Further calls do nothing.
func (h *Host) Stop() {
	h.once.Do(func() {
		ctx := context.Background() //nolint:forbidigo // after the test, whose own has ended
		if h.stop != nil {
			h.stop()
		}
		h.serving.Wait() // before the calls end: what requests do about them is seen
		if h.Pipeline != nil {
			_ = h.Pipeline.Close()
		}
		if h.MCP != nil {
			_ = h.MCP.Close()
		}
		if h.supervisor != nil {
			_ = h.supervisor.Close()
			_ = h.launcher.Close()
		}
		if h.Journal != nil && h.Store != nil {
			_ = h.Approvals.Close()
			_ = h.grants.Close()
			_ = h.Journal.Close(ctx)
			_ = h.Store.Close()
		}
	})
}

func (h *Host) start(ctx context.Context, opts Options) error {
	if err := errors.Join(h.openState(ctx), h.openPlugins(), h.makeTokens()); err != nil {
		return err
	}
	rules, err := policy.New(policy.Options{})
	if err != nil {
		return err
	}
	stops, err := killswitch.New(ctx, h.Store)
	if err != nil {
		return err
	}
	figures := metrics.New(metrics.Options{Version: "test", Pending: h.Approvals.Pending})
	h.Pipeline, err = pipeline.New(pipeline.Options{
		Stops:   stops,
		Catalog: h.Catalog, Runner: h, Policy: rules, Approvals: h.Approvals, Grants: h.grants,
		Journal: h.Journal, Store: h.Store, Events: h.Events,
		Observe: func(step pipeline.Step, of pipeline.Observed, took time.Duration) {
			switch step {
			case pipeline.StepExecute:
				figures.Executed(of.Plugin, of.Tool, took)
			case pipeline.StepEnd:
				figures.Ended(of.Plugin, of.Tool, of.Status)
			}
		},
	})
	if err != nil {
		return err
	}
	keys, err := auth.NewTokens([]auth.Token{
		{Name: auth.ApproverKey, SHA256: auth.Digest(h.Key), User: Ann, Roles: auth.Approver | auth.Admin},
	})
	if err != nil {
		return err
	}
	var serveMCP func(http.ResponseWriter, *http.Request, auth.Caller, auth.Peer)
	if opts.MCP {
		h.MCP = mcpserver.New(mcpserver.Options{
			Catalog: h.Catalog, Pipeline: h.Pipeline, Approvals: h.Approvals, Patience: opts.Patience,
			Version: "test", Logger: hclog.NewNullLogger(),
		})
		serveMCP = h.MCP.ServeHTTP
	}
	h.Logins, err = weblogin.New(ctx, weblogin.Options{Store: h.Store, Tokens: []*auth.Tokens{keys, h.Tokens}})
	if err != nil {
		return err
	}
	var pages func(*httpapi.Server) http.Handler
	if opts.Pages != nil {
		pages = func(s *httpapi.Server) http.Handler { return opts.Pages(s, h.Logins) }
	}
	h.Server, err = httpapi.New(httpapi.Options{
		Logins: h.Logins, Pages: pages,
		Pipeline: h.Pipeline, Catalog: h.Catalog, Supervisor: h.supervisor, Approvals: h.Approvals, Grants: h.grants,
		Journal: h.Journal, Store: h.Store, Events: h.Events, Metrics: figures, User: Ann, Keys: keys, Tokens: h.Tokens, Issuers: opts.Issuers,
		Patience: opts.Patience, Ready: opts.Ready, Reload: opts.Reload, URL: func() string { return h.URL }, HandOver: opts.HandOver, MCP: serveMCP,
		TLS: opts.TLS, IsName: opts.IsName, CertificateProblems: opts.CertificateProblems, Command: opts.Command,
	})
	if err != nil {
		return err
	}
	if opts.Configure != nil {
		opts.Configure(h.Server)
	}
	return h.serve(ctx, opts)
}

func (h *Host) openState(ctx context.Context) (err error) {
	h.Events = event.NewBus()
	if h.Store, err = store.Open(ctx, store.Options{Dir: h.StateDir}); err != nil {
		return err
	}
	h.Journal, err = journal.Open(ctx, journal.Options{
		Store: h.Store, KeyPath: filepath.Join(h.StateDir, "journal.key"), MaxLag: time.Millisecond,
	})
	if err != nil {
		return err
	}
	if h.grants, err = approval.NewGrants(ctx, approval.GrantOptions{
		Store: h.Store, Basis: func(plugin string) catalog.Basis { return h.Catalog.Basis(plugin) },
	}); err != nil {
		return err
	}
	h.Approvals, err = approval.New(ctx, approval.Options{
		Store: h.Store, Grants: h.grants,
		Changed: func(r approval.Record) {
			h.Events.Publish(r.User, event.ToolApproval{
				ID: r.ID, Call: r.Call, Tool: r.Tool, Plugin: r.Plugin, State: string(r.State), Expires: r.Expires,
			})
		},
	})
	return err
}

// openPlugins makes the tools known: "look" changes nothing, "write" changes
// something, "wipe" is privileged, and "slow" takes its time.
func (h *Host) openPlugins() (err error) {
	if h.launcher, err = sandbox.NewLauncher(); err != nil {
		return err
	}
	h.supervisor, err = supervisor.New(supervisor.Options{
		Launcher: h.launcher, StateDir: h.StateDir,
		Plugins: []supervisor.Plugin{{Name: "missing", Path: filepath.Join(h.StateDir, "no-such-plugin")}},
	})
	if err != nil {
		return err
	}
	h.Catalog, err = catalog.New(catalog.Options{Plugins: []catalog.Plugin{{Name: "test", Ceiling: tool.Privileged, TrustClaims: true}}})
	if err != nil {
		return err
	}
	schema := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"any text"}}}`)
	var specs []tool.Spec
	for name, tier := range map[string]tool.Tier{
		"look": tool.ReadOnly, "slow": tool.ReadOnly, "write": tool.SideEffecting, "wipe": tool.Privileged,
	} {
		specs = append(specs, tool.Spec{
			Name: name, Aliases: []string{name + "_it"}, Description: "Does " + name + ".", Tier: tier, InputSchema: schema,
		})
	}
	return h.Catalog.Publish("test", "digest", specs)
}

func (h *Host) makeTokens() (err error) {
	for _, t := range []struct {
		name   string
		secret *string
		token  auth.Token
	}{
		{"agent", &h.Agent, auth.Token{User: Ann, Roles: auth.Agent}},
		{"bobs-agent", &h.BobsAgent, auth.Token{User: Bob, Roles: auth.Agent}},
		{"asker", &h.Asker, auth.Token{User: Ann, Roles: auth.Agent, Elicitation: true}},
		{"approver", &h.Approver, auth.Token{User: Ann, Roles: auth.Approver}},
		{"both-approver", &h.BothApprover, auth.Token{User: Ann, Roles: auth.Approver, Approves: []string{Bob}}},
		{"admin", &h.Admin, auth.Token{User: "root", Roles: auth.Admin}},
		{"monitor", &h.Monitor, auth.Token{User: "prometheus", Roles: auth.Monitor}},
	} {
		*t.secret, t.token.SHA256 = auth.NewToken()
		t.token.Name = t.name
		h.TokenList = append(h.TokenList, t.token)
	}
	h.Key, _ = auth.NewToken()
	h.Tokens, err = auth.NewTokens(h.TokenList)
	return err
}

func (h *Host) serve(ctx context.Context, opts Options) error {
	ctx, h.stop = context.WithCancel(ctx)
	network, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control, err := auth.ListenControl(ctx, h.StateDir)
	if err != nil {
		return errors.Join(err, network.Close())
	}
	h.URL = "http://" + network.Addr().String()
	if opts.TLS != nil {
		h.URL = "https://" + network.Addr().String()
	}
	if opts.Wrap != nil {
		network = opts.Wrap(network)
	}
	h.serving.Go(func() { _ = h.Server.Serve(ctx, network) })        // until Stop, which waits
	h.serving.Go(func() { _ = h.Server.ServeControl(ctx, control) }) // until Stop, which waits
	return nil
}

// Run implements [pipeline.Runner].
func (h *Host) Run(ctx context.Context, _, _ string, call tool.Call, sink tool.Sink) (tool.Result, bool, error) {
	if h.run != nil {
		result, err := h.run(ctx, call, sink)
		return result, true, err
	}
	if call.Tool == "slow" {
		h.Started <- call.ID
		<-ctx.Done()
		return tool.Result{}, true, context.Cause(ctx)
	}
	return tool.TextResult(call.Tool + " " + string(call.Arguments)), true, nil
}

// Preview implements [pipeline.Runner].
func (h *Host) Preview(_ context.Context, _, _ string, call tool.Call) (tool.Preview, error) {
	return tool.Preview{Summary: fmt.Sprintf("would %s %s", call.Tool, call.Arguments)}, nil
}

var _ pipeline.Runner = (*Host)(nil)
