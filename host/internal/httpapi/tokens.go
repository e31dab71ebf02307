package httpapi

import (
	"net/http"
	"time"
)

// Token is a token as it is listed: everything but what it is known by.
type Token struct {
	Name        string   `json:"name"`
	User        string   `json:"user"`
	Roles       []string `json:"roles"`
	Approves    []string `json:"approves,omitempty"`
	Elicitation bool     `json:"elicitation,omitempty"`
	// Expires is when it stops to count; zero is never.
	Expires time.Time `json:"expires,omitzero"`
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
			Elicitation: t.Caller.Elicitation, Expires: t.Expires, LastUsed: t.LastUsed,
		})
	}
	return s.write(w, http.StatusOK, list(tokens))
}
