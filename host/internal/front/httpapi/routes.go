package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/internal/excerpt"
)

// route is one method of one path.
type route struct {
	method, path string
	// roles are the roles of which a caller needs at least one; 0 means that no credential is
	// needed.
	roles auth.Roles
	// params are the query parameters that the route takes.
	params []string
	// Each route has one of these. reply returns the answer, which is sent as JSON with
	// status 200. serve writes the answer itself.
	reply func(s *Server, r *request) (any, error)
	serve func(s *Server, r *request) error
	// stream is set if clients hold requests open for as long as they like.
	stream bool
	// tokens makes the configured tokens valid on the control socket, too.
	tokens bool
	// anyParams leaves the query parameters to another protocol.
	anyParams bool
}

const anyRole = auth.Agent | auth.Approver | auth.Admin

// routes returns the table of all routes and who may use them. Only this table checks
// roles. The parts that keep calls and approvals decide which of them a caller sees.
func routes() []route {
	const deciders = auth.Approver | auth.Admin
	return []route{
		{method: "POST", path: "/v1/calls", roles: auth.Agent, serve: (*Server).postCall},
		{method: "GET", path: "/v1/calls", roles: auth.Agent | auth.Admin, reply: (*Server).listCalls},
		{method: "GET", path: "/v1/calls/{id}", roles: auth.Agent | auth.Admin, params: []string{"wait"}, serve: (*Server).getCall},
		{method: "POST", path: "/v1/calls/{id}/cancel", roles: auth.Agent | auth.Admin, serve: (*Server).cancelCall},
		{method: "GET", path: "/v1/caller", roles: anyRole, reply: (*Server).identity},
		{method: "GET", path: "/v1/openapi.json", roles: anyRole, serve: (*Server).openAPI},
		{method: "GET", path: "/v1/tools", roles: anyRole, params: []string{"format"}, reply: (*Server).listTools},
		{method: "GET", path: "/v1/tools/{name}", roles: anyRole, reply: (*Server).getTool},
		{method: "POST", path: "/v1/explain", roles: anyRole, reply: (*Server).explain},
		{method: "GET", path: "/v1/events", roles: anyRole, params: []string{"types"}, serve: (*Server).events},
		{method: "POST", path: "/mcp", roles: auth.Agent, serve: (*Server).mcp, anyParams: true},
		{method: "GET", path: "/mcp", roles: auth.Agent, serve: (*Server).mcp, anyParams: true, stream: true},
		{method: "DELETE", path: "/mcp", roles: auth.Agent, serve: (*Server).mcp, anyParams: true},
		{method: "POST", path: "/mcp/{toolset}", roles: auth.Agent, serve: (*Server).mcp, anyParams: true},
		{method: "GET", path: "/mcp/{toolset}", roles: auth.Agent, serve: (*Server).mcp, anyParams: true, stream: true},
		{method: "DELETE", path: "/mcp/{toolset}", roles: auth.Agent, serve: (*Server).mcp, anyParams: true},
		{method: "POST", path: "/v1/mcp/relay", roles: auth.Agent, serve: (*Server).relayMCP, tokens: true},

		{method: "GET", path: "/v1/approvals", roles: deciders, params: []string{"state", "user", "limit", "wait"}, reply: (*Server).listApprovals},
		{method: "GET", path: "/v1/approvals/{id}", roles: deciders, reply: (*Server).getApproval},
		{method: "POST", path: "/v1/approvals/{id}/approve", roles: auth.Approver, reply: (*Server).approve},
		{method: "POST", path: "/v1/approvals/{id}/reject", roles: auth.Approver, reply: (*Server).reject},
		{method: "POST", path: "/v1/logins", roles: deciders, reply: (*Server).offerLogin},
		{method: "DELETE", path: "/v1/logins", roles: deciders, reply: (*Server).endLogins},
		{method: "GET", path: "/v1/grants", roles: deciders, params: []string{"all"}, reply: (*Server).listGrants},
		{method: "DELETE", path: "/v1/grants/{id}", roles: deciders, reply: (*Server).revokeGrant},
		{method: "POST", path: "/v1/grants/{id}/confirm", roles: auth.Approver, reply: (*Server).confirmGrant},

		{method: "GET", path: "/v1/secrets", roles: anyRole, params: []string{"user"}, reply: (*Server).listSecrets},
		{method: "PUT", path: "/v1/secrets/{name}", roles: deciders, reply: (*Server).setSecret},
		{method: "DELETE", path: "/v1/secrets/{name}", roles: deciders, params: []string{"user"}, reply: (*Server).removeSecret},

		{method: "GET", path: "/v1/plugins", roles: auth.Admin, reply: (*Server).listPlugins},
		{method: "GET", path: "/v1/plugins/{name}", roles: auth.Admin, reply: (*Server).getPlugin},
		{method: "POST", path: "/v1/plugins/{name}/restart", roles: auth.Admin, reply: (*Server).restartPlugin},
		{method: "GET", path: "/v1/plugins/{name}/definitions", roles: auth.Admin, params: []string{"tools"}, reply: (*Server).definitions},
		{method: "POST", path: "/v1/plugins/{name}/definitions/accept", roles: auth.Admin, reply: (*Server).acceptDefinitions},
		{method: "GET", path: "/v1/stops", roles: auth.Admin, reply: (*Server).listStops},
		{method: "POST", path: "/v1/stops", roles: auth.Admin, reply: (*Server).stopCalls},
		{method: "DELETE", path: "/v1/stops/{id}", roles: auth.Admin, reply: (*Server).resumeCalls},
		{method: "POST", path: "/v1/notifiers/{name}/test", roles: auth.Admin, reply: (*Server).testNotifier},
		{method: "GET", path: "/v1/tokens", roles: auth.Admin, reply: (*Server).listTokens},
		{method: "POST", path: "/v1/tokens/{name}/revoke", roles: auth.Admin, reply: (*Server).revokeToken},
		{method: "GET", path: "/v1/journal", roles: auth.Admin, params: journalParams(), reply: (*Server).queryJournal},
		{method: "GET", path: "/v1/journal/tail", roles: auth.Admin, params: []string{"after"}, serve: (*Server).tailJournal},
		{method: "GET", path: "/v1/journal/verify", roles: auth.Admin, reply: (*Server).verifyJournal},
		{method: "GET", path: "/v1/network", roles: auth.Admin, params: []string{"plugin", "user", "call", "since", "limit"}, reply: (*Server).listConnections},
		{method: "GET", path: "/v1/usage", roles: auth.Admin, params: []string{"user", "since", "until"}, reply: (*Server).usage},
		{method: "GET", path: "/v1/metrics", roles: auth.Admin | auth.Monitor, reply: (*Server).toolMetrics},
		{method: "GET", path: "/metrics", roles: auth.Admin | auth.Monitor, serve: (*Server).prometheus},
		{method: "POST", path: "/v1/reload", roles: auth.Admin, params: []string{"accept"}, reply: (*Server).reload},
		{method: "POST", path: "/v1/handover", roles: auth.Admin, reply: (*Server).handOver},

		{method: "GET", path: metadataPath, serve: (*Server).metadata},
		{method: "GET", path: metadataPath + "/mcp", serve: (*Server).metadata},
		{method: "GET", path: metadataPath + "/mcp/{toolset}", serve: (*Server).metadata},
		{method: "GET", path: "/healthz", serve: (*Server).health},
		{method: "GET", path: "/readyz", serve: (*Server).readiness},
	}
}

