package httpapi

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Approval is a record with the text that an approver reads.
type Approval struct {
	approval.Record

	// Display is the call as an approver sees it, with every character visible. Lists
	// leave it out.
	Display *approval.View `json:"display,omitempty"`
	// MayNotDecide is set if the caller sees the record as an admin only, or has approved it already
	// and it needs another person. Approvers says who may
	// decide then; lists leave it out.
	MayNotDecide bool      `json:"may_not_decide,omitempty"`
	Approvers    Approvers `json:"approvers,omitempty"`
}

// listApprovals answers GET /v1/approvals with records without arguments and previews, newest
// first. If there are none, the parameter wait makes it wait for one.
func (s *Server) listApprovals(r *request) (any, error) {
	q := r.query
	wait := q.wait()
	filter := approval.Filter{By: r.caller, Users: q.list("user"), Limit: int(min(q.number("limit"), 1000))}
	for _, name := range q.list("state") {
		state, err := approval.ParseState(name)
		if err != nil {
			q.fail("%v", err)
		}
		filter.States = append(filter.States, state)
	}
	if len(filter.States) == 0 && wait > 0 { // a caller that waits, waits for an open approval
		filter.States = []approval.State{approval.Open}
	}
	if err := q.err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), wait, errWaited)
	defer cancel()
	changes := s.opts.Events.Subscribe("") // before the list, so that no change is missed
	for {
		records, err := s.opts.Approvals.List(r.Context(), filter)
		if err != nil {
			return nil, err
		}
		if !r.valid() { // revoked during the wait
			return nil, unauthorized.problem("%v", errRevoked)
		}
		if len(records) > 0 || wait == 0 {
			return listed(records, r.caller), nil
		}
		switch err := nextApproval(ctx, changes); {
		case err == nil:
		case errors.Is(err, errWaited):
			return listed(records, r.caller), nil
		default:
			return nil, waitEnd(r.Context())
		}
	}
}

// listed returns records as a list shows them to a caller.
func listed(records []approval.Record, to auth.Caller) []Approval {
	all := make([]Approval, len(records))
	for i, r := range records {
		all[i] = Approval{Record: r, MayNotDecide: !mayDecide(to, r)}
	}
	return all
}

// errWaited ends a wait after its time.
var errWaited = errors.New("the wait is over")

// nextApproval returns when an approval may have changed.
func nextApproval(ctx context.Context, changes *event.Subscription) error {
	for {
		e, err := changes.Next(ctx)
		if err != nil || e.Kind == event.KindToolApproval || e.Kind == event.KindGap {
			return err
		}
	}
}

// getApproval answers GET /v1/approvals/{id} with the whole record and its display.
func (s *Server) getApproval(r *request) (any, error) {
	record, err := s.opts.Approvals.Find(r.Context(), r.PathValue("id"), r.caller)
	if err != nil {
		return nil, err
	}
	view := approval.Show(record)
	whole := Approval{Record: record, Display: &view}
	if !mayDecide(r.caller, record) {
		whole.MayNotDecide = true
		whole.Approvers = slices.DeleteFunc(s.approversOf(record.User), func(a Approver) bool { return a.User != "" && record.ApprovedBy(a.User) })
	}
	return whole, nil
}

// mayDecide reports whether a caller may decide about a record, and has not approved it already.
func mayDecide(by auth.Caller, r approval.Record) bool {
	return by.MayApprove(r.User) && !r.ApprovedBy(by.User)
}

// Approver is a user who may decide, and the name of the token for it. If Issuer is not empty,
// it is instead each user with the role approver of that issuer.
type Approver struct {
	User   string `json:"user,omitempty"`
	Token  string `json:"token,omitempty"`
	Issuer string `json:"issuer,omitempty"`
}

// Approvers is a list of who may decide.
type Approvers []Approver

// String returns the list for a person.
func (all Approvers) String() string {
	var names []string
	for _, a := range all {
		if a.Issuer != "" {
			names = append(names, "another user of the issuer "+a.Issuer+" who is an approver")
			continue
		}
		names = append(names, tool.VisibleName(a.User)+" with the token "+tool.VisibleName(a.Token))
	}
	if len(names) == 0 {
		return "no token allows it"
	}
	return strings.Join(names, ", ")
}

