package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/internal/excerpt"
)

// queryJournal answers GET /v1/journal, the newest rows first unless order is
// "oldest".
func (s *Server) queryJournal(w http.ResponseWriter, r *request) error {
	q := readQuery(r.Request, "call", "tool", "plugin", "user", "session", "status", "since", "until", "before", "after", "limit", "order")
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
	if err := q.err(); err != nil {
		return err
	}
	rows, err := s.opts.Journal.Query(r.Context(), want)
	if err != nil {
		return err
	}
	return s.write(w, http.StatusOK, list(rows))
}

// verifyJournal answers GET /v1/journal/verify, which reads all of it.
func (s *Server) verifyJournal(w http.ResponseWriter, r *request) error {
	if err := readQuery(r.Request).err(); err != nil {
		return err
	}
	report, err := s.opts.Journal.Verify(r.Context())
	if err != nil {
		return err
	}
	report.Problems = list(report.Problems)
	return s.write(w, http.StatusOK, report)
}

// tailJournal answers GET /v1/journal/tail with rows as they become durable,
// one JSON object a line: those after number "after", or from now on.
func (s *Server) tailJournal(w http.ResponseWriter, r *request) error {
	q := readQuery(r.Request, "after")
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
	out := s.startStream(w, "application/x-ndjson")
	for r.valid() {
		var quiet bool
		if after, quiet = s.tail(r.Context(), out, after); !quiet {
			break
		}
		out.write("\n") // says that the stream lives
	}
	return nil
}

// tail streams rows until it is time to say that the stream lives. It returns
// the number of the last one, and whether the stream goes on.
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
