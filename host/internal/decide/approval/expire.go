package approval

import (
	"context"
	"database/sql"
	"slices"
	"time"
)

const (
	// maxBatch bounds the records that are closed or removed in one write.
	maxBatch = 100
	// wallCheck is how often the wall clock is read while a record is open, since it
	// may jump.
	wallCheck = 30 * time.Second
	// retryAfter is the pause after a write that failed.
	retryAfter = time.Second
	// pruneEvery is how often closed records are removed.
	pruneEvery = time.Hour
	// pruneCount and pruneBytes are the number and size of newly closed records after
	// which old ones are removed earlier.
	pruneCount = 200
	pruneBytes = 64 << 20
	// keepClosed is how long a closed record is kept at most.
	keepClosed = 24 * time.Hour
	// maxClosed and maxClosedBytes bound the closed records that are kept.
	maxClosed      = 1000
	maxClosedBytes = 256 << 20
)

// tend closes the records whose time has passed and removes old ones, until ctx ends.
func (s *Service) tend(ctx context.Context) {
	defer close(s.stopped)
	pruned := s.elapsed() - pruneEvery // at once
	for ctx.Err() == nil {
		due := s.due()
		err := s.expire(ctx, due)
		if err == nil && (s.elapsed()-pruned >= pruneEvery || s.muchClosed()) {
			if err = s.prune(ctx); err == nil {
				pruned = s.elapsed()
			}
		}
		pause := min(s.untilNext(), pruned+pruneEvery-s.elapsed())
		if err != nil && ctx.Err() == nil {
			s.logger.Error("old approvals cannot be closed", "error", err)
			pause = retryAfter
		}
		select {
		case <-ctx.Done():
		case <-s.rouse:
		case <-time.After(max(0, pause)):
		}
	}
}

// hurry wakes tend early.
func (s *Service) hurry() {
	select {
	case s.rouse <- struct{}{}:
	default:
	}
}

// due returns at most [maxBatch] of the records whose time has passed.
func (s *Service) due() []*live {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []*live
	for _, l := range s.live {
		if s.expired(l) {
			due = append(due, l)
		}
		if len(due) == maxBatch {
			break
		}
	}
	return due
}

// muchClosed reports whether many records were closed, and resets the count.
func (s *Service) muchClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closedCount < pruneCount && s.closedBytes < pruneBytes {
		return false
	}
	s.closedCount, s.closedBytes = 0, 0
	return true
}

// untilNext returns the time until the next record expires.
func (s *Service) untilNext() time.Duration {
	now, elapsed := s.now(), s.elapsed()
	pause := pruneEvery
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) > 0 {
		pause = wallCheck
	}
	for _, l := range s.live {
		pause = min(pause, l.expires.Sub(now), l.deadline-elapsed)
	}
	return pause
}

// expire closes records whose time has passed. If that cannot be written, it ends the
// waits for them with an error.
func (s *Service) expire(ctx context.Context, due []*live) error {
	if len(due) == 0 {
		return nil
	}
	inOrder(due)
	for _, l := range due {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	err := s.end(ctx, Expired, "timeout", due...)
	if err == nil || ctx.Err() != nil {
		return err
	}
	failure := unwritten(ctx, err, "The approval has expired, which could not be recorded")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range due {
		if !l.woken {
			l.failure = failure
			l.wake()
		}
	}
	return err
}

// end closes records that are open or approved in one write, and publishes the change.
// The caller holds their locks.
func (s *Service) end(ctx context.Context, state State, via string, records ...*live) error {
	now := s.now().UnixMilli()
	var ended []*live
	err := s.store.Do(ctx, func(tx *sql.Tx) error {
		ended = ended[:0]
		for _, l := range records {
			won, err := execOne(ctx, tx, `UPDATE approvals SET closed = ?1,
				via = CASE state WHEN 'open' THEN ?2 ELSE via END,
				decided = CASE state WHEN 'open' THEN ?1 ELSE decided END,
				state = ?3 WHERE id = ?4 AND state IN ('open', 'approved')`, now, via, state, l.id)
			if err != nil {
				return err
			}
			if won {
				ended = append(ended, l)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range records {
		if !slices.Contains(ended, l) {
			s.drop(l) // it has ended, or an earlier write only seemed to fail
			continue
		}
		r, err := s.read(ctx, l.id, false)
		if err != nil {
			s.logger.Error("an approval that ended cannot be read", "approval", l.id, "state", state, "error", err)
			r = Record{ID: l.id, User: l.user, State: state, Via: via, Decided: timeOf(now)}
		}
		s.publish(l, r)
	}
	return nil
}

// prune removes closed records that are old or too many, in small steps. The journal
// keeps their outcome.
func (s *Service) prune(ctx context.Context) error {
	for {
		var removed int64
		err := s.store.Do(ctx, func(tx *sql.Tx) error {
			result, err := tx.ExecContext(ctx, `DELETE FROM approvals WHERE id IN (
				SELECT id FROM (
					SELECT id, closed, row_number() OVER newest AS n, sum(octet_length(content)) OVER newest AS bytes
					FROM approvals WHERE closed > 0 WINDOW newest AS (ORDER BY closed DESC, id DESC)
				) WHERE closed < ? OR n > ? OR bytes > ? ORDER BY closed LIMIT ?)`,
				s.now().Add(-keepClosed).UnixMilli(), maxClosed, maxClosedBytes, maxBatch)
			if err != nil {
				return err
			}
			removed, err = result.RowsAffected()
			return err
		})
		if err != nil || removed < maxBatch {
			return err
		}
	}
}
