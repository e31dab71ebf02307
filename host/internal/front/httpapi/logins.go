package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// LoginPath is the path of the page that opens a link; its parameter code is the code of the link.
const LoginPath = "/login"

// LoginLink is a link that logs in a browser, once.
type LoginLink struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}

// EndedLogins says how many browsers were logged out.
type EndedLogins struct {
	Ended int `json:"ended"`
}

// offerLogin answers POST /v1/logins with a link for the credential of the caller.
func (s *Server) offerLogin(r *request) (any, error) {
	if err := r.readBody(fields{}); err != nil {
		return nil, err
	}
	if r.via == viaConsole { // a login would outlive its 12 hours
		return nil, forbidden.problem("a browser that is logged in cannot log in another one").
			hint("get a link with %s", s.opts.Command("console"))
	}
	base := s.pagesURL(r)
	if s.pages == nil || s.opts.Logins == nil || base == "" {
		return nil, unavailable.problem("this host serves no pages").
			hint("start one that listens: %s, with server.listen in the configuration", s.opts.Command("serve"))
	}
	link, err := s.opts.Logins.Offer(r.caller)
	if err != nil {
		return nil, err
	}
	return LoginLink{base + LoginPath + "?code=" + url.QueryEscape(link.Code), link.Expires}, nil
}

// pagesURL returns the address of the pages for a caller: where it reaches the host itself.
func (s *Server) pagesURL(r *request) string {
	switch {
	case !r.local && r.TLS != nil:
		return "https://" + r.Host
	case !r.local:
		return "http://" + r.Host
	case s.opts.URL == nil:
		return ""
	}
	return s.opts.URL()
}

// endLogins answers DELETE /v1/logins: it logs out all browsers of the caller's credential.
func (s *Server) endLogins(r *request) (any, error) {
	if err := r.readBody(fields{}); err != nil {
		return nil, err
	}
	if s.opts.Logins == nil {
		return EndedLogins{}, nil
	}
	ended, err := s.opts.Logins.EndAll(r.Context(), r.caller)
	return EndedLogins{ended}, err
}

// forPages reports whether a request is for the pages: it has no token, which browsers never send
// by themselves, and its path is not below that of an interface for programs.
func (s *Server) forPages(r *http.Request) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return s.pages != nil && r.Header.Get("Authorization") == "" && path.Clean(r.URL.Path) == r.URL.Path &&
		first != "v1" && first != "mcp" && !strings.HasPrefix(first, ".")
}

// OriginOf returns the account at the other end of the connection that a request to the pages came
// over, or of one that its handler made with its context.
func OriginOf(ctx context.Context) auth.Origin { return originOf(ctx) }

// insideKey is the key of the function in a context that returns the caller of a request inside the
// process.
type insideKey struct{}

// As returns a handler that answers requests of the pages as a caller. who returns the caller, as
// long as its login is valid. It is called again while a request lasts. The context of each request
// must descend from that of the request to the pages.
func (s *Server) As(who func() (auth.Caller, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.inside.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), insideKey{}, who)))
	})
}

// insideCaller identifies a request of [Server.As].
func insideCaller(r *http.Request) (auth.Caller, error) {
	who, ok := r.Context().Value(insideKey{}).(func() (auth.Caller, error))
	if !ok {
		return auth.Caller{}, unauthorized.problem("the request has no login")
	}
	caller, err := who()
	if err != nil {
		return auth.Caller{}, unauthorized.problem("%v", err)
	}
	authenticated(r.Context())
	return caller, nil
}
