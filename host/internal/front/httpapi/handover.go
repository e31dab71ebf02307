package httpapi

import "net/http"

// Handover is how a host makes room for one that stays.
type Handover struct {
	// Ephemeral reports that the host runs for one command only and ends with it. Any
	// other host has begun to stop.
	Ephemeral bool `json:"ephemeral"`
	// GraceMS is how many milliseconds the calls under way may still take.
	GraceMS int64 `json:"grace_ms"`
}

// handOver answers POST /v1/handover: a host that runs for a client or a command makes
// room for one that stays. The route exists on the control socket only.
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
