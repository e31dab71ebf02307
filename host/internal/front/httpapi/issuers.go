package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/internal/excerpt"
)

// issued returns the caller for an access token of an issuer. Any account may send it: whoever
// logs in has no account of this machine.
func (s *Server) issued(r *http.Request, token string) (auth.Caller, error) {
	caller, err := s.opts.Issuers.Verify(r.Context(), token)
	if err == nil {
		return caller, nil
	}
	wrong, ok := errors.AsType[*oidc.Error](err)
	switch {
	case !ok:
		return auth.Caller{}, waitEnd(r.Context())
	case wrong.Roleless:
		return auth.Caller{}, forbidden.problem("the access token gives no role: %s", wrong.Reason).
			hint("the configuration lists the roles of groups in the issuer's block")
	case wrong.Outage:
		return auth.Caller{}, unauthorized.problem("%s", wrong.Reason).hint("try again in a minute; the host's log has the cause")
	}
	if wait := s.failures.count(token); wait > 0 {
		p := tooMany.problem("the access token is not valid, and it was sent too often")
		p.retryAfter = wait
		return auth.Caller{}, p
	}
	s.complaints.Do(func() {
		s.opts.Logger.Warn("a request with an access token that is not valid", "issuer", wrong.Issuer, "error", wrong.Reason, "from", r.RemoteAddr)
	})
	return auth.Caller{}, unauthorized.problem("the access token is not valid: %s", excerpt.Printable(wrong.Reason, 2*maxShown)).
		hint("log in again; the client finds the issuer at %s", metadataPath)
}

// metadataPath is where clients find the issuers (RFC 9728, OAuth 2.0 Protected Resource
// Metadata).
const metadataPath = "/.well-known/oauth-protected-resource"

// resourceMetadata is the metadata of a protected resource (RFC 9728).
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`      //nolint:tagliatelle // the standard's name
	BearerMethods        []string `json:"bearer_methods_supported"`   //nolint:tagliatelle // the standard's name
	Scopes               []string `json:"scopes_supported,omitempty"` //nolint:tagliatelle // the standard's name
	Name                 string   `json:"resource_name"`              //nolint:tagliatelle // the standard's name
}

// metadata answers GET /.well-known/oauth-protected-resource, and the same with the path of a
// resource behind it.
func (s *Server) metadata(r *request) error {
	issuers := s.opts.Issuers.List()
	if r.local || len(issuers) == 0 {
		return notFound.problem("no issuer is configured").hint("send a configured token: Authorization: Bearer TOKEN")
	}
	var answer resourceMetadata
	answer.Resource = s.resource(r.Request, strings.TrimPrefix(r.URL.Path, metadataPath))
	answer.BearerMethods, answer.Name = []string{"header"}, "toolhost"
	for _, issuer := range issuers {
		answer.AuthorizationServers = append(answer.AuthorizationServers, issuer.URL)
		answer.Scopes = append(answer.Scopes, issuer.Scopes...)
	}
	return s.write(r.w, http.StatusOK, answer)
}

// resource returns the identifier of this host as a protected resource, for a client that uses a
// path of it: the audience of an issuer that is an address of this host and includes the path, or
// the address that the client has used. Issuers that know the client's parameter "resource" write
// it into the tokens' aud.
func (s *Server) resource(r *http.Request, path string) string {
	for _, issuer := range s.opts.Issuers.List() {
		at, err := url.Parse(issuer.Audience)
		if err != nil || at.Scheme != "http" && at.Scheme != "https" || !strings.EqualFold(at.Host, r.Host) {
			continue
		}
		if below := strings.TrimSuffix(at.Path, "/"); path == below || strings.HasPrefix(path, below+"/") {
			return issuer.Audience
		}
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + path
}

// challenge tells the client of a refused request where it finds the issuers, if there are any:
// "MCP servers MUST use the HTTP header WWW-Authenticate when returning a 401 Unauthorized to
// indicate the location of the resource server metadata URL" (MCP 2025-06-18, Authorization).
func (s *Server) challenge(r *http.Request, err error) error {
	p, ok := errors.AsType[*Problem](err)
	issuers := s.opts.Issuers.List()
	if !ok || p.Status != http.StatusUnauthorized || len(issuers) == 0 {
		return err
	}
	path := ""
	if r.URL.Path == "/mcp" || strings.HasPrefix(r.URL.Path, "/mcp/") {
		path = r.URL.Path
	}
	at, bad := url.Parse(s.resource(r, path))
	if bad != nil {
		return err // no client sends such a Host
	}
	at.Path, at.RawPath = metadataPath+strings.TrimSuffix(at.Path, "/"), ""
	p.challenge = fmt.Sprintf("resource_metadata=%q", at.String())
	var scopes []string
	for _, issuer := range issuers {
		scopes = append(scopes, issuer.Scopes...)
	}
	if len(scopes) > 0 {
		p.challenge += fmt.Sprintf(", scope=%q", strings.Join(scopes, " "))
	}
	if len(r.Header.Values("Authorization")) > 0 {
		p.challenge += `, error="invalid_token"` // RFC 6750, section 3
	}
	return p
}
