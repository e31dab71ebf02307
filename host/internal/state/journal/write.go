package journal

import (
	"context"
	"crypto/hmac"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/state/store"
)

const (
	// maxBatch limits the rows of one commit.
	maxBatch = 1024
	// retryEvery is the interval of attempts to write rows that could not be written, if no other
	// rows come.
	retryEvery = time.Second
	// retainEvery is how often an idle journal looks for old rows.
	retainEvery = time.Minute
	columns     = 5
)

// insertSizes are the numbers of rows that one statement inserts, largest first: a statement costs
// more than a row.
var insertSizes = [...]int{64, 8, 1}

func insertRows(n int) string {
	return "INSERT INTO journal (seq, call, body, hash, mac) VALUES (?,?,?,?,?)" + strings.Repeat(",(?,?,?,?,?)", n-1)
}

// write is the writer. It commits waiting rows in batches and removes old ones until the journal is
// closed.
func (j *Journal) write(ctx context.Context) {
	defer close(j.stopped)
	defer j.closeFile()
	retain := time.NewTicker(retainEvery)
	defer retain.Stop()
	more := false // rows to remove
	for {
		j.syncFile()
		j.mu.Lock()
		closed := j.closed
		waiting := len(j.queue.rows) > 0
		now, wait := j.queue.due(j.opts.MaxLag)
		var batch []*row
		if waiting && (now || closed) {
			batch = j.queue.take(j.opts.Now())
		}
		j.mu.Unlock()
		if batch != nil {
			if !j.commit(ctx, batch) && closed {
				return
			}
			more = j.retain(ctx)
			// The callers continue first, so that their next rows share the next
			// commit.
			runtime.Gosched()
			continue
		}
		if closed {
			return
		}
		if more {
			more = j.retain(ctx)
			continue
		}
		var lag, sync <-chan time.Time
		if waiting {
			lag = time.After(wait)
		}
		if due := j.file.due; !due.IsZero() {
			sync = time.After(time.Until(due))
		}
		select {
		case <-j.wake:
		case <-lag:
		case <-sync:
		case <-retain.C:
			more = true
		}
	}
}

// commit writes the batch and answers the waiting callers. It reports whether that was possible.
func (j *Journal) commit(ctx context.Context, batch []*row) bool {
	if j.unfiled != nil {
		// The head file must not fall further behind.
		if err := j.writeFile(j.head); err != nil {
			j.failed(batch, err)
			return false
		}
	}
	next, args := j.link(batch)
	next.OpenFrom = j.openFrom(batch)
	body, mac, err := next.seal(j.chain)
	if err == nil {
		j.opts.step("commit rows")
		err = j.opts.Store.Do(ctx, func(tx *sql.Tx) error { return j.insertAll(ctx, tx, args, body, mac) })
	}
	if err != nil {
		j.failed(batch, err)
		return false
	}
	j.headMAC = mac
	// An error refuses the next starts; these rows are on disk.
	_ = j.writeFile(next)
	j.opts.step("tell the callers")
	j.committed(batch, next)
	return true
}

// writeFile writes h to the head file.
func (j *Journal) writeFile(h head) error {
	err := j.file.write(lastRow{h.Seq, h.Hash})
	return j.setUnfiled(err)
}

// syncFile syncs the head file if that is due, and writes it again if that failed before.
func (j *Journal) syncFile() {
	if j.file.due.IsZero() || time.Now().Before(j.file.due) {
		return
	}
	if j.unfiled != nil && j.writeFile(j.head) != nil {
		j.file.due = time.Now().Add(headLag)
		return
	}
	_ = j.setUnfiled(j.file.sync()) // Healthy reports it, and the next attempt repairs it
}

// closeFile syncs the head file and closes it.
func (j *Journal) closeFile() {
	if err := errors.Join(j.file.sync(), j.file.file.Close()); err != nil {
		j.logger.Error("the file of the journal's head may be behind", "error", err)
	}
}

// setUnfiled remembers the result of writing the head file, logs a change, and returns it.
func (j *Journal) setUnfiled(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %s: %w", store.ErrUnwritable, headName, err)
	}
	j.mu.Lock()
	before := j.unfiled
	j.unfiled = err
	j.mu.Unlock()
	if before == nil && err != nil {
		j.logger.Error("the file of the journal's head cannot be written", "error", err)
	}
	return err
}

