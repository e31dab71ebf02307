package httpapi

import (
	"net/http"

	"github.com/toolhost/toolhost/host/internal/state/metrics"
)

// toolMetrics answers GET /v1/metrics with what was counted about each tool since the host started.
func (s *Server) toolMetrics(*request) (any, error) { return s.opts.Metrics.Tools(), nil }

// prometheus answers GET /metrics in the text format of Prometheus.
func (s *Server) prometheus(r *request) error {
	text, err := s.opts.Metrics.Text()
	if err != nil {
		return err
	}
	r.w.Header().Set("Content-Type", metrics.ContentType)
	s.writeWithin(r.w)
	r.w.WriteHeader(http.StatusOK)
	_, _ = r.w.Write(text) // the client may be gone
	return nil
}
