package approval

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
)

// ViaStop is the channel of the rejections by a stop of an admin.
const ViaStop = "stop"

// Rejection is the answer to records that no person looked at.
type Rejection struct {
	// By is the user who ordered it, Via the channel, and Message is for the callers.
	By, Via, Message string
}

// RejectAll rejects the records that are open, or approved and not used yet, of the users and
// plugins that covers selects, and returns their number. The next call like one of them is asked
// about again: it is not told of the rejection.
func (s *Service) RejectAll(ctx context.Context, r Rejection, covers func(user, plugin string) bool) (rejected int, err error) {
	records, err := s.readAll(ctx, "WHERE state IN ('open', 'approved')", nil)
	if err != nil {
		return 0, err
	}
	var all []*live
	for _, record := range records {
		if l := s.find(record.ID); l != nil && covers(record.User, record.Plugin) {
			all = append(all, l)
		}
	}
	inOrder(all)
	for batch := range slices.Chunk(all, maxBatch) {
		n, err := s.rejectBatch(ctx, r, batch)
		if rejected += n; err != nil {
			return rejected, unwritten(ctx, err, "The rejection of approvals could not be recorded")
		}
	}
	return rejected, nil
}

// rejectBatch rejects records, which are in order, in one write.
func (s *Service) rejectBatch(ctx context.Context, r Rejection, batch []*live) (int, error) {
	for _, l := range batch {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	now := s.now().UnixMilli()
	var won []*live
	err := s.store.Do(ctx, func(tx *sql.Tx) error {
		won = won[:0]
		for _, l := range batch {
			ok, err := execOne(ctx, tx, `UPDATE approvals SET state = 'rejected', decided_by = ?, via = ?, message = ?, decided = ?, closed = ?, unheard = 0
				WHERE id = ? AND state IN ('open', 'approved')`, r.By, r.Via, r.Message, now, now, l.id)
			if err != nil {
				return err
			}
			if ok {
				won = append(won, l)
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, l := range won {
		record, err := s.read(ctx, l.id, false)
		if err != nil {
			s.logger.Error("an approval that was rejected cannot be read", "approval", l.id, "error", err)
			record = Record{ID: l.id, User: l.user, State: Rejected, DecidedBy: r.By, Via: r.Via, Message: r.Message, Decided: timeOf(now)}
		}
		s.publish(l, record)
	}
	return len(won), nil
}

// inOrder sorts records in the order in which whoever locks several of them must do it.
func inOrder(records []*live) {
	slices.SortFunc(records, func(a, b *live) int { return cmp.Compare(a.id, b.id) })
}
