package httpapi

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/internal/excerpt"
)

// maxName bounds the client and session names of a request, in bytes.
const maxName = 200

// identify returns the caller of a request, by its credential. The error is a
// [*Problem].
type identify func(r *http.Request) (auth.Caller, error)

// peerKey is the key of a connection's [peer] in its context. http.Server has no other
// place for facts about a connection.
type peerKey struct{}

// peer is the verdict about the process that opened a connection to the control
// socket. refusal is nil if the process may use the socket.
type peer struct{ refusal error }

// guardControl refuses processes that may not use the control socket.
func (s *Server) guardControl(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := r.Context().Value(peerKey{}).(peer)
		if ok && p.refusal == nil {
			next.ServeHTTP(w, r)
			return
		}
		s.complaints.Do(func() {
			s.opts.Logger.Warn("the control socket refused a process", "error", p.refusal)
		})
		misdirected.problem("the control socket is closed to this process").
			hint("processes that the host or its plugins started may not use it; start the client yourself").write(w)
	})
}

// guardNetwork refuses requests that a web page makes in a browser: to a name that is
// not the host's, or from another origin.
func (s *Server) guardNetwork(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.namesHost(r) {
			misdirected.problem("%q is not a name of this host", excerpt.Printable(r.Host, maxShown)).
				hint("on this machine use 127.0.0.1 or localhost, from another one a name of the TLS certificate or of server.hosts in the configuration").write(w)
			return
		}
		if err := protection.Check(r); err != nil {
			misdirected.problem("the request comes from another origin: %v", err).write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// namesHost reports whether the Host header of a request names this host: this machine, the
// address of the connection itself, or a name that the administrator gave. A web page that makes
// its own name lead here names none of them.
func (s *Server) namesHost(r *http.Request) bool {
	name, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(r.Host, "["), "]")
	}
	name = strings.ToLower(name)
	if name == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(name)
	if err != nil {
		return s.opts.IsName(name)
	}
	address = address.Unmap()
	ours, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return address.IsLoopback() || address == addressOf(ours) || s.opts.IsName(address.String())
}

// addressOf returns the address of one end of a TCP connection, or the zero one.
func addressOf(end net.Addr) netip.Addr {
	tcp, ok := end.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap()
}

// member adds to callers that identify returns their groups, whose toolsets limit them.
func (s *Server) member(identify func(*http.Request) (auth.Caller, error)) func(*http.Request) (auth.Caller, error) {
	return func(r *http.Request) (auth.Caller, error) {
		caller, err := identify(r)
		return s.join(caller), err
	}
}

func (s *Server) join(c auth.Caller) auth.Caller {
	if s.opts.Groups == nil {
		return c
	}
	return s.opts.Groups().Join(c)
}

// controlCaller identifies a request on the control socket. The process was checked
// before.
func (s *Server) controlCaller(r *http.Request) (auth.Caller, error) {
	if len(r.Header.Values("Authorization")) == 0 {
		return auth.Caller{User: s.opts.User, Roles: auth.Agent}, nil
	}
	return s.bearer(r, nil, s.opts.Keys)
}

// relayCaller identifies a request on the control socket for a route that also takes
// the configured tokens.
func (s *Server) relayCaller(r *http.Request) (auth.Caller, error) {
	if len(r.Header.Values("Authorization")) == 0 {
		return s.controlCaller(r)
	}
	return s.bearer(r, nil, s.opts.Keys, s.opts.Tokens)
}

// networkCaller identifies a request on a network listener.
func (s *Server) networkCaller(r *http.Request) (auth.Caller, error) {
	caller, err := s.bearer(r, originOf(r.Context()), s.opts.Tokens)
	if err != nil {
		return auth.Caller{}, s.challenge(r, err)
	}
	authenticated(r.Context())
	return caller, nil
}

