package httpapi

import (
	"slices"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/state/journal"
)

// NetworkList is the answer of GET /v1/network.
type NetworkList struct {
	// Open are the open connections, and Ended those that have ended or were refused, as rows of the
	// journal; the latest come first.
	Open  []egress.Connection `json:"open"`
	Ended []journal.Record    `json:"ended"`
}

// listConnections answers GET /v1/network with the connections of plugins to other machines.
func (s *Server) listConnections(r *request) (any, error) {
	q := r.query
	want := journal.Query{
		Kind: journal.Connection, Plugin: q.text("plugin"), User: q.text("user"), Call: q.text("call"),
		Since: q.time("since"), Limit: int(min(q.number("limit"), 1000)),
	}
	if err := q.err(); err != nil {
		return nil, err
	}
	ended, err := s.opts.Journal.Query(r.Context(), want)
	if err != nil {
		return nil, err
	}
	open := slices.DeleteFunc(s.opts.Supervisor.Connections(), func(c egress.Connection) bool {
		is := func(want, got string) bool { return want == "" || want == got }
		return !is(want.Plugin, c.Plugin) || !is(want.User, c.User) || !is(want.Call, c.Call) || c.Opened.Before(want.Since)
	})
	return NetworkList{Open: list(open), Ended: list(ended)}, nil
}
