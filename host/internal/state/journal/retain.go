package journal

import (
	"context"
	"crypto/hmac"
	"database/sql"
	"fmt"
	"time"
)

const (
	// retainRows bounds the rows that one step of retention removes.
	retainRows = 1000
	// slack is the part of MaxSize that retention frees at once when it is
	// reached: one in sixteen.
	slack = 16
)

// retain removes the oldest rows while they are older than Keep or the journal
// is larger than MaxSize, at most retainRows of them, and reports whether there
// may be more. A start without an end and all after it stay, and so does the
// last row. The head then says after which row the journal begins. A row that
// was changed stays too, with all after it: retention must not
// remove the traces of a change.
func (j *Journal) retain(ctx context.Context) (more bool) {
	if time.Now().Before(j.retainFrom) {
		return false
	}
	size := int64(j.opts.MaxSize)
	tooLarge := size > 0 && j.head.Bytes > size
	cutoff := j.opts.Now().Add(-j.opts.Keep)
	tooOld := j.opts.Keep > 0 && j.oldestTime(ctx).Before(cutoff)
	if !tooLarge && !tooOld {
		return false
	}
	last := min(j.head.Seq-1, j.head.AnchorSeq+retainRows)
	if j.head.OpenFrom > 0 {
		last = min(last, j.head.OpenFrom-1)
	}
	next, mac := j.head, j.headMAC
	j.opts.step("remove rows")
	err := j.opts.Store.Do(ctx, func(tx *sql.Tx) error {
		next, mac = j.head, j.headMAC
		rows, err := tx.QueryContext(ctx, "SELECT seq, call, body, hash, mac FROM journal WHERE seq > ? AND seq <= ? ORDER BY seq", next.AnchorSeq, last)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var s stored
			var mac []byte
			if err := s.scan(rows, &mac); err != nil {
				return err
			}
			if !j.follows(&next, &s, mac) {
				return fmt.Errorf("row %d or one before it was changed; look with toolhost journal verify", s.seq)
			}
			t, err := bodyTime(s.body)
			if old := j.opts.Keep > 0 && err == nil && t.Before(cutoff); !old && (!tooLarge || next.Bytes <= size-size/slack) {
				break
			}
			next.AnchorSeq, next.AnchorHash = s.seq, s.hash
			next.Bytes -= rowSize(s.call, s.body)
		}
		if err := rows.Close(); err != nil {
			return err
		}
		if next.AnchorSeq == j.head.AnchorSeq {
			return nil
		}
		var body string
		if body, mac, err = next.seal(j.chain); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM journal WHERE seq <= ?", next.AnchorSeq); err != nil {
			return err
		}
		return j.replaceHead(ctx, tx, body, mac)
	})
	if err != nil {
		j.logger.Error("old rows of the journal stay for now", "error", err)
		j.retainFrom = time.Now().Add(retainEvery)
		return false
	}
	j.oldest, j.headMAC = time.Time{}, mac
	removed := next.AnchorSeq - j.head.AnchorSeq
	j.mu.Lock()
	defer j.mu.Unlock()
	j.head = next
	return removed == retainRows
}

// follows reports whether a row is unchanged, and the first after
// the anchor of h.
func (j *Journal) follows(h *head, s *stored, mac []byte) bool {
	content := j.chain.content(s.seq, s.call, s.body)
	return s.seq == h.AnchorSeq+1 && s.hash == j.chain.link(h.AnchorHash, content) &&
		hmac.Equal(mac, j.chain.rowMAC(content, s.hash))
}

// oldestTime returns the time of the oldest row; the present if there is none.
func (j *Journal) oldestTime(ctx context.Context) time.Time {
	if j.oldest.IsZero() {
		var body string
		query := "SELECT body FROM journal ORDER BY seq LIMIT 1"
		if err := j.opts.Store.Read().QueryRowContext(ctx, query).Scan(&body); err != nil {
			return j.opts.Now()
		}
		t, err := bodyTime(body)
		if err != nil {
			return j.opts.Now()
		}
		j.oldest = t
	}
	return j.oldest
}
