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

// Decision is what a person answers.
type Decision struct {
	// ID is the record's.
	ID string
	// By is who decides, by their credential.
	By auth.Caller
	// Approve lets the call run; otherwise it is rejected.
	Approve bool
	// Grant also approves later calls of this user; nil approves just this one.
	Grant *Terms
	// Message is for the caller, at most 2,000 characters.
	Message string
	// Via is the channel through which the answer came, e.g. "cli".
	Via string
	// ArgumentsHash and PreviewDigest are those of the record that the approver
	// saw, PreviewDigest "" if it has no preview. A decision without them, or with
	// others, is refused.
	ArgumentsHash, PreviewDigest string
}

// Decide writes a decision and returns the record as it then is, without its
// arguments and preview. The first decision wins. If the record is no longer
// open, Decide returns it with a [tool.Conflict] that says who decided, how and
// when. A record that the caller may not decide is [tool.NotFound], as one that
// does not exist; a caller that may call tools gets [tool.PermissionDenied]
// whatever else it may.
func (s *Service) Decide(ctx context.Context, dec Decision) (Record, error) {
	if err := dec.check(); err != nil {
		return Record{}, err
	}
	r, err := s.read(ctx, dec.ID, true) // whole: what cannot be shown must not be approved
	if err != nil {
		return Record{}, err
	}
	if err := dec.fits(r); err != nil {
		return Record{}, err
	}
	l := s.find(r.ID)
	if l == nil {
		return s.late(ctx, r.ID)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.expired(l) {
		if err := s.end(ctx, Expired, "timeout", l); err != nil {
			return Record{}, unwritten(ctx, err, "Approval %s has expired, which could not be recorded", r.ID)
		}
		return s.late(ctx, r.ID)
	}
	return s.writeDecision(ctx, l, r, dec)
}

// writeDecision writes the decision unless there is one. The caller holds l.mu.
func (s *Service) writeDecision(ctx context.Context, l *live, r Record, dec Decision) (Record, error) {
	now := s.now().UnixMilli()
	closed := int64(0)
	r.State, r.DecidedBy, r.Via, r.Message, r.Decided = Approved, dec.By.User, dec.Via, dec.Message, timeOf(now)
	if !dec.Approve {
		r.State, closed = Rejected, now
	}
	var grants []Grant
	if dec.Grant != nil {
		var err error
		if grants, err = dec.Grant.grants(&r); err != nil {
			return Record{}, err
		}
		s.grants.writing.Lock() // until they are in force, so that nobody revokes them before
		defer s.grants.writing.Unlock()
	}
	var won bool
	err := s.store.Do(ctx, func(tx *sql.Tx) error {
		var err error
		won, err = execOne(ctx, tx, `UPDATE approvals SET state = ?, decided_by = ?, via = ?, message = ?, decided = ?, closed = ?
			WHERE id = ? AND state = 'open'`, r.State, r.DecidedBy, r.Via, r.Message, now, closed, r.ID)
		if err != nil || !won || len(grants) == 0 {
			return err
		}
		return s.grants.insert(ctx, tx, grants)
	})
	if err != nil {
		return Record{}, unwritten(ctx, err, "The decision about approval %s could not be recorded, so it does not count", r.ID)
	}
	if !won {
		return s.late(ctx, r.ID)
	}
	s.grants.put(grants)
	s.publish(l, r)
	r.Grants = grants
	return r, nil
}

// late returns the record, and the error of a decision that came too late.
func (s *Service) late(ctx context.Context, id string) (Record, error) {
	r, err := s.read(ctx, id, false)
	if err != nil {
		return Record{}, err
	}
	if r.State == Open { // its writing failed half-way; nobody waits for it
		return r, tool.Errorf(tool.Conflict, "Approval %s cannot be decided any more", id)
	}
	refusal := r.Refusal()
	refusal.Code = tool.Conflict
	return r, refusal
}

// check refuses what no record allows.
func (dec *Decision) check() error {
	switch {
	case dec.By.Roles.Has(auth.Agent) || !dec.By.Roles.Has(auth.Approver):
		return tool.Errorf(tool.PermissionDenied, "Only an approver decides about calls").
			WithHint("use a credential with the role approver, which no agent has")
	case utf8.RuneCountInString(dec.Message) > maxMessage:
		return tool.Errorf(tool.InvalidArgument, "The message has more than %d characters", maxMessage)
	case dec.Grant != nil && !dec.Approve:
		return tool.Errorf(tool.InvalidArgument, "A grant stands beside a rejection").WithHint("there is no standing rejection: ask an admin for a rule that denies")
	case len(dec.Via) > maxName || len(dec.By.User) > maxName:
		return tool.Errorf(tool.InvalidArgument, "The name of the approver or of the channel is longer than %d bytes", maxName)
	}
	dec.Message = strings.ToValidUTF8(dec.Message, "\uFFFD")
	return nil
}

// fits refuses a decision by the wrong person, or about something else than
// the record.
func (dec *Decision) fits(r Record) error {
	switch {
	case !dec.By.MayApprove(r.User):
		return unknown(dec.ID)
	case dec.ArgumentsHash == "":
		return unsaid(r.ID, "arguments_hash")
	case dec.PreviewDigest == "" && r.PreviewDigest != "":
		return unsaid(r.ID, "preview_digest")
	case dec.ArgumentsHash != r.ArgumentsHash, dec.PreviewDigest != r.PreviewDigest:
		return tool.Errorf(tool.Conflict, "Approval %s is not about what was shown", r.ID).WithHint("show it again, then decide")
	case dec.Grant != nil && !r.Standing:
		return tool.Errorf(tool.PermissionDenied, "Approval %s cannot be answered with a grant", r.ID).
			WithHint("approve it once: %s", cmp.Or(r.NoGrant, "the policy wants a person to see each such call"))
	}
	return nil
}

// unsaid is the error of a decision that does not say what the approver saw.
func unsaid(id, missing string) error {
	return tool.Errorf(tool.InvalidArgument, "The decision about approval %s lacks its %s, so it does not count", id, missing).
		WithHint("show the approval, then send the arguments_hash and the preview_digest that it has with the decision")
}
