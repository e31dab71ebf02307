// Package httpapi serves the host over HTTP: calls, tools, approvals, grants,
// plugins, the journal, and events as they happen. It translates and decides
// nothing but who may ask for what: which role a route needs stands in one
// table, and who asks comes from the credential.
//
// It serves two listeners. On the control socket, a process of the host's own
// account is an agent, and with the approver's key an approver and admin. On a
// network listener every request needs a token, and the approver's key counts
// nothing.
package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// Options are what a Server needs. All are required unless it is said.
type Options struct {
	Pipeline   *pipeline.Pipeline
	Catalog    *catalog.Catalog
	Supervisor *supervisor.Supervisor
	Approvals  *approval.Service
	Grants     *approval.Grants
	Journal    *journal.Journal
	Store      *store.Store
	Events     *event.Bus

	// User is whose calls arrive over the control socket.
	User string
	// Keys are the tokens that count on the control socket, in place of the
	// agent that its peers are without one.
	Keys *auth.Tokens
	// Tokens are those that count on a network listener.
	Tokens *auth.Tokens
	// Patience is how long a call waits for a person before the caller is told
	// to come back; 0 means 45 seconds.
	Patience time.Duration
	// Ready is closed when the tools of every plugin are known; nil means that
	// they are from the start.
	Ready <-chan struct{}
	// Stopping is closed when the host begins to stop; nil means never.
	Stopping <-chan struct{}
	// RuleProblems says what is wrong with the rules of the policy since the tools of
	// a plugin became known that could not be started before; nil means nothing.
	RuleProblems func() []string
	// PluginChanges returns what changed last of each plugin that has changed; nil means
	// that nobody knows.
	PluginChanges func(context.Context) map[string]PluginChange
	// Reload reads the configuration again; nil means that it cannot be. accept is
	// the digest of one that a plugin may have changed, "" for none.
	Reload func(ctx context.Context, accept string) error
	// RevokeToken makes the tokens with a name end after a grace; nil means that it
	// cannot be done. The error is a [*tool.Error] if there is none.
	RevokeToken func(ctx context.Context, name string, grace time.Duration, by auth.Caller) error
	// HandOver begins to make room for a host that stays, and says how; it may be called
	// more than once. Nil means that this host stays.
	HandOver func() Handover
	// Relay serves MCP over a connection to the control socket; nil means that
	// it cannot be. who returns the caller that the credential of the connection makes
	// now, or an error if it makes none any more.
	Relay func(w http.ResponseWriter, r *http.Request, who func() (auth.Caller, error))
	// MCP answers requests of the Model Context Protocol over HTTP, of the caller
	// that their credential makes; nil means that there is no /mcp.
	MCP func(w http.ResponseWriter, r *http.Request, caller auth.Caller)
	// Logger gets the causes that callers do not see; nil drops them.
	Logger hclog.Logger
}

const defaultPatience = 45 * time.Second

// Server answers requests. Its methods may be called from any goroutine.
type Server struct {
	opts     Options
	failures failures
	requests requestLimit
	streams  requestLimit // that clients hold open for as long as they like
	timing   timing
	encoding chan struct{} // a place for each large result that is encoded
	// connections bounds those of a network listener. Tests lower it.
	connections struct{ all, unauthenticated int }

	network, control http.Handler
	complaints       rate.Sometimes // bounds what the log gets about clients
}

// timing is how often and how long. Tests shorten it.
type timing struct {
	// header is how long a request's header may take to arrive, and a body that
	// nothing reads.
	header time.Duration
	// keepAlive is how often a stream without events says that it lives, and
	// the credential that it was opened with is looked at again.
	keepAlive time.Duration
	// write is how long a client may take to take what is sent to it.
	write time.Duration
	// ready is how long a request for tools waits for plugins that start.
	ready time.Duration
}

// New returns a server, or an error that names the option that is missing.
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
	if opts.Patience <= 0 {
		opts.Patience = defaultPatience
	}
	if opts.PluginChanges == nil {
		opts.PluginChanges = func(context.Context) map[string]PluginChange { return nil }
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
	s.connections.all, s.connections.unauthenticated = maxConnections, maxUnauthenticated
	s.network = s.guardNetwork(s.mux(s.networkCaller, false))
	s.control = s.guardControl(s.mux(s.controlCaller, true))
	return s, nil
}

// Handler answers the requests of a network listener, for which every request
// needs a token.
func (s *Server) Handler() http.Handler { return s.network }
