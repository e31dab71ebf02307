package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/internal/excerpt"
)

// journalParams returns the parameters of GET /v1/journal.
func journalParams() []string {
	return []string{"call", "tool", "plugin", "user", "session", "status", "since", "until", "before", "after", "limit", "order"}
}

// queryJournal answers GET /v1/journal, newest rows first unless order is "oldest".
func (s *Server) queryJournal(r *request) (any, error) {
	q := r.query
	want := journal.Query{
		Call: q.text("call"), Tool: q.text("tool"), Plugin: q.text("plugin"), User: q.text("user"),
		Session: q.text("session"), Status: q.text("status"), Since: q.time("since"), Until: q.time("until"),
		Before: q.number("before"), After: q.number("after"), Limit: int(min(q.number("limit"), 1000)),
	}
	switch order := q.text("order"); order {
	case "", "newest":
	case "oldest":
		want.OldestFirst = true
	default:
		q.fail("order is %q, expected newest or oldest", excerpt.Printable(order, maxShown))
	}
	if want.Call != "" && !strings.HasPrefix(want.Call, "tc_") {
		q.fail("call is %q, expected the id of a call, which begins with tc_", excerpt.Printable(want.Call, maxShown))
	}
	switch want.Status {
	case "", event.Success, event.Error, event.Rejected:
	default:
		q.fail("status is %q, expected success, error or rejected", excerpt.Printable(want.Status, maxShown))
	}
	if err := q.err(); err != nil {
		return nil, err
	}
	rows, err := s.opts.Journal.Query(r.Context(), want)
	return list(rows), err
}

// verifyJournal answers GET /v1/journal/verify, which reads the whole journal.
func (s *Server) verifyJournal(r *request) (any, error) {
	report, err := s.opts.Journal.Verify(r.Context())
	report.Problems = list(report.Problems)
	return report, err
}

// tailJournal answers GET /v1/journal/tail with rows as they become durable, one JSON
// object per line: those after row number "after", or from now on.
func (s *Server) tailJournal(r *request) error {
	q := r.query
	after := q.number("after")
	if err := q.err(); err != nil {
		return err
	}
	if q.text("after") == "" {
		last, err := s.opts.Journal.Query(r.Context(), journal.Query{Limit: 1})
		if err != nil {
			return err
		}
		if len(last) > 0 {
			after = last[0].Seq
		}
	}
	out := s.startStream(r.w, "application/x-ndjson")
	for r.valid() {
		var quiet bool
		if after, quiet = s.tail(r.Context(), out, after); !quiet {
			break
		}
		out.write("\n") // a sign of life
	}
	return nil
}

// tail streams rows until it is time for a sign of life. It returns the number of the
// last row, and whether the stream continues.
func (s *Server) tail(ctx context.Context, out *stream, after int64) (last int64, quiet bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timing.keepAlive, errQuiet)
	defer cancel()
	for row, err := range s.opts.Journal.Follow(ctx, after) {
		if err != nil {
			s.opts.Logger.Error("the journal cannot be followed", "error", err)
			return after, false
		}
		text, err := json.Marshal(row)
		if err != nil {
			s.opts.Logger.Error("a row of the journal cannot be sent", "row", row.Seq, "error", err)
			return after, false
		}
		if out.write(string(text) + "\n"); out.err != nil {
			return after, false
		}
		after = row.Seq
	}
	return after, errors.Is(context.Cause(ctx), errQuiet)
}
