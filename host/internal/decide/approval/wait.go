package approval

import (
	"context"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Wait returns the record, without its arguments and preview, once it is no longer
// open. If ctx ends first, the error is ctx's cause, and the record stays open. If
// the record has expired and that could not be written, the error tells so.
func (s *Service) Wait(ctx context.Context, id string) (Record, error) {
	l := s.find(id)
	if l == nil {
		r, err := s.read(ctx, id, false)
		if err == nil && r.State == Open {
			_, err = s.tooLate(ctx, id)
		}
		return r, err
	}
	select {
	case <-l.answered:
	case <-s.closing:
		return Record{}, errClosed
	case <-ctx.Done():
		return Record{}, context.Cause(ctx)
	}
	s.mu.Lock()
	err := l.failure
	s.mu.Unlock()
	if err != nil {
		return Record{}, err
	}
	return s.read(ctx, id, false)
}

// Get returns a record to any caller; see [Service.Find].
func (s *Service) Get(ctx context.Context, id string) (Record, error) { return s.read(ctx, id, true) }

// OfCall returns the latest record about a user's call, without its arguments and
// preview. If there is none, the error is [tool.NotFound].
func (s *Service) OfCall(ctx context.Context, user, call string) (Record, error) {
	const which = `WHERE user = ? AND CASE WHEN json_valid(question) THEN json_extract(question, '$.call') END = ?
		ORDER BY id DESC LIMIT 1` // a damaged row must not hide the others
	records, err := s.readAll(ctx, which, []any{user, call})
	if err != nil {
		return Record{}, err
	}
	if len(records) == 0 {
		return Record{}, tool.Errorf(tool.NotFound, "No approval was asked for call %s", tool.VisibleName(excerpt.Of(call, maxName)))
	}
	return records[0], nil
}

// Find returns a record that the caller may see as an approver or an admin. For any
// other record the error is [tool.NotFound], as for one that does not exist.
func (s *Service) Find(ctx context.Context, id string, by auth.Caller) (Record, error) {
	r, err := s.read(ctx, id, false)
	if err == nil && !r.VisibleTo(by) {
		err = unknown(id)
	}
	if err != nil {
		return Record{}, err
	}
	return s.read(ctx, id, true)
}
