package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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
	// maxLeft bounds the calls of a user that may have no client: the host keeps their
	// results.
	maxLeft = 256
)

// postCall answers POST /v1/calls with the outcome of the call: 200 if the call has
// ended, whatever its result, and 202 if it continues. If the client disconnects while
// it waits, the call is canceled.
func (s *Server) postCall(r *request) error {
	var said string
	req, err := s.readCall(r, fields{"context": &said})
	if err != nil {
		return err
	}
	req.Context = said
	prefer, err := readPrefer(r.Header)
	if err != nil {
		return err
	}
	if (prefer.async || prefer.waits) && s.opts.Pipeline.Operations().Count(r.caller.User) >= maxLeft {
		return tooMany.problem("%d calls of this user are running, or have results that no client has collected", maxLeft).
			hint("GET /v1/calls lists them; GET /v1/calls/ID collects a result, POST /v1/calls/ID/cancel ends a call")
	}
	_, _ = s.lookUp(r.Context(), s.opts.Pipeline.Unwrap(req).Tool, r.caller) // the pipeline reports an unknown tool
	op := s.opts.Pipeline.Start(r.Context(), req)
	defer op.Release()

	ctx, patience := r.Context(), s.opts.Patience
	switch {
	case prefer.async:
		prefer.applied(r.w)
		return s.writeOutcome(r.w, op.Pending())
	case prefer.waits:
		limited, cancel := context.WithTimeout(ctx, prefer.wait)
		defer cancel()
		ctx, patience = limited, operation.Forever
	case prefer.asks:
		patience = prefer.patience
	default:
		limited, cancel := context.WithTimeout(ctx, operation.LongestWait(patience))
		defer cancel()
		ctx = limited
	}
	outcome := op.Wait(ctx, patience)
	if outcome.Pending && r.Context().Err() != nil {
		if !stopped(r.Context()) {
			op.GiveUp()
		}
		return waitEnd(r.Context())
	}
	prefer.applied(r.w)
	return s.writeOutcome(r.w, outcome)
}

// readCall reads a call from the body and the headers of a request. The body may also have the
// fields of into.
func (s *Server) readCall(r *request, into fields) (pipeline.Request, error) {
	req := pipeline.Request{Caller: r.caller, IdempotencyKey: r.Header.Get("Idempotency-Key")}
	into["tool"], into["arguments"] = &req.Tool, (*json.RawMessage)(&req.Arguments)
	if err := r.readBody(into); err != nil {
		return pipeline.Request{}, err
	}
	// The calls of a client that names no session form one.
	req.Caller.Session = cmp.Or(req.Caller.Session, req.Caller.Client, "rest")
	switch {
	case req.Tool == "":
		return pipeline.Request{}, badRequest.problem("the body names no tool").
			hint(`send {"tool": "NAME", "arguments": {...}}; GET /v1/tools lists the tools`)
	case len(req.IdempotencyKey) > maxKey:
		return pipeline.Request{}, badRequest.problem("the Idempotency-Key has %d bytes, more than %d",
			len(req.IdempotencyKey), maxKey)
	}
	return req, nil
}

// writeOutcome sends the outcome of a call, or says that the call continues.
func (s *Server) writeOutcome(w http.ResponseWriter, outcome operation.Outcome) error {
	if !outcome.Pending {
		return s.writeResult(w, outcome)
	}
	path := "/v1/calls/" + outcome.ID
	w.Header().Set("Location", path)
	hint := fmt.Sprintf("GET %s?wait=30s returns the result once the call has ended", path)
	if outcome.Result.Error != nil {
		outcome.Result.Error = outcome.Result.Error.WithHint("%s", hint)
	} else {
		outcome.Result.Content = append(outcome.Result.Content, tool.Text("\n"+hint))
	}
	return s.write(w, http.StatusAccepted, outcome)
}

// listCalls answers GET /v1/calls with the running calls.
func (s *Server) listCalls(r *request) (any, error) {
	return list(s.opts.Pipeline.Operations().List(r.caller)), nil
}