// request is a request, its caller and its answer.
type request struct {
	*http.Request
	w        http.ResponseWriter
	query    *query
	caller   auth.Caller
	identify identify
	issuers  *oidc.Issuers
	local    bool   // it came over the control socket
	via      string // the channel of a decision or a change
}

// The channels of requests: the control socket, a network listener, and the pages of the host.
const (
	viaControl = "cli"
	viaNetwork = "rest"
	viaConsole = "console"
)

// valid reports whether the credential is still valid for the same user and roles, and
// has not lost elicitation. An access token may have expired a short time ago.
func (r *request) valid() bool {
	if r.caller.Issuer != "" {
		return r.issuers.Open(r.caller)
	}
	now, err := r.identify(r.Request)
	return err == nil && now.User == r.caller.User && now.Roles == r.caller.Roles && (now.Elicitation || !r.caller.Elicitation)
}

// mux returns a handler that answers requests by the table.
func (s *Server) mux(who identify, via string) http.Handler {
	mux := http.NewServeMux()
	unknown := func(w http.ResponseWriter, r *http.Request) {
		if via == viaNetwork && s.forPages(r) {
			s.pages.ServeHTTP(w, r)
			return
		}
		s.answer(w, r, func() error {
			if _, err := who(r); err != nil {
				return err
			}
			return notFound.problem("there is no %s", excerpt.Printable(r.URL.Path, maxShown)).hint("the paths are those below /v1/, and /mcp; see docs/rest-api.md")
		})
	}
	byPath := make(map[string][]route)
	for _, r := range routes() {
		byPath[r.path] = append(byPath[r.path], r)
	}
	for pattern, of := range byPath {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			s.answer(w, r, func() error {
				return s.dispatch(&request{Request: r, w: w, identify: who, issuers: s.opts.Issuers, local: via == viaControl, via: via}, of)
			})
		})
	}
	mux.HandleFunc("/", unknown)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Clean(r.URL.Path) != r.URL.Path {
			unknown(w, r) // the mux would redirect the client
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// dispatch passes a request to the route with its method, if the caller has the role.
func (s *Server) dispatch(r *request, of []route) error {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http leaves the body out
	}
	i := slices.IndexFunc(of, func(o route) bool { return o.method == method })
	if i >= 0 && of[i].roles == 0 {
		return of[i].serve(s, r)
	}
	if i >= 0 && of[i].tokens && r.local {
		r.identify = s.member(s.relayCaller)
	}
	caller, err := r.identify(r.Request)
	if err != nil {
		return err
	}
	if i < 0 {
		var methods []string
		for _, o := range of {
			methods = append(methods, o.method)
		}
		p := wrongMethod.problem("%s does not have the method %s", of[0].path, excerpt.Printable(r.Method, maxShown))
		p.allow = strings.Join(methods, ", ")
		return p.hint("use %s", strings.Join(methods, " or "))
	}
	if caller.Roles&of[i].roles == 0 {
		return forbidden.problem("this needs the role %s, and the credential has %s",
			strings.Join(of[i].roles.Names(), " or "), caller.Roles).
			hint("a credential that calls tools never decides about calls and never administers the host; " +
				"people use approver.key on the control socket, or a token with the role")
	}
	if r.caller, err = name(r.Request, caller); err != nil {
		return err
	}
	if r.Body != http.NoBody {
		r.Body = countedBody{r.Body, r}
	}
	room := &s.requests
	if of[i].stream {
		room = &s.streams
	}
	leave, err := room.enter(caller)
	if err != nil {
		return err
	}
	defer leave()
	return s.run(r, of[i])
}