// bearer looks up the token of a request in lists, and over the network verifies an access
// token. origin is the account that sent it; nil is the host's own account on the control socket,
// which [Server.guardControl] has checked: it may use every token that it knows.
func (s *Server) bearer(r *http.Request, origin auth.Origin, lists ...*auth.Tokens) (auth.Caller, error) {
	given := r.Header.Values("Authorization")
	if len(given) == 0 {
		return auth.Caller{}, unauthorized.problem("the request has no token").
			hint("send the header Authorization: Bearer TOKEN; agent.token in the state directory holds one")
	}
	scheme, secret, _ := strings.Cut(given[0], " ")
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return auth.Caller{}, unauthorized.problem("the Authorization header is not of the form Bearer TOKEN")
	}
	secret = strings.TrimSpace(secret)
	for _, tokens := range lists {
		caller, ok, err := tokens.LookupFrom(secret, origin)
		if ok {
			return caller, nil
		}
		if refusal, foreign := errors.AsType[*auth.AccountError](err); foreign {
			return auth.Caller{}, s.fromElsewhere(r, refusal)
		}
	}
	if origin != nil && oidc.IsToken(secret) && len(s.opts.Issuers.List()) > 0 {
		return s.issued(r, secret)
	}
	if wait := s.failures.count(secret); wait > 0 {
		p := tooMany.problem("the token is not valid, and it was sent too often")
		p.retryAfter = wait
		return auth.Caller{}, p
	}
	s.complaints.Do(func() { s.opts.Logger.Warn("a request with an invalid token", "from", r.RemoteAddr) })
	p := unauthorized.problem("the token is not valid here").
		hint("agent.token in the state directory is valid over HTTP, approver.key on the control socket only; the configuration lists other tokens")
	for _, tokens := range lists {
		end, ok := tokens.Ended(secret)
		switch at := end.At.UTC().Format(time.RFC3339); {
		case ok && end.Revoked:
			return auth.Caller{}, unauthorized.problem("the token %q was revoked at %s", end.Name, at).
				hint("ask the administrator of the host for the new token")
		case ok:
			return auth.Caller{}, unauthorized.problem("the token %q expired at %s", end.Name, at).
				hint("create one with toolhost token new, and write its sha256 and a later expires into the configuration")
		}
	}
	// A secret that the administrator chose may have any form.
	ours := strings.HasPrefix(secret, auth.TokenPrefix) || len(secret) < auth.MinSecret
	if err := auth.CheckForm(secret); err != nil && ours {
		p = unauthorized.problem("%v", err).
			hint("create one with toolhost token new; a secret shorter than %d characters is never valid", auth.MinSecret)
	}
	return auth.Caller{}, p
}

// fromElsewhere refuses a token that was sent from an account that may not use it. The
// secret has leaked, or the token's block lacks an account.
func (s *Server) fromElsewhere(r *http.Request, refusal *auth.AccountError) error {
	uid := any(refusal.UID)
	if refusal.UID < 0 {
		uid = "unknown"
	}
	s.complaints.Do(func() {
		s.opts.Logger.Warn("an account sent a token that it may not use", "token", refusal.Token, "uid", uid,
			"account", refusal.Account.String(), "from", r.RemoteAddr, "error", refusal.Cause)
	})
	return elsewhere.problem("%v", refusal).
		hint("if that account may use it, write account = %q, its name or its number into the token's block; "+
			"if not, the token has leaked: toolhost token revoke %s", auth.AnyAccount, refusal.Token)
}

// name adds the client and the session that a request names.
func name(r *http.Request, caller auth.Caller) (auth.Caller, error) {
	for _, header := range []struct {
		name string
		into *string
	}{{"Toolhost-Client", &caller.Client}, {"Toolhost-Session", &caller.Session}} {
		values := r.Header.Values(header.name)
		if len(values) == 0 {
			continue
		}
		if len(values) > 1 || len(values[0]) > maxName || excerpt.Printable(values[0], maxName) != values[0] {
			return caller, badRequest.problem("expected the header %s once, with at most %d printable characters", header.name, maxName)
		}
		if header.into == &caller.Session && auth.SessionEnds(values[0]) {
			return caller, badRequest.problem("the header %s names a session of another client", header.name).hint("choose another name")
		}
		*header.into = values[0]
	}
	return caller, nil
}
