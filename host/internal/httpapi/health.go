package httpapi

import (
	"errors"
	"net/http"
)

// Health is how the host is.
type Health struct {
	// Status is "ok", "unhealthy", "ready", "starting" or "stopping".
	Status string `json:"status"`
	// Problems say what is wrong.
	Problems []string `json:"problems,omitempty"`
}

// health answers GET /healthz. Anybody may ask, so it names no paths.
func (s *Server) health(w http.ResponseWriter, _ *request) error {
	if errors.Join(s.opts.Store.Healthy(), s.opts.Journal.Healthy()) != nil {
		return s.write(w, http.StatusServiceUnavailable, Health{"unhealthy", []string{
			"the journal cannot be written: calls that change something are refused",
		}})
	}
	return s.write(w, http.StatusOK, Health{Status: "ok"})
}

// stopping reports whether the host has begun to stop.
func (s *Server) stopping() bool {
	select {
	case <-s.opts.Stopping:
		return true
	default:
		return false
	}
}

// readiness answers GET /readyz.
func (s *Server) readiness(w http.ResponseWriter, _ *request) error {
	if s.stopping() {
		return s.write(w, http.StatusServiceUnavailable, Health{"stopping", []string{"the host is stopping: it begins no calls"}})
	}
	if s.opts.Ready != nil {
		select {
		case <-s.opts.Ready:
		default:
			return s.write(w, http.StatusServiceUnavailable, Health{"starting", []string{"plugins are starting"}})
		}
	}
	return s.write(w, http.StatusOK, Health{Status: "ready"})
}
