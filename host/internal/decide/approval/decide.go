package approval

import (
	"cmp"
	"context"
	"database/sql"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxMessage bounds the characters of an approver's message.
const maxMessage = 2000

// Decision is a person's answer.
type Decision struct {
	// ID is the id of the record.
	ID string
	// By is the person who decides, from the credential.
	By auth.Caller
	// Approve lets the call run; false rejects it.
	Approve bool
	// Grant also approves later calls of the user; nil approves only this one.
	Grant *Terms
	// Message is for the caller, at most 2,000 characters.
	Message string
	// Via is the channel of the answer, e.g. "cli".
	Via string
	// ArgumentsHash and PreviewDigest are fields of the record that the approver saw;
	// PreviewDigest is "" if it has no preview. A decision with other values is refused.
	ArgumentsHash, PreviewDigest string
}

// Decide writes a decision and returns the changed record, without its arguments and
// preview. A record that several people must approve stays open until the last of them has; the first
// rejection rejects it. Otherwise the first decision wins. If the record is no longer open, Decide returns it
// with a [tool.Conflict] that names who decided, how and when. If the caller
// may not decide the record, the error is [tool.NotFound], as if the record did not exist.
// A caller that may call tools always gets [tool.PermissionDenied].
func (s *Service) Decide(ctx context.Context, dec Decision) (Record, error) {
	if err := dec.check(); err != nil {
		return Record{}, err
	}
	r, err := s.read(ctx, dec.ID, true) // with content: a record that cannot be shown must not be approved
	if err != nil {
		return Record{}, err
	}
	if err := dec.fits(r); err != nil {
		return Record{}, err
	}
	l := s.find(r.ID)
	if l == nil {
		return s.tooLate(ctx, r.ID)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.expired(l) {
		if err := s.end(ctx, Expired, "timeout", l); err != nil {
			return Record{}, unwritten(ctx, err, "Approval %s has expired, which could not be recorded", r.ID)
		}
		return s.tooLate(ctx, r.ID)
	}
	return s.writeDecision(ctx, l, r, dec)
}

// writeDecision writes the decision unless there is one already. The caller holds l.mu.
func (s *Service) writeDecision(ctx context.Context, l *live, r Record, dec Decision) (Record, error) {
	now := s.now().UnixMilli()
	closed := int64(0)
	r.State, r.DecidedBy, r.Via, r.Message, r.Decided = Approved, dec.By.User, dec.Via, dec.Message, timeOf(now)
	if !dec.Approve {
		r.State, closed = Rejected, now
	}
	if dec.Approve && r.needed() > 1 {
		if open, err := s.give(ctx, l, &r); open || err != nil {
			return r.unlessFailed(err)
		}
	}
	assents := "" // a rejection keeps those on disk
	if dec.Approve {
		var err error
		if assents, err = assentsText(r.Assents); err != nil {
			return Record{}, err
		}
	}
	var grants []Grant
	if dec.Grant != nil {
		var err error
		if grants, err = dec.Grant.grants(&r); err != nil {
			return Record{}, err
		}
		s.grants.writing.Lock() // until they are in force: they must not be revoked before
		defer s.grants.writing.Unlock()
	}
	var won bool
	err := s.store.Do(ctx, func(tx *sql.Tx) error {
		var err error
		won, err = execOne(ctx, tx, `UPDATE approvals SET state = ?, decided_by = ?, via = ?, message = ?, decided = ?, closed = ?, unheard = ?, assents = coalesce(nullif(?, ''), assents)
			WHERE id = ? AND state = 'open'`, r.State, r.DecidedBy, r.Via, r.Message, now, closed, !dec.Approve && !s.claimed(l), assents, r.ID)
		if err != nil || !won || len(grants) == 0 {
			return err
		}
		return s.grants.insert(ctx, tx, grants)
	})
	if err != nil {
		return Record{}, unwritten(ctx, err, "The decision about approval %s could not be recorded, so it does not count", r.ID)
	}
	if !won {
		return s.tooLate(ctx, r.ID)
	}
	s.grants.put(grants)
	s.publish(l, r)
	r.Grants = grants
	return r, nil
}

// tooLate returns the record and the error for a decision about a closed record.
func (s *Service) tooLate(ctx context.Context, id string) (Record, error) {
	r, err := s.read(ctx, id, false)
	if err != nil {
		return Record{}, err
	}
	if r.State == Open { // a write failed halfway; nothing waits for it
		return r, tool.Errorf(tool.Conflict, "Approval %s cannot be decided any more", id)
	}
	refusal := r.Refusal()
	refusal.Code = tool.Conflict
	return r, refusal
}

// check refuses decisions that are not valid for any record.
func (dec *Decision) check() error {
	switch {
	case dec.By.Roles.Has(auth.Agent) || !dec.By.Roles.Has(auth.Approver):
		return tool.Errorf(tool.PermissionDenied, "Only an approver decides about calls").
			WithHint("use a credential with the role approver, which no agent has")
	case utf8.RuneCountInString(dec.Message) > maxMessage:
		return tool.Errorf(tool.InvalidArgument, "The message has more than %d characters", maxMessage)
	case dec.Grant != nil && !dec.Approve:
		return tool.Errorf(tool.InvalidArgument, "A rejection cannot give a grant").WithHint("to reject later calls, too, ask an admin for a rule with the verdict deny")
	case len(dec.Via) > maxName || len(dec.By.User) > maxName:
		return tool.Errorf(tool.InvalidArgument, "The name of the approver or of the channel is longer than %d bytes", maxName)
	}
	dec.Message = strings.ToValidUTF8(dec.Message, "\uFFFD")
	return nil
}

// fits refuses a decision by the wrong person, or by one who saw something other than the
// record.
func (dec *Decision) fits(r Record) error {
	switch {
	case !dec.By.MayApprove(r.User):
		return unknown(dec.ID)
	case dec.ArgumentsHash == "":
		return unsaid(r.ID, "arguments_hash")
	case dec.PreviewDigest == "" && r.PreviewDigest != "":
		return unsaid(r.ID, "preview_digest")
	case dec.ArgumentsHash != r.ArgumentsHash, dec.PreviewDigest != r.PreviewDigest:
		return tool.Errorf(tool.Conflict, "Approval %s differs from what was shown", r.ID).WithHint("show it again, then decide")
	case dec.Grant != nil && !r.Standing:
		return tool.Errorf(tool.PermissionDenied, "Approval %s cannot be answered with a grant", r.ID).
			WithHint("approve it once: %s", cmp.Or(r.NoGrant, "the policy wants a person to see each such call"))
	}
	return nil
}

// unsaid returns the error of a decision without a digest of what the approver saw.
func unsaid(id, missing string) error {
	return tool.Errorf(tool.InvalidArgument, "The decision about approval %s lacks its %s, so it does not count", id, missing).
		WithHint("show the approval, then send the arguments_hash and the preview_digest that it has with the decision")
}

// Spend uses an approved record for the call with the given id. Only one Spend of a
// record ever succeeds, even across restarts of the host. binding is
// [Question.Binding] of the call that is about to run. Spend refuses the binding of
// another call, and a record that is not approved or has expired; the error says
// which.
func (s *Service) Spend(ctx context.Context, id, call, binding string) error {
	r, err := s.read(ctx, id, false)
	if err != nil {
		return err
	}
	if r.binding() != binding {
		return tool.Errorf(tool.PermissionDenied, "Approval %s is for another call", r.ID).
			WithHint("an approval is bound to the caller, the tool, its program, the arguments, the preview and the sensitive files; ask again")
	}
	l := s.find(id)
	if l == nil {
		return s.unspent(ctx, id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.expired(l) {
		if err := s.end(ctx, Expired, "timeout", l); err != nil {
			return unwritten(ctx, err, "Approval %s has expired, which could not be recorded", id)
		}
		return s.unspent(ctx, id)
	}
	now := s.now().UnixMilli()
	var won bool
	err = s.store.Do(ctx, func(tx *sql.Tx) error {
		var err error
		won, err = execOne(ctx, tx, `UPDATE approvals SET state = 'spent', spent_by = ?, closed = ?
			WHERE id = ? AND state = 'approved' AND binding = ?`, call, now, id, binding)
		return err
	})
	if err != nil {
		return unwritten(ctx, err, "The use of approval %s could not be recorded, so the call does not run", id)
	}
	if !won {
		return s.unspent(ctx, id)
	}
	// Read again: someone may have approved it after the first read.
	if r, err = s.read(ctx, id, false); err != nil {
		s.logger.Error("an approval that was used cannot be read", "approval", id, "error", err)
		r = Record{ID: id, User: l.user, State: Spent, SpentBy: call}
	}
	s.publish(l, r)
	return nil
}

// unspent returns the error of a record that cannot be spent.
func (s *Service) unspent(ctx context.Context, id string) error {
	r, err := s.read(ctx, id, false)
	if err != nil {
		return err
	}
	if r.State == Approved { // writing it failed halfway
		return tool.Errorf(tool.Conflict, "Approval %s cannot be used any more", id)
	}
	return r.Refusal()
}
