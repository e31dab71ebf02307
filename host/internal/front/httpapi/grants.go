package httpapi

import (
	"net/http"
	"strconv"

	"github.com/toolhost/toolhost/internal/excerpt"
)

// listGrants answers GET /v1/grants, the newest first; with all
// those that have ended, too.
func (s *Server) listGrants(w http.ResponseWriter, r *request) error {
	q := readQuery(r.Request, "all")
	all, err := strconv.ParseBool(q.text("all"))
	if err != nil && q.text("all") != "" {
		q.fail("all is %q, expected true or false", excerpt.Printable(q.text("all"), maxShown))
	}
	if err := q.err(); err != nil {
		return err
	}
	s.awaitTools(r.Context()) // which say what is paused
	grants, err := s.opts.Grants.List(r.Context(), r.caller, all)
	if err != nil {
		return err
	}
	return s.write(w, http.StatusOK, list(grants))
}

// revokeGrant answers DELETE /v1/grants/{id} with the grant as it is then.
func (s *Server) revokeGrant(w http.ResponseWriter, r *request) error {
	if err := readNothing(w, r); err != nil {
		return err
	}
	grant, err := s.opts.Grants.Revoke(r.Context(), r.PathValue("id"), r.caller)
	if err != nil {
		return err
	}
	return s.write(w, http.StatusOK, grant)
}

// confirmGrant answers POST /v1/grants/{id}/confirm with the grant as it is then.
func (s *Server) confirmGrant(w http.ResponseWriter, r *request) error {
	if err := readQuery(r.Request).err(); err != nil {
		return err
	}
	var basis string
	if err := readBody(w, r.Request, fields{"basis": &basis}); err != nil {
		return err
	}
	s.awaitTools(r.Context())
	grant, err := s.opts.Grants.Confirm(r.Context(), r.PathValue("id"), basis, r.caller)
	if err != nil {
		return err
	}
	return s.write(w, http.StatusOK, grant)
}
