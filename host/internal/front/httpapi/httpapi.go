// Package httpapi serves the host over HTTP: calls, tools, approvals, grants, plugins,
// the journal, and events. It translates requests and decides only who may use a route:
// one table lists the roles of each route, and the credential determines the caller.
//
// It serves two listeners. On the control socket, a process of the host's own account is
// an agent, and with the approver's key an approver and admin. On a network listener, with
// TLS or without, every request needs a token, and the approver's key is not valid.
package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/metrics"
	"github.com/toolhost/toolhost/host/internal/state/secrets"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/state/weblogin"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// Options configure a [Server]. All are required unless their comment says otherwise.
type Options struct {
	Pipeline   *pipeline.Pipeline
	Catalog    *catalog.Catalog
	Supervisor *supervisor.Supervisor
	Approvals  *approval.Service
	Grants     *approval.Grants
	Journal    *journal.Journal
	Store      *store.Store
	Events     *event.Bus
	Metrics    *metrics.Metrics

	// User is the user of calls over the control socket.
	User string
	// Keys are the tokens that are valid on the control socket. A client without a token
	// is an agent there.
	Keys *auth.Tokens
	// Tokens are the tokens that are valid on a network listener.
	Tokens *auth.Tokens
	// Issuers verify access tokens on a network listener; nil means that none is valid.
	Issuers *oidc.Issuers
	// Command returns the shell command that runs a toolhost command for this host, from any
	// directory; nil is the command itself. It names files of the host, so it is only for callers
	// with a credential.
	Command func(words string) string
	// Patience is how long a call waits or runs before the caller gets the answer that
	// it continues; 0 means 45 seconds.
	Patience time.Duration
	// Ready is closed when the tools of every plugin are known; nil means that they are
	// known from the start.
	Ready <-chan struct{}
	// Stopping is closed when the host begins to stop; nil means never.
	Stopping <-chan struct{}
	// RuleProblems returns the mistakes in rules that were found when a plugin started
	// late; nil means none.
	RuleProblems func() []string
	// PluginChanges returns the last change of each plugin that has changed; nil means
	// that changes are not known.
	PluginChanges func(context.Context) map[string]PluginChange
	// Reload reloads the configuration; nil means that this host cannot. accept is the
	// digest of a configuration that a plugin may have changed and a person has
	// reviewed, or "". via is the channel of the request.
	Reload func(ctx context.Context, accept string, by auth.Caller, via string) error
	// AcceptDefinitions accepts the definitions of tools of a plugin, or of those that are not accepted
	// if none is named. digest is that of the [catalog.Review] that a person has seen. It returns what
	// was accepted; nil means that this host cannot.
	AcceptDefinitions func(ctx context.Context, plugin string, tools []string, digest string, by auth.Caller, via string) (catalog.Review, error)
	// RevokeToken revokes the tokens with a name after a grace period; nil means that
	// this host cannot. If there is no such token, the error is a [*tool.Error].
	RevokeToken func(ctx context.Context, name string, grace time.Duration, by auth.Caller) error
	// TLS is how the network listener serves TLS; nil means plain HTTP.
	TLS *tls.Config
	// IsName reports whether a name in lower case or an address in a Host header is one of
	// this host, besides those for this machine and the address of the connection; nil means
	// that there are no others.
	IsName func(name string) bool
	// NotifyProblems returns a line about each notifier that fails, and TestNotifier delivers a test
	// message of the notifier with a name; nil means that there are none.
	NotifyProblems func() []string
	TestNotifier   func(ctx context.Context, name string) error
	// CertificateProblems returns what is wrong with the certificate of the network listener,
	// without paths; nil means that nothing is.
	CertificateProblems func() []string
	// URL returns where the network listener is reached; "" or a nil URL means nowhere.
	URL func() string
	// Configuration returns the digest of the contents of the configuration in force; nil means that
	// it is not told.
	Configuration func() string
	// HandOver begins to make room for a host that stays, and reports how. It may be
	// called more than once. Nil means that this host stays.
	HandOver func() Handover
	// Relay serves MCP over a connection to the control socket; nil means that this host
	// cannot. who returns the caller by the connection's credential, or an error if the
	// credential is no longer valid.
	Relay func(w http.ResponseWriter, r *http.Request, who func() (auth.Caller, error))
	// MCP answers requests of the Model Context Protocol over HTTP, each from a process; nil
	// means that there is no /mcp.
	MCP func(w http.ResponseWriter, r *http.Request, caller auth.Caller, from auth.Peer)
	// Secrets keeps the values of users' secrets, and UserSecrets returns which ones there are. nil
	// means none.
	Secrets     *secrets.Store
	UserSecrets func() []UserSecret
	// Logins keeps the logins of browsers; nil means that none can log in.
	Logins *weblogin.Logins
	// Pages makes the handler of the network listener for paths that are no routes, of requests
	// without a token: the pages for people. Nil means that there are none.
	Pages func(*Server) http.Handler
	// Groups returns the groups of users in force; nil means none.
	Groups func() auth.Groups
	// Toolset returns the toolset that /mcp/NAME names; nil means that there is none.
	Toolset func(name string) (auth.Toolset, bool)
	// Logger receives the causes that callers do not see; nil drops them.
	Logger hclog.Logger
}

