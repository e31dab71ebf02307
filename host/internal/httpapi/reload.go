package httpapi

import "net/http"

// reload answers POST /v1/reload: the configuration is used as a whole, or the
// one before goes on.
func (s *Server) reload(w http.ResponseWriter, r *request) error {
	if err := readNothing(w, r); err != nil {
		return err
	}
	if s.opts.Reload == nil {
		return refused().problem("this host cannot read its configuration again").hint("start it anew")
	}
	if err := s.opts.Reload(r.Context()); err != nil {
		return refused().problem("%v", err).hint("the configuration that was in use goes on")
	}
	return s.write(w, http.StatusOK, struct {
		Status string `json:"status"`
	}{"reloaded"})
}
