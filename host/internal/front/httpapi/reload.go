package httpapi

import "net/http"

// reload answers POST /v1/reload: the configuration is used as a whole, or the
// one before goes on.
func (s *Server) reload(w http.ResponseWriter, r *request) error {
	q := readQuery(r.Request, "accept")
	accept := q.text("accept")
	if err := q.err(); err != nil {
		return err
	}
	if err := readBody(w, r.Request, fields{}); err != nil {
		return err
	}
	if s.opts.Reload == nil {
		return refused().problem("this host cannot read its configuration again").hint("start it anew")
	}
	if err := s.opts.Reload(r.Context(), accept); err != nil {
		return refused().problem("%v", err).hint("the configuration that was in use goes on")
	}
	return s.write(w, http.StatusOK, struct {
		Status string `json:"status"`
	}{"reloaded"})
}
