package httpapi

import (
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/internal/excerpt"
)

// maxShown bounds what is repeated of a request in an error, and maxName the
// names that a request gives itself, in bytes.
const (
	maxShown = 100
	maxName  = 200
)

// identify returns who makes a request, by its credential. The error is a
// [*Problem].
type identify func(r *http.Request) (auth.Caller, error)

// peerKey is the key of a connection's [peer] in its context: http.Server has
// no other place for what is known of a connection.
type peerKey struct{}

// peer is the verdict about the process that opened a connection to the control
// socket; refusal is nil if it may use it.
type peer struct{ refusal error }

// guardControl keeps processes out that may not use the control socket.
func (s *Server) guardControl(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := r.Context().Value(peerKey{}).(peer)
		if ok && p.refusal == nil {
			next.ServeHTTP(w, r)
			return
		}
		s.complaints.Do(func() {
			s.opts.Logger.Warn("a process was turned away from the control socket", "error", p.refusal)
		})
		misdirected().problem("the control socket is closed to this process").
			hint("processes that the host has started may not use it; start a client yourself").write(w)
	})
}

// guardNetwork keeps requests out that a web page has a browser make: to a name
// that is not the host's, or from another origin.
func (s *Server) guardNetwork(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isCalled(r.Host) {
			misdirected().problem("the host is not called %q", excerpt.Printable(r.Host, maxShown)).
				hint("use 127.0.0.1 or localhost").write(w)
			return
		}
		if err := protection.Check(r); err != nil {
			misdirected().problem("the request comes from another origin: %v", err).write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isCalled reports whether a Host header names this host.
func isCalled(header string) bool {
	name, _, err := net.SplitHostPort(header)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

// controlCaller identifies a request on the control socket, whose process has
// been checked.
func (s *Server) controlCaller(r *http.Request) (auth.Caller, error) {
	if len(r.Header.Values("Authorization")) == 0 {
		return auth.Caller{User: s.opts.User, Roles: auth.Agent}, nil
	}
	return s.bearer(r, nil, s.opts.Keys)
}

// relayCaller identifies a request on the control socket for a route on which the
// configured tokens count, too.
func (s *Server) relayCaller(r *http.Request) (auth.Caller, error) {
	if len(r.Header.Values("Authorization")) == 0 {
		return s.controlCaller(r)
	}
	return s.bearer(r, nil, s.opts.Keys, s.opts.Tokens)
}

// networkCaller identifies a request on a network listener.
func (s *Server) networkCaller(r *http.Request) (auth.Caller, error) {
	caller, err := s.bearer(r, originOf(r.Context()), s.opts.Tokens)
	if err == nil {
		authenticated(r.Context())
	}
	return caller, err
}

// bearer looks a request's token up in lists, each of which counts. origin says which
// account it comes from; nil is that of the control socket, the host's own, which
// [Server.guardControl] has checked: it may use each token that it knows.
func (s *Server) bearer(r *http.Request, origin auth.Origin, lists ...*auth.Tokens) (auth.Caller, error) {
	given := r.Header.Values("Authorization")
	if len(given) == 0 {
		return auth.Caller{}, unauthorized().problem("the request has no token").
			hint("send the header Authorization: Bearer TOKEN; agent.token in the state directory has one")
	}
	scheme, secret, _ := strings.Cut(given[0], " ")
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return auth.Caller{}, unauthorized().problem("the Authorization header is not of the form Bearer TOKEN")
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
	if wait := s.failures.count(secret); wait > 0 {
		p := tooMany().problem("the token does not count, and is sent too often")
		p.retryAfter = wait
		return auth.Caller{}, p
	}
	s.complaints.Do(func() { s.opts.Logger.Warn("a request with a token that does not count", "from", r.RemoteAddr) })
	p := unauthorized().problem("the token does not count here").
		hint("agent.token in the state directory counts over HTTP, approver.key on the control socket only; the configuration lists the others")
	for _, tokens := range lists {
		end, ok := tokens.Ended(secret)
		switch at := end.At.UTC().Format(time.RFC3339); {
		case ok && end.Revoked:
			return auth.Caller{}, unauthorized().problem("the token %q was revoked at %s", end.Name, at).
				hint("ask whoever administers the host for the one that has taken its place")
		case ok:
			return auth.Caller{}, unauthorized().problem("the token %q expired at %s", end.Name, at).
				hint("toolhost token new makes another one; write its sha256 into the configuration, with a later expires")
		}
	}
	// A secret of one's own may have any form.
	ours := strings.HasPrefix(secret, auth.TokenPrefix) || len(secret) < auth.MinSecret
	if err := auth.CheckForm(secret); err != nil && ours {
		p = unauthorized().problem("%v", err).
			hint("toolhost token new makes one; a secret shorter than %d characters never counts", auth.MinSecret)
	}
	return auth.Caller{}, p
}

// fromElsewhere refuses a token that was sent from an account that may not use it:
// its secret is known to somebody who should not have it, or its block lacks an
// account.
func (s *Server) fromElsewhere(r *http.Request, refusal *auth.AccountError) error {
	uid := any(refusal.UID)
	if refusal.UID < 0 {
		uid = "unknown"
	}
	s.complaints.Do(func() {
		s.opts.Logger.Warn("a token was sent from an account that may not use it", "token", refusal.Token, "uid", uid,
			"account", refusal.Account.String(), "from", r.RemoteAddr, "error", refusal.Cause)
	})
	return elsewhere().problem("%v", refusal).
		hint("if that account is meant, write account = %q, its name or its number into the token's block; "+
			"if not, somebody else knows the token: toolhost token revoke %s", auth.AnyAccount, refusal.Token)
}

// name takes what a request calls its client and its session.
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
			return caller, badRequest().problem("the header %s may stand once, with at most %d printable characters", header.name, maxName)
		}
		if header.into == &caller.Session && auth.SessionEnds(values[0]) {
			return caller, badRequest().problem("the header %s names a session of another client", header.name).hint("choose a name of your own")
		}
		*header.into = values[0]
	}
	return caller, nil
}

// Bounds of tokens that do not count, per token and in all.
const (
	failureBurst = 10
	failureEvery = 6 * time.Second
	maxFailures  = 1024
)

// failures counts the tokens that did not count, so that a client which sends
// the same wrong one again and again costs little and fills no log.
type failures struct {
	mu   sync.Mutex // guards seen
	seen map[[sha256.Size]byte]*rate.Limiter
}

// count counts one failure, and returns how long the client must wait if there
// were too many.
func (f *failures) count(secret string) time.Duration {
	sum := sha256.Sum256([]byte(secret))
	f.mu.Lock()
	defer f.mu.Unlock()
	limiter := f.seen[sum]
	if limiter == nil {
		if f.seen == nil || len(f.seen) >= maxFailures {
			f.seen = make(map[[sha256.Size]byte]*rate.Limiter)
		}
		limiter = rate.NewLimiter(rate.Every(failureEvery), failureBurst)
		f.seen[sum] = limiter
	}
	if limiter.Allow() {
		return 0
	}
	return failureEvery
}
