package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/internal/excerpt"
)

// Approval is a record with what an approver reads about it.
type Approval struct {
	approval.Record

	// Display is what is shown of the call, every character of it visible. A
	// list has none.
	Display *approval.View `json:"display,omitempty"`
}

// listApprovals answers GET /v1/approvals: records without their arguments and
// previews, the newest first. With wait, and if there is none, it waits for
// one.
func (s *Server) listApprovals(w http.ResponseWriter, r *request) error {
	q := readQuery(r.Request, "state", "user", "limit", "wait")
	wait := q.wait()
	filter := approval.Filter{By: r.caller, Users: q.list("user"), Limit: int(min(q.number("limit"), 1000))}
	for _, name := range q.list("state") {
		state, err := approval.ParseState(name)
		if err != nil {
			q.fail("%v", err)
		}
		filter.States = append(filter.States, state)
	}
	if len(filter.States) == 0 && wait > 0 { // who waits, waits for something to decide
		filter.States = []approval.State{approval.Open}
	}
	if err := q.err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), wait, errWaited)
	defer cancel()
	changes := s.opts.Events.Subscribe("") // before the list, so that none is missed
	for {
		records, err := s.opts.Approvals.List(r.Context(), filter)
		if err != nil {
			return err
		}
		if !r.valid() { // revoked while it waited
			return unauthorized().problem("the token does not count any more")
		}
		if len(records) > 0 || wait == 0 {
			return s.write(w, http.StatusOK, list(records))
		}
		switch err := nextApproval(ctx, changes); {
		case err == nil:
		case errors.Is(err, errWaited):
			return s.write(w, http.StatusOK, list(records))
		default:
			return waitEnd(r.Context())
		}
	}
}

// errWaited ends a wait whose time is over.
var errWaited = errors.New("waited long enough")

// nextApproval returns when an approval may have changed.
func nextApproval(ctx context.Context, changes *event.Subscription) error {
	for {
		e, err := changes.Next(ctx)
		if err != nil || e.Kind == event.KindToolApproval || e.Kind == event.KindGap {
			return err
		}
	}
}

// getApproval answers GET /v1/approvals/{id}: the whole record, and how to show
// it.
func (s *Server) getApproval(w http.ResponseWriter, r *request) error {
	if err := readQuery(r.Request).err(); err != nil {
		return err
	}
	record, err := s.opts.Approvals.Find(r.Context(), r.PathValue("id"), r.caller)
	if err != nil {
		return err
	}
	view := approval.Show(record)
	return s.write(w, http.StatusOK, Approval{Record: record, Display: &view})
}

// approve answers POST /v1/approvals/{id}/approve.
func (s *Server) approve(w http.ResponseWriter, r *request) error {
	d := approval.Decision{Approve: true}
	return s.decide(w, r, &d, fields{
		"grant": &grantTerms{&d.Grant}, "message": &d.Message, "arguments_hash": &d.ArgumentsHash, "preview_digest": &d.PreviewDigest,
	})
}

// grantTerms reads the member "grant" of a body.
type grantTerms struct{ into **approval.Terms }

// UnmarshalJSON implements [json.Unmarshaler]. What is there but says nothing is refused:
// it would widen the grant.
func (g *grantTerms) UnmarshalJSON(text []byte) error {
	var terms approval.Terms
	var path, lasts *string
	var uses *int64
	err := readJSON(text, fields{
		"plugin": &terms.Plugin, "path": &path, "commands": &terms.Commands, "session": &terms.Session, "for": &lasts, "uses": &uses,
	})
	if err != nil {
		return err
	}
	if path != nil {
		if terms.Path = *path; terms.Path == "" {
			return badRequest().problem("grant.path is empty, expected a path").hint("leave it out to cover every path")
		}
	}
	if uses != nil {
		if terms.Uses = *uses; terms.Uses <= 0 {
			return badRequest().problem("grant.uses is %d, expected at least 1", terms.Uses).hint("leave it out for no bound")
		}
	}
	if lasts != nil {
		if terms.For, err = time.ParseDuration(*lasts); err != nil || terms.For <= 0 {
			return badRequest().problem("grant.for is %q, expected a duration such as \"30m\" or \"8h\"", excerpt.Printable(*lasts, maxShown))
		}
	}
	*g.into = &terms
	return nil
}

// reject answers POST /v1/approvals/{id}/reject.
func (s *Server) reject(w http.ResponseWriter, r *request) error {
	d := approval.Decision{}
	return s.decide(w, r, &d, fields{
		"message": &d.Message, "arguments_hash": &d.ArgumentsHash, "preview_digest": &d.PreviewDigest,
	})
}

// decide reads the rest of a decision, has it written, and answers with the
// record as it is then.
func (s *Server) decide(w http.ResponseWriter, r *request, d *approval.Decision, into fields) error {
	if err := readQuery(r.Request).err(); err != nil {
		return err
	}
	if err := readBody(w, r.Request, into); err != nil {
		return err
	}
	d.ID, d.By, d.Via = r.PathValue("id"), r.caller, "rest"
	if r.local {
		d.Via = "cli"
	}
	record, err := s.opts.Approvals.Decide(r.Context(), *d)
	if err != nil {
		return err
	}
	return s.write(w, http.StatusOK, record)
}
