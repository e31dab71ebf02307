package httpapi

import (
	"cmp"
	"net/http"
	"time"

	"github.com/toolhost/toolhost/internal/excerpt"
)

// maxGrace bounds how long a token may count after it was revoked.
const maxGrace = 30 * 24 * time.Hour

// Token is a token as it is listed: everything but what it is known by.
type Token struct {
	Name        string   `json:"name"`
	User        string   `json:"user"`
	Roles       []string `json:"roles"`
	Approves    []string `json:"approves,omitempty"`
	Elicitation bool     `json:"elicitation,omitempty"`
	// Account is from where it may be used over HTTP: "any", a name or a number; ""
	// for the host's own.
	Account string `json:"account,omitempty"`
	// Expires is when it stops to count, and Revoked when it does, or did, because it
	// was revoked; zero is never.
	Expires time.Time `json:"expires,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
	// LastUsed is when a request with it was last accepted since the host started;
	// zero is never.
	LastUsed time.Time `json:"last_used,omitzero"`
}

// listTokens answers GET /v1/tokens, in the order of the configuration, the
// host's own first.
func (s *Server) listTokens(w http.ResponseWriter, r *request) error {
	if err := readQuery(r.Request).err(); err != nil {
		return err
	}
	var tokens []Token
	for _, t := range s.opts.Tokens.List() {
		tokens = append(tokens, Token{
			Name: t.Caller.Token, User: t.Caller.User, Roles: t.Caller.Roles.Names(), Approves: t.Caller.Approves,
			Elicitation: t.Caller.Elicitation, Account: t.Account.Name, Expires: t.Expires, Revoked: t.Revoked, LastUsed: t.LastUsed,
		})
	}
	return s.write(w, http.StatusOK, list(tokens))
}

// RevokedToken is the answer to POST /v1/tokens/{name}/revoke.
type RevokedToken struct {
	Name string `json:"name"`
	// Revoked is when it stops to count, at the latest.
	Revoked time.Time `json:"revoked"`
}

// revokeToken answers POST /v1/tokens/{name}/revoke.
func (s *Server) revokeToken(w http.ResponseWriter, r *request) error {
	if err := readQuery(r.Request).err(); err != nil {
		return err
	}
	var text string
	if err := readBody(w, r.Request, fields{"grace": &text}); err != nil {
		return err
	}
	grace, err := time.ParseDuration(cmp.Or(text, "0s"))
	if err != nil || grace < 0 || grace > maxGrace {
		return badRequest().problem("grace is %q, expected a duration from 0s to %s, such as 1h", excerpt.Printable(text, maxShown), maxGrace)
	}
	if s.opts.RevokeToken == nil {
		return refused().problem("this host cannot revoke tokens").hint("remove the token's block from the configuration, and reload")
	}
	name, at := r.PathValue("name"), time.Now().Add(grace)
	if err := s.opts.RevokeToken(r.Context(), name, grace, r.caller); err != nil {
		return err
	}
	return s.write(w, http.StatusOK, RevokedToken{Name: name, Revoked: at.UTC().Truncate(time.Second)})
}
