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
	"github.com/toolhost/toolhost/internal/excerpt"
)

// route is one thing that can be asked of the host.
type route struct {
	method, path string
	// roles are those of which one is needed; 0 means that not even a
	// credential is.
	roles  auth.Roles
	handle func(s *Server, w http.ResponseWriter, r *request) error
	// stream says that clients hold its requests open for as long as they like.
	stream bool
	// tokens says that the configured tokens count on the control socket, too.
	tokens bool
}

const anyRole = auth.Agent | auth.Approver | auth.Admin

// routes is the table of all routes, and of who may use them. It is the only
// place where a role is asked for; whose calls and approvals somebody sees is
// decided by the parts that keep them.
func routes() []route {
	return []route{
		{method: "POST", path: "/v1/calls", roles: auth.Agent, handle: (*Server).postCall},
		{method: "GET", path: "/v1/calls", roles: auth.Agent | auth.Admin, handle: (*Server).listCalls},
		{method: "GET", path: "/v1/calls/{id}", roles: auth.Agent | auth.Admin, handle: (*Server).getCall},
		{method: "POST", path: "/v1/calls/{id}/cancel", roles: auth.Agent | auth.Admin, handle: (*Server).cancelCall},
		{method: "GET", path: "/v1/tools", roles: anyRole, handle: (*Server).listTools},
		{method: "GET", path: "/v1/tools/{name}", roles: anyRole, handle: (*Server).getTool},
		{method: "POST", path: "/v1/explain", roles: anyRole, handle: (*Server).explain},
		{method: "GET", path: "/v1/events", roles: anyRole, handle: (*Server).events},
		{method: "POST", path: "/mcp", roles: auth.Agent, handle: (*Server).mcp},
		{method: "GET", path: "/mcp", roles: auth.Agent, handle: (*Server).mcp, stream: true},
		{method: "DELETE", path: "/mcp", roles: auth.Agent, handle: (*Server).mcp},
		{method: "POST", path: "/v1/mcp/relay", roles: auth.Agent, handle: (*Server).relayMCP, tokens: true},

		{method: "GET", path: "/v1/approvals", roles: auth.Approver | auth.Admin, handle: (*Server).listApprovals},
		{method: "GET", path: "/v1/approvals/{id}", roles: auth.Approver | auth.Admin, handle: (*Server).getApproval},
		{method: "POST", path: "/v1/approvals/{id}/approve", roles: auth.Approver, handle: (*Server).approve},
		{method: "POST", path: "/v1/approvals/{id}/reject", roles: auth.Approver, handle: (*Server).reject},
		{method: "GET", path: "/v1/grants", roles: auth.Approver | auth.Admin, handle: (*Server).listGrants},
		{method: "DELETE", path: "/v1/grants/{id}", roles: auth.Approver | auth.Admin, handle: (*Server).revokeGrant},
		{method: "POST", path: "/v1/grants/{id}/confirm", roles: auth.Approver, handle: (*Server).confirmGrant},

		{method: "GET", path: "/v1/plugins", roles: auth.Admin, handle: (*Server).listPlugins},
		{method: "GET", path: "/v1/plugins/{name}", roles: auth.Admin, handle: (*Server).getPlugin},
		{method: "POST", path: "/v1/plugins/{name}/restart", roles: auth.Admin, handle: (*Server).restartPlugin},
		{method: "GET", path: "/v1/tokens", roles: auth.Admin, handle: (*Server).listTokens},
		{method: "POST", path: "/v1/tokens/{name}/revoke", roles: auth.Admin, handle: (*Server).revokeToken},
		{method: "GET", path: "/v1/journal", roles: auth.Admin, handle: (*Server).queryJournal},
		{method: "GET", path: "/v1/journal/tail", roles: auth.Admin, handle: (*Server).tailJournal},
		{method: "GET", path: "/v1/journal/verify", roles: auth.Admin, handle: (*Server).verifyJournal},
		{method: "POST", path: "/v1/reload", roles: auth.Admin, handle: (*Server).reload},
		{method: "POST", path: "/v1/handover", roles: auth.Admin, handle: (*Server).handOver},

		{method: "GET", path: "/healthz", roles: 0, handle: (*Server).health},
		{method: "GET", path: "/readyz", roles: 0, handle: (*Server).readiness},
	}
}

// request is a request and who makes it.
type request struct {
	*http.Request
	caller   auth.Caller
	identify identify
	local    bool // it came over the control socket
}

// valid reports whether the credential still counts, for the same, and has not lost
// elicitation.
func (r *request) valid() bool {
	now, err := r.identify(r.Request)
	return err == nil && now.User == r.caller.User && now.Roles == r.caller.Roles && (now.Elicitation || !r.caller.Elicitation)
}

// mux answers requests by the table.
func (s *Server) mux(who identify, local bool) http.Handler {
	mux := http.NewServeMux()
	unknown := func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, func() error {
			if _, err := who(r); err != nil {
				return err
			}
			return notFound().problem("there is no %s", excerpt.Printable(r.URL.Path, maxShown)).hint("the paths are those below /v1/, and /mcp; see docs/rest-api.md")
		})
	}
	byPath := make(map[string][]route)
	for _, r := range routes() {
		byPath[r.path] = append(byPath[r.path], r)
	}
	for pattern, of := range byPath {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			s.answer(w, r, func() error { return s.dispatch(w, &request{Request: r, identify: who, local: local}, of) })
		})
	}
	mux.HandleFunc("/", unknown)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Clean(r.URL.Path) != r.URL.Path {
			unknown(w, r) // the mux would send the client to another path
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// dispatch lets the route with the request's method answer, if its caller has
// the role that it needs.
func (s *Server) dispatch(w http.ResponseWriter, r *request, of []route) error {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http leaves the body out
	}
	i := slices.IndexFunc(of, func(o route) bool { return o.method == method })
	if i >= 0 && of[i].roles == 0 {
		return of[i].handle(s, w, r)
	}
	if i >= 0 && of[i].tokens && r.local {
		r.identify = s.relayCaller
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
		p := wrongMethod().problem("%s is no method of %s", excerpt.Printable(r.Method, maxShown), of[0].path)
		p.allow = strings.Join(methods, ", ")
		return p.hint("use %s", strings.Join(methods, " or "))
	}
	if caller.Roles&of[i].roles == 0 {
		return forbidden().problem("this needs the role %s, and the credential has %s",
			strings.Join(of[i].roles.Names(), " or "), caller.Roles).
			hint("no credential that lets a program call tools decides about calls or administers the host; " +
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
	return of[i].handle(s, w, r)
}

// answer runs f, and answers with its error if it has one.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, f func() error) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	err := s.run(r, f)
	if err == nil {
		return
	}
	p := problemOf(err)
	// Whose context has ended has nobody to answer to.
	if r.Context().Err() == nil && (p.Status >= http.StatusInternalServerError || p.cause != nil) {
		s.opts.Logger.Error("a request failed", "method", r.Method, "path", r.URL.Path, "error", p.Detail, "cause", p.cause)
	}
	s.writeWithin(w)
	p.write(w)
}

// run makes a panic an error like any other.
func (s *Server) run(r *http.Request, f func() error) (err error) {
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
