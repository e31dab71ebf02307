package approval

import (
	"context"
	"database/sql"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Spend uses an approved record for the call with the given id. Only one Spend of a
// record ever succeeds, also across restarts of the host. binding is
// [Question.Binding] of the call that is about to run. Spend refuses the binding of
// another call, and a record that is not approved or has expired; the error tells
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
	// Read again: it may have been approved after the first reading.
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
	if r.State == Approved { // its writing failed half-way
		return tool.Errorf(tool.Conflict, "Approval %s cannot be used any more", id)
	}
	return r.Refusal()
}
