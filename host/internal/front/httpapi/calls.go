package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxKey bounds an idempotency key, in bytes.
	maxKey = 200
	// maxLeft bounds the calls of a user that their clients may have left: their
	// results are kept.
	maxLeft = 256
)

// postCall answers POST /v1/calls with the call's outcome: 200 if it has
// ended, well or not, 202 if it goes on. A call whose client goes away while it
// waits is canceled.
func (s *Server) postCall(w http.ResponseWriter, r *request) error {
	req, err := s.readCall(w, r, true)
	if err != nil {
		return err
	}
	prefer, err := readPrefer(r.Header)
	if err != nil {
		return err
	}
	if (prefer.async || prefer.waits) && s.opts.Pipeline.Operations().Count(r.caller.User) >= maxLeft {
		return tooMany().problem("%d calls of this user are under way, or have results that nobody has collected", maxLeft).
			hint("GET /v1/calls lists them; GET /v1/calls/ID collects a result, POST /v1/calls/ID/cancel ends a call")
	}
	_, _ = s.lookUp(r.Context(), req.Tool) // what it cannot find, the pipeline tells
	op := s.opts.Pipeline.Start(r.Context(), req)
	defer op.Release()

	ctx, patience := r.Context(), s.opts.Patience
	switch {
	case prefer.async:
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	case prefer.waits:
		limited, cancel := context.WithTimeout(ctx, prefer.wait)
		defer cancel()
		ctx, patience = limited, operation.Forever
	case prefer.asks:
		patience = prefer.patience
	}
	outcome := op.Wait(ctx, patience)
	if outcome.Pending && r.Context().Err() != nil && !prefer.async {
		if !stopped(r.Context()) {
			op.GiveUp()
		}
		return waitEnd(r.Context())
	}
	prefer.applied(w)
	return s.writeOutcome(w, outcome)
}

// readCall reads a call from the body and the headers of a request.
func (s *Server) readCall(w http.ResponseWriter, r *request, withContext bool) (pipeline.Request, error) {
	if err := readQuery(r.Request).err(); err != nil {
		return pipeline.Request{}, err
	}
	req := pipeline.Request{Caller: r.caller, IdempotencyKey: r.Header.Get("Idempotency-Key")}
	into := fields{"tool": &req.Tool, "arguments": (*json.RawMessage)(&req.Arguments)}
	if withContext {
		into["context"] = &req.Context
	}
	if err := readBody(w, r.Request, into); err != nil {
		return pipeline.Request{}, err
	}
	switch {
	case req.Tool == "":
		return pipeline.Request{}, badRequest().problem("the body names no tool").
			hint(`send {"tool": "NAME", "arguments": {...}}; GET /v1/tools lists the tools`)
	case len(req.IdempotencyKey) > maxKey:
		return pipeline.Request{}, badRequest().problem("the Idempotency-Key has %d bytes, more than the %d that are allowed",
			len(req.IdempotencyKey), maxKey)
	}
	return req, nil
}

// writeOutcome answers with how a call stands.
func (s *Server) writeOutcome(w http.ResponseWriter, outcome operation.Outcome) error {
	if !outcome.Pending {
		return s.writeResult(w, outcome)
	}
	path := "/v1/calls/" + outcome.ID
	w.Header().Set("Location", path)
	outcome.Result.Error = outcome.Result.Error.WithHint("GET %s?wait=30s has the result when there is one", path)
	return s.write(w, http.StatusAccepted, outcome)
}

// listCalls answers GET /v1/calls with the calls under way.
func (s *Server) listCalls(w http.ResponseWriter, r *request) error {
	if err := readQuery(r.Request).err(); err != nil {
		return err
	}
	return s.write(w, http.StatusOK, list(s.opts.Pipeline.Operations().List(r.caller)))
}