// getCall answers GET /v1/calls/{id} with the outcome of a call that is running or whose
// result was not collected. For any other call it answers with the journal's record.
func (s *Server) getCall(r *request) error {
	wait := r.query.wait()
	if err := r.query.err(); err != nil {
		return err
	}
	id := r.PathValue("id")
	op, ok := s.opts.Pipeline.Operations().Find(id, r.caller)
	if !ok {
		return s.writeRecorded(r, id)
	}
	defer op.Release()
	if info := op.Info(); info.User != r.caller.User {
		return s.writeForeign(r, info)
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	outcome := op.Wait(ctx, operation.Forever)
	if outcome.Pending && r.Context().Err() != nil {
		return waitEnd(r.Context())
	}
	return s.writeOutcome(r.w, outcome)
}

// writeForeign answers an admin about a call of another user, without the result.
func (s *Server) writeForeign(r *request, info operation.Info) error {
	if info.State == operation.Done {
		return s.writeRecorded(r, info.ID)
	}
	return s.writeOutcome(r.w, operation.Outcome{
		ID: info.ID, Tool: info.Tool, Approval: info.Approval, Duration: time.Since(info.Started), Pending: true, State: info.State,
		Result: tool.TextResult("the call has not ended yet"),
	})
}

// RecordedCall is the record of a call whose result is gone.
type RecordedCall struct {
	// Status is success, error or rejected; or "unknown" if the host was killed during
	// the call, so that its end was not recorded.
	Status          string         `json:"status"`
	ToolCallID      string         `json:"tool_call_id"`
	ApprovalID      string         `json:"approval_id,omitempty"`
	ExecutionTimeMS int64          `json:"execution_time_ms"`
	Record          journal.Record `json:"record"`
}

// maxLag bounds how long the end of a call may take to appear in the journal, with time
// to spare.
const maxLag = 250 * time.Millisecond

// writeRecorded sends the journal's record of a call of the caller.
func (s *Server) writeRecorded(r *request, id string) error {
	row, err := s.lastRow(r.Context(), id)
	if err != nil {
		return err
	}
	if row.Call != id || !mayRead(r.caller, row.User) || !s.mayUse(r.caller, row.Tool) {
		return notFound.problem("there is no call %q", excerpt.Printable(id, maxShown)).
			hint("GET /v1/calls lists the running calls")
	}
	recorded := RecordedCall{
		Status: row.Status, ToolCallID: row.Call, ApprovalID: row.Approval,
		ExecutionTimeMS: row.Duration.Milliseconds(), Record: row,
	}
	if row.Kind != journal.End {
		recorded.Status = "unknown"
	}
	return s.write(r.w, http.StatusOK, recorded)
}

// lastRow returns the last row about a call, or the zero row. It waits a little for a
// row that is being written.
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

// mayUse reports whether a tool is in the toolsets of a caller, or is the host's own.
func (s *Server) mayUse(caller auth.Caller, name string) bool {
	if caller.MayUse(name) {
		return true
	}
	entry, err := s.opts.Catalog.Lookup(name)
	return err == nil && entry.OfHost()
}

// cancelWait is how long the answer to a cancel waits for the end of the call.
const cancelWait = 5 * time.Second

// cancelCall answers POST /v1/calls/{id}/cancel with the outcome of the call.
func (s *Server) cancelCall(r *request) error {
	if err := r.readBody(fields{}); err != nil {
		return err
	}
	id := r.PathValue("id")
	op, ok := s.opts.Pipeline.Operations().Find(id, r.caller)
	if !ok {
		return notFound.problem("there is no running call %q", excerpt.Printable(id, maxShown)).
			hint("GET /v1/calls lists the running calls")
	}
	defer op.Release()
	op.Cancel()
	if info := op.Info(); info.User != r.caller.User {
		return s.writeForeign(r, info)
	}
	ctx, cancel := context.WithTimeout(r.Context(), cancelWait)
	defer cancel()
	return s.writeOutcome(r.w, op.Wait(ctx, operation.Forever))
}

// explain answers POST /v1/explain with the verdict that the policy would give a call.
func (s *Server) explain(r *request) (any, error) {
	var user, client string
	req, err := s.readCall(r, fields{"user": &user, "client": &client})
	if err != nil {
		return nil, err
	}
	if err := s.callAs(&req.Caller, user, client); err != nil {
		return nil, err
	}
	if _, err := s.lookUp(r.Context(), s.opts.Pipeline.Unwrap(req).Tool, r.caller); err != nil {
		return nil, err
	}
	explained, err := s.opts.Pipeline.Explain(req)
	if err == nil && user != "" && !s.knowsUser(r.Context(), user) {
		explained.Notes = append(explained.Notes, unknownUser(user))
	}
	return explained, err
}

// callAs makes a caller the one of whose call a question is: an agent of the user, by the client.
// "" leaves each as it is. What a call of another user would meet is for those who may see that
// user's calls.
func (s *Server) callAs(caller *auth.Caller, user, client string) error {
	for what, name := range map[string]string{"user": user, "client": client} {
		if len(name) > maxName || excerpt.Printable(name, maxName) != name {
			return badRequest.problem("expected %s to be a name of at most %d printable characters", what, maxName)
		}
	}
	if user != "" && user != caller.User && !caller.MayApprove(user) && !caller.Roles.Has(auth.Admin) {
		return forbidden.problem("the credential may not see calls of the user %q", user).
			hint("use one of an admin, or of an approver of that user")
	}
	if user != "" {
		caller.User, caller.Roles = user, auth.Agent
		// Of another user, only the configured groups are known.
		caller.Groups, caller.Toolsets, caller.Limits = nil, nil, auth.Limits{}
		*caller = s.join(*caller)
	}
	caller.Client = cmp.Or(client, caller.Client)
	return nil
}