// link gives each row its number, its time and its hash. It returns the head after them and the
// columns of all rows.
func (j *Journal) link(batch []*row) (head, []any) {
	next := j.head
	args := make([]any, 0, len(batch)*columns)
	for _, w := range batch {
		w.time = storable(w.time)
		setTime(w.body, w.time)
		stored := string(w.body)
		if w.time.Before(next.Time) {
			stored = stored[:len(stored)-1] + `,"clock_back":true}`
		}
		next.Seq++
		content := j.chain.content(next.Seq, w.call, stored)
		next.Hash = j.chain.link(next.Hash, content)
		next.Time = w.time
		next.Bytes += rowSize(w.call, stored)
		hash := next.Hash
		args = append(args, next.Seq, w.call, stored, hash[:], j.chain.rowMAC(content, hash))
	}
	return next, args
}

// openFrom returns the first start that has no end once batch is written.
func (j *Journal) openFrom(batch []*row) int64 {
	ended := map[string]bool{}
	for _, w := range batch {
		if w.kind == End {
			ended[w.call] = true
		}
	}
	for _, s := range j.starts {
		if j.open[s.call] == s.seq && !ended[s.call] {
			return s.seq
		}
	}
	for i, w := range batch {
		if w.kind == Start && !ended[w.call] {
			return j.head.Seq + int64(i) + 1
		}
	}
	return 0
}

// insertAll inserts the rows and replaces the head.
func (j *Journal) insertAll(ctx context.Context, tx *sql.Tx, args []any, body string, mac []byte) error {
	for i, size := range insertSizes {
		stmt := tx.StmtContext(ctx, j.insert[i])
		for len(args) >= size*columns {
			if _, err := stmt.ExecContext(ctx, args[:size*columns]...); err != nil {
				return err
			}
			args = args[size*columns:]
		}
	}
	return j.replaceHead(ctx, tx, body, mac)
}

// errForeign reports another writer of the journal.
var errForeign = errors.New("another process changed the journal's head; run toolhost journal verify")

// replaceHead replaces the head that the journal wrote last, and no other.
func (j *Journal) replaceHead(ctx context.Context, tx *sql.Tx, body string, mac []byte) error {
	result, err := tx.StmtContext(ctx, j.update).ExecContext(ctx, body, mac, j.headMAC)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(errForeign, err)
	}
	return nil
}

// committed publishes the rows.
func (j *Journal) committed(batch []*row, next head) {
	j.mu.Lock()
	defer j.mu.Unlock()
	seq := j.head.Seq
	for _, w := range batch {
		seq++
		switch w.kind {
		case Start:
			j.open[w.call] = seq
			j.starts = append(j.starts, start{seq: seq, call: w.call})
		case End:
			delete(j.open, w.call)
			delete(j.left, w.call)
		case Change, Connection, Notice:
		}
		if w.done != nil {
			w.done <- nil
		}
	}
	for len(j.starts) > 0 && j.open[j.starts[0].call] != j.starts[0].seq {
		j.starts = j.starts[1:]
	}
	j.head = next
	j.queue.sick = nil
	close(j.news)
	j.news = make(chan struct{})
	close(j.room)
	j.room = make(chan struct{})
}

// failed answers all waiting callers with the error. Starts are dropped, since their calls do not
// run; ends are kept.
func (j *Journal) failed(batch []*row, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var kept []*row
	for _, w := range append(batch, j.queue.rows...) {
		if w.done != nil {
			w.done <- err
			w.done = nil
		}
		switch w.kind {
		case Start:
		case End, Change, Connection:
			kept = append(kept, w)
		case Notice:
			j.queue.lost.add(w.lost)
		}
	}
	j.queue.keep(kept)
	j.queue.since = time.Now()
	j.queue.sick = err
	close(j.room)
	j.room = make(chan struct{})
}

const (
	// retainRows limits the rows that one step of retention removes.
	retainRows = 1000
	// slack is the part of MaxSize that retention frees at once when it is
	// reached: one in sixteen.
	slack = 16
)

// retain removes the oldest rows, at most retainRows, while they are older than Keep or the journal
// is larger than MaxSize. It reports whether there may be more. The last row, a start without an
// end and all rows after it stay. A changed row and all after it stay too: retention must not
// remove the traces of a change. The head then names the row after which the journal begins.
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
				return fmt.Errorf("row %d or one before it was changed; run toolhost journal verify", s.seq)
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

// oldestTime returns the time of the oldest row; the current time if there is none.
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