// approversOf returns who may decide about the calls of a user.
func (s *Server) approversOf(user string) (all Approvers) {
	for _, tokens := range []*auth.Tokens{s.opts.Keys, s.opts.Tokens} {
		for _, listed := range tokens.List() {
			if listed.Caller.MayApprove(user) && tokens.Count(listed.Caller) {
				all = append(all, Approver{User: listed.Caller.User, Token: listed.Caller.Token})
			}
		}
	}
	for _, issuer := range s.opts.Issuers.List() {
		if issuer.Has(user) && issuer.Approves() {
			all = append(all, Approver{Issuer: issuer.Name})
		}
	}
	return all
}

// notYours returns the error of a decision by a caller who sees the record as an admin only. It
// says who may decide.
func (s *Server) notYours(record approval.Record) error {
	user := tool.VisibleName(record.User)
	p := forbidden.problem("Approval %s is about a call of %s, about whose calls you may not decide", record.ID, user)
	if who := s.approversOf(record.User); len(who) > 0 {
		return p.hint("who may: %s", excerpt.Of(who.String(), 10*maxShown))
	}
	return p.hint("no token allows it; create one for an approver: %s", s.opts.Command("token new NAME --user USER --role approver --approves "+user))
}

// approve answers POST /v1/approvals/{id}/approve.
func (s *Server) approve(r *request) (any, error) {
	d := approval.Decision{Approve: true}
	return s.decide(r, &d, fields{
		"grant": &grantTerms{&d.Grant}, "message": &d.Message, "arguments_hash": &d.ArgumentsHash, "preview_digest": &d.PreviewDigest,
	})
}

// grantTerms reads the member "grant" of a body.
type grantTerms struct{ into **approval.Terms }

// UnmarshalJSON implements [json.Unmarshaler]. It refuses empty values, which would
// widen the grant.
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
			return badRequest.problem("grant.path is empty, expected a path").hint("leave it out to cover every path")
		}
	}
	if uses != nil {
		if terms.Uses = *uses; terms.Uses <= 0 {
			return badRequest.problem("grant.uses is %d, expected at least 1", terms.Uses).hint("leave it out for no bound")
		}
	}
	if lasts != nil {
		if terms.For, err = time.ParseDuration(*lasts); err != nil || terms.For <= 0 {
			return badRequest.problem("grant.for is %q, expected a duration such as \"30m\" or \"8h\"", excerpt.Printable(*lasts, maxShown))
		}
	}
	*g.into = &terms
	return nil
}

// reject answers POST /v1/approvals/{id}/reject.
func (s *Server) reject(r *request) (any, error) {
	d := approval.Decision{}
	return s.decide(r, &d, fields{
		"message": &d.Message, "arguments_hash": &d.ArgumentsHash, "preview_digest": &d.PreviewDigest,
	})
}

// decide reads the rest of a decision, carries it out, and returns the new record.
func (s *Server) decide(r *request, d *approval.Decision, into fields) (any, error) {
	if err := r.readBody(into); err != nil {
		return nil, err
	}
	d.ID, d.By, d.Via = r.PathValue("id"), r.caller, r.via
	decided, err := s.opts.Approvals.Decide(r.Context(), *d)
	if err != nil && tool.AsError(err).Code == tool.NotFound {
		if record, findErr := s.opts.Approvals.Find(r.Context(), d.ID, r.caller); findErr == nil {
			return nil, s.notYours(record)
		}
	}
	return decided, err
}

// listGrants answers GET /v1/grants, newest first. The parameter all includes grants
// that have ended.
func (s *Server) listGrants(r *request) (any, error) {
	text := r.query.text("all")
	all, err := strconv.ParseBool(text)
	if err != nil && text != "" {
		return nil, badRequest.problem("all is %q, expected true or false", excerpt.Printable(text, maxShown))
	}
	s.awaitTools(r.Context()) // the tools decide which grants are paused
	grants, err := s.opts.Grants.List(r.Context(), r.caller, all)
	return list(grants), err
}

// revokeGrant answers DELETE /v1/grants/{id} with the revoked grant.
func (s *Server) revokeGrant(r *request) (any, error) {
	if err := r.readBody(fields{}); err != nil {
		return nil, err
	}
	return s.opts.Grants.Revoke(r.Context(), r.PathValue("id"), r.caller)
}

// confirmGrant answers POST /v1/grants/{id}/confirm with the resumed grant.
func (s *Server) confirmGrant(r *request) (any, error) {
	var basis string
	if err := r.readBody(fields{"basis": &basis}); err != nil {
		return nil, err
	}
	s.awaitTools(r.Context())
	return s.opts.Grants.Confirm(r.Context(), r.PathValue("id"), basis, r.caller)
}
