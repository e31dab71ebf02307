package httpapi

import "github.com/toolhost/toolhost/host/internal/state/journal"

// usage answers GET /v1/usage with the use of each tool by each user, from the journal.
func (s *Server) usage(r *request) (any, error) {
	q := r.query
	want := journal.UsageQuery{User: q.text("user"), Since: q.time("since"), Until: q.time("until")}
	if err := q.err(); err != nil {
		return nil, err
	}
	return s.opts.Journal.Usage(r.Context(), want)
}
