package httpapi

// Identity is who the caller of a request is, by its credential.
type Identity struct {
	User  string   `json:"user"`
	Roles []string `json:"roles"`
	// Groups are the groups of the user.
	Groups []string `json:"groups,omitempty"`
	// Token is the name of the configured token; "" for a key of the host.
	Token string `json:"token,omitempty"`
	// Approves names further users whose calls the caller may decide.
	Approves []string `json:"approves,omitempty"`
}

// identity answers GET /v1/caller.
func (s *Server) identity(r *request) (any, error) {
	return Identity{User: r.caller.User, Roles: r.caller.Roles.Names(), Groups: r.caller.Groups, Token: r.caller.Token, Approves: r.caller.Approves}, nil
}
