package httpapi

import "net/http"

// Handover is how a host makes room for one that stays.
type Handover struct {
	// Brief says that the host is there for one command only and ends with it; one
	// that is not has begun to end.
	Brief bool `json:"brief"`
	// GraceMS is how many milliseconds calls under way may still take.
	GraceMS int64 `json:"grace_ms"`
}

// handOver answers POST /v1/handover: a host that is there for a client or a command
// makes room for one that stays. Only the control socket has it.
func (s *Server) handOver(w http.ResponseWriter, r *request) error {
	if !r.local {
		return notFound().problem("a host is handed over on its control socket only")
	}
	if err := readBody(w, r.Request, fields{}); err != nil {
		return err
	}
	if s.opts.HandOver == nil {
		return refused().problem("this host runs until it is told to stop").hint("stop it, and start the other")
	}
	return s.write(w, http.StatusOK, s.opts.HandOver())
}