// getCall answers GET /v1/calls/{id}: with the outcome of a call that is under
// way or whose result was not collected, else with what the journal has of it.
func (s *Server) getCall(w http.ResponseWriter, r *request) error {
	q := readQuery(r.Request, "wait")
	wait := q.wait()
	if err := q.err(); err != nil {
		return err
	}
	id := r.PathValue("id")
	op, ok := s.opts.Pipeline.Operations().Find(id, r.caller)
	if !ok {
		return s.writeRecorded(w, r, id)
	}
	defer op.Release()
	if info := op.Info(); info.User != r.caller.User {
		return s.writeForeign(w, r, info)
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	outcome := op.Wait(ctx, operation.Forever)
	if outcome.Pending && r.Context().Err() != nil {
		return waitEnd(r.Context())
	}
	return s.writeOutcome(w, outcome)
}

// writeForeign answers an admin about a call of another user, and leaves the
// result to that user.
func (s *Server) writeForeign(w http.ResponseWriter, r *request, info operation.Info) error {
	if info.State == operation.Done {
		return s.writeRecorded(w, r, info.ID)
	}
	return s.writeOutcome(w, operation.Outcome{
		ID: info.ID, Tool: info.Tool, Approval: info.Approval, Duration: time.Since(info.Started), Pending: true,
		Result: tool.ErrorResult(tool.Errorf(tool.PendingApproval, "the call has not ended yet")),
	})
}

// RecordedCall is what is known of a call whose result is gone.
type RecordedCall struct {
	// Status is success, error or rejected, or "unknown" if no end of the call
	// was recorded: the host was killed while it ran.
	Status          string         `json:"status"`
	ToolCallID      string         `json:"tool_call_id"`
	ApprovalID      string         `json:"approval_id,omitempty"`
	ExecutionTimeMS int64          `json:"execution_time_ms"`
	Record          journal.Record `json:"record"`
}

// maxLag is how long the end of a call may take to be found in the journal, with
// time to spare.
const maxLag = 250 * time.Millisecond

// writeRecorded answers with what the journal has of a call of the caller.
func (s *Server) writeRecorded(w http.ResponseWriter, r *request, id string) error {
	row, err := s.lastRow(r.Context(), id)
	if err != nil {
		return err
	}
	if row.Call != id || !mayRead(r.caller, row.User) {
		return notFound().problem("there is no call %q", excerpt.Printable(id, maxShown)).
			hint("GET /v1/calls lists the calls under way")
	}
	recorded := RecordedCall{
		Status: row.Status, ToolCallID: row.Call, ApprovalID: row.Approval,
		ExecutionTimeMS: row.Duration.Milliseconds(), Record: row,
	}
	if row.Kind != journal.End {
		recorded.Status = "unknown"
	}
	return s.write(w, http.StatusOK, recorded)
}

// lastRow returns the last row about a call, the zero row if there is none. It
// waits a little for one that is being written.
func (s *Server) lastRow(ctx context.Context, id string) (journal.Record, error) {
	var after int64
	newest, err := s.opts.Journal.Query(ctx, journal.Query{Limit: 1})
	if err != nil {
		return journal.Record{}, err
	}
	if len(newest) > 0 {
		after = newest[0].Seq
	}
	rows, err := s.opts.Journal.Query(ctx, journal.Query{Call: id, Limit: 1})
	if err != nil {
		return journal.Record{}, err
	}
	if len(rows) > 0 {
		return rows[0], nil
	}
	if !strings.HasPrefix(id, "tc_") {
		return journal.Record{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxLag)
	defer cancel()
	for row, err := range s.opts.Journal.Follow(ctx, after) {
		if err != nil || row.Call == id {
			return row, err
		}
	}
	return journal.Record{}, nil
}

// mayRead reports whether a caller may read about a call of a user.
func mayRead(caller auth.Caller, user string) bool {
	return caller.User == user || caller.Roles.Has(auth.Admin)
}

// cancelWait is how long the answer to a cancel waits for the end of the call.
const cancelWait = 5 * time.Second

// cancelCall answers POST /v1/calls/{id}/cancel with the call's outcome.
func (s *Server) cancelCall(w http.ResponseWriter, r *request) error {
	if err := readNothing(w, r); err != nil {
		return err
	}
	id := r.PathValue("id")
	op, ok := s.opts.Pipeline.Operations().Find(id, r.caller)
	if !ok {
		return notFound().problem("there is no call %q under way", excerpt.Printable(id, maxShown)).
			hint("GET /v1/calls lists the calls under way")
	}
	defer op.Release()
	op.Cancel()
	if info := op.Info(); info.User != r.caller.User {
		return s.writeForeign(w, r, info)
	}
	ctx, cancel := context.WithTimeout(r.Context(), cancelWait)
	defer cancel()
	return s.writeOutcome(w, op.Wait(ctx, operation.Forever))
}

// explain answers POST /v1/explain: what would happen to a call.
func (s *Server) explain(w http.ResponseWriter, r *request) error {
	req, err := s.readCall(w, r, false)
	if err != nil {
		return err
	}
	if _, err := s.lookUp(r.Context(), req.Tool); err != nil {
		return err
	}
	explanation, err := s.opts.Pipeline.Explain(req)
	if err != nil {
		return err
	}
	return s.write(w, http.StatusOK, explanation)
}