// Server answers requests. It is safe for concurrent use.
type Server struct {
	opts     Options
	failures failures
	requests requestLimit
	streams  requestLimit // requests that clients hold open
	timing   timing
	encoding chan struct{} // one token for each large result that is encoded
	// connections bounds the connections of a network listener. Tests lower it.
	connections struct{ all, unauthenticated int }

	network, control http.Handler
	inside           http.Handler           // see [Server.As]
	pages            http.Handler           // nil if there are none
	document         func() ([]byte, error) // of OpenAPI, made at the first request
	complaints       rate.Sometimes         // bounds log lines about clients
}

// timing holds time limits. Tests shorten them.
type timing struct {
	// header bounds how long the header of a request may take to arrive, or a body that
	// the handler does not read.
	header time.Duration
	// keepAlive is the time between two signs of life of a quiet stream, and between two
	// checks of its credential.
	keepAlive time.Duration
	// write bounds how long a client may take to read an answer.
	write time.Duration
	// ready bounds how long a request for tools waits for plugins that start.
	ready time.Duration
}

// New returns a server. The error names a missing option.
func New(opts Options) (*Server, error) {
	for _, required := range []struct {
		name    string
		missing bool
	}{
		{"pipeline", opts.Pipeline == nil},
		{"catalog", opts.Catalog == nil},
		{"supervisor", opts.Supervisor == nil},
		{"approvals", opts.Approvals == nil},
		{"grants", opts.Grants == nil},
		{"journal", opts.Journal == nil},
		{"store", opts.Store == nil},
		{"bus for events", opts.Events == nil},
		{"user", opts.User == ""},
		{"key for the control socket", opts.Keys == nil},
		{"list of tokens", opts.Tokens == nil},
	} {
		if required.missing {
			return nil, errors.New("httpapi: no " + required.name + " is given")
		}
	}
	if opts.Command == nil {
		opts.Command = func(words string) string { return "toolhost " + words }
	}
	if opts.Patience <= 0 {
		opts.Patience = operation.DefaultPatience
	}
	if opts.Issuers == nil {
		opts.Issuers = oidc.New(oidc.Options{})
	}
	if opts.PluginChanges == nil {
		opts.PluginChanges = func(context.Context) map[string]PluginChange { return nil }
	}
	if opts.IsName == nil {
		opts.IsName = func(string) bool { return false }
	}
	if opts.NotifyProblems == nil {
		opts.NotifyProblems = func() []string { return nil }
	}
	if opts.CertificateProblems == nil {
		opts.CertificateProblems = func() []string { return nil }
	}
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	s := &Server{
		encoding:   make(chan struct{}, maxEncoding),
		opts:       opts,
		requests:   requestLimit{most: maxAtOnce},
		streams:    requestLimit{most: maxStreams, all: maxAllStreams},
		timing:     timing{header: maxHeaderTime, keepAlive: 15 * time.Second, write: 30 * time.Second, ready: 15 * time.Second},
		complaints: rate.Sometimes{First: 10, Interval: time.Second},
	}
	s.document = sync.OnceValues(document)
	s.connections.all, s.connections.unauthenticated = maxConnections, maxUnauthenticated
	s.inside = s.mux(s.member(insideCaller), viaConsole)
	if opts.Pages != nil {
		s.pages = opts.Pages(s)
	}
	s.network = s.guardNetwork(s.mux(s.member(s.networkCaller), viaNetwork))
	s.control = s.guardControl(s.mux(s.member(s.controlCaller), viaControl))
	return s, nil
}