// run reads the query and lets the route answer.
func (s *Server) run(r *request, by route) error {
	if !by.anyParams {
		r.query = readQuery(r.Request, by.params...)
		if err := r.query.err(); err != nil {
			return err
		}
	}
	if by.serve != nil {
		return by.serve(s, r)
	}
	value, err := by.reply(s, r)
	if err != nil {
		return err
	}
	return s.write(r.w, http.StatusOK, value)
}

// answer runs f. If f returns an error, answer sends it as a problem.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, f func() error) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	err := s.recovered(r, f)
	if err == nil {
		return
	}
	p := problemOf(err)
	// A request whose context has ended has no reader.
	if r.Context().Err() == nil && (p.Status >= http.StatusInternalServerError || p.cause != nil) {
		s.opts.Logger.Error("a request failed", "method", r.Method, "path", r.URL.Path, "error", p.Detail, "cause", p.cause)
	}
	s.writeWithin(w)
	p.write(w)
}

// recovered runs f and turns a panic into an error.
func (s *Server) recovered(r *http.Request, f func() error) (err error) {
	defer func() {
		value := recover()
		if failure, ok := value.(error); ok && errors.Is(failure, http.ErrAbortHandler) {
			panic(value) // net/http's own way to cut a connection
		}
		if value != nil {
			s.opts.Logger.Error("panic in a request", "path", r.URL.Path, "panic", value, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	return f()
}
