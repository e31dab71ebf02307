package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
)

// keptRemovals is the number of latest changes whose removals are certainly listed.
// A reader that is further behind reads everything again.
const keptRemovals = 10_000

// Tx is a transaction.
type Tx struct {
	s   *Store
	ctx context.Context //nolint:containedctx // a Tx lives as long as the function that gets it
	rev int64
	// notes is the number of notes, once it was read. fresh are the new notes that
	// are not in note_text yet, in ascending order.
	notes int
	fresh []int64
	// grows reports whether the transaction adds something. Such a transaction must
	// leave room for deleting.
	grows bool
	// dimension is the dimension of the embedder's vectors, once it was read.
	dimension int
}

// Write runs f in a transaction. If Write returns nil, the changes are on disk; if
// not, they are undone. f sees the current notes, and nothing else changes them
// meanwhile.
func (s *Store) Write(ctx context.Context, f func(*Tx) error) (err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	t := &Tx{s: s, ctx: ctx}
	// Ending the transaction ignores the end of ctx, because the caller must know
	// whether it was committed.
	end := &Tx{s: s, ctx: context.WithoutCancel(ctx)}
	begin, err := s.prepared(ctx, s.conn, "BEGIN IMMEDIATE")
	if err != nil {
		return explain(err)
	}
	if _, err := begin.ExecContext(ctx); err != nil { // it may wait for another process
		_, _ = end.exec("ROLLBACK") // it may have begun although ctx ended
		return explain(err)
	}
	made := false
	defer func() {
		if made {
			return
		}
		_, _ = end.exec("ROLLBACK") // also if f panics; SQLite may already have rolled back
		if errors.Is(err, ErrFull) {
			_ = s.emptyLog(end.ctx) // which frees the space of the log
		}
	}()
	if err = f(t); err == nil {
		err = t.flush()
	}
	if err == nil && t.grows {
		err = t.room()
	}
	if err == nil {
		_, err = end.exec("COMMIT")
	}
	made = err == nil
	return explain(err)
}

// change returns the number of the change. The first write of the transaction
// assigns it.
func (t *Tx) change() (int64, error) {
	if t.rev == 0 {
		if err := t.row("UPDATE meta SET rev = rev + 1 RETURNING rev, notes").Scan(&t.rev, &t.notes); err != nil {
			return 0, explain(err)
		}
	}
	return t.rev, nil
}

// flush writes the text of new notes to note_text, and the number of notes.
func (t *Tx) flush() error {
	if t.rev == 0 {
		return nil
	}
	if len(t.fresh) > 0 {
		if _, err := t.exec("INSERT INTO note_text (rowid, content) SELECT id, content FROM note WHERE id >= ? ORDER BY id", t.fresh[0]); err != nil {
			return err
		}
		t.fresh = nil
	}
	_, err := t.exec("UPDATE meta SET notes = ?", t.notes)
	return err
}

// statement returns a prepared statement and a context to run it with. That context
// cannot be canceled: statements are short, and a cancelable one costs two
// goroutines.
func (t *Tx) statement(query string) (*sql.Stmt, context.Context, error) {
	if t.ctx.Err() != nil {
		return nil, nil, context.Cause(t.ctx)
	}
	stmt, err := t.s.prepared(t.ctx, t.s.conn, query)
	return stmt, context.WithoutCancel(t.ctx), explain(err)
}

func (t *Tx) exec(query string, args ...any) (sql.Result, error) {
	stmt, ctx, err := t.statement(query)
	if err != nil {
		return nil, err
	}
	r, err := stmt.ExecContext(ctx, args...)
	return r, explain(err)
}

// row returns the row that a query yields. Its Scan returns the error.
func (t *Tx) row(query string, args ...any) interface{ Scan(...any) error } {
	stmt, ctx, err := t.statement(query)
	if err != nil {
		return failedRow{err}
	}
	return stmt.QueryRowContext(ctx, args...)
}

// ids returns the IDs that a query yields.
func (t *Tx) ids(query string, args ...any) ([]int64, error) {
	stmt, ctx, err := t.statement(query)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, explain(err)
	}
	var ids []int64
	err = each(rows, func(rows *sql.Rows) error { return scanID(rows, &ids) })
	return ids, err
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// ByNoteID returns the note with a note_id, or [ErrNotFound].
func (t *Tx) ByNoteID(id string) (Note, error) {
	return scan(t.row("SELECT "+noteColumns+" FROM note WHERE note_id = ?", id))
}

// ByKey returns the note with a key, or [ErrNotFound].
func (t *Tx) ByKey(key string) (Note, error) {
	return scan(t.row("SELECT "+noteColumns+" FROM note WHERE key = ?", key))
}

// ByID returns the note with an ID, or [ErrNotFound].
func (t *Tx) ByID(id int64) (Note, error) {
	return scan(t.row("SELECT "+noteColumns+" FROM note WHERE id = ?", id))
}

// Same returns a duplicate of n, or [ErrNotFound]. A duplicate has the same
// category and no key, has not expired, has the same content except for case and
// whitespace, and agrees with n in source, session, seq and occurred as far as n
// sets them.
func (t *Tx) Same(n *Note, now time.Time) (Note, error) {
	return scan(t.row("SELECT "+noteColumns+` FROM note INDEXED BY note_hash
		WHERE hash = ?1 AND category = ?2 AND key IS NULL AND (expires IS NULL OR expires > ?3)
			AND (?4 = '' OR source = ?4) AND (?5 = '' OR session = ?5) AND (?6 < 0 OR seq = ?6) AND (?7 IS NULL OR occurred = ?7)
		ORDER BY id LIMIT 1`,
		ContentHash(n.Content), int(n.Category), now.UnixMilli(), n.Source, n.Session, n.Seq, toMillis(n.Occurred)))
}

// Put saves a note. If its ID is 0, Put inserts it and sets the ID. If not, Put
// replaces the note with that ID.
func (t *Tx) Put(n *Note) error {
	values, err := n.values()
	if err != nil {
		return err
	}
	t.grows = true
	rev, err := t.change()
	if err != nil {
		return err
	}
	values = append(values, rev, ContentHash(n.Content))
	if n.ID == 0 {
		err = t.insert(n, values)
	} else {
		if err = t.flush(); err != nil {
			return err
		}
		_, err = t.exec(`UPDATE note SET note_id = ?, key = ?, content = ?, category = ?, tags = ?, pinned = ?, source = ?, session = ?,
			seq = ?, occurred = ?, expires = ?, created = ?, updated = ?, origin = ?, rev = ?, hash = ? WHERE id = ?`, append(values, n.ID)...)
		if err == nil {
			_, err = t.exec("DELETE FROM passage WHERE note = ?", n.ID)
		}
	}
	if err != nil {
		return err
	}
	for _, p := range n.Passages {
		if err := t.Dimension(p.Vector); err != nil {
			return err
		}
		embedder := sql.NullInt64{Int64: t.s.embedder, Valid: p.Vector != nil}
		if _, err := t.exec(`INSERT INTO passage (note, start, stop, hash, terms, analyzer, embedder, vector) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			n.ID, p.Start, p.Stop, PassageHash(n.Content[p.Start:p.Stop]), encodeTerms(p.Terms), terms.Version, embedder, encodeVector(p.Vector)); err != nil {
			return err
		}
	}
	return nil
}

// room returns [ErrFull] if the file comes close to the largest size that this
// process may write. The rest is reserved for deleting.
func (t *Tx) room() error {
	if t.s.maxPages == 0 {
		return nil
	}
	var used int64
	const query = "SELECT (SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM pragma_freelist_count)"
	if err := t.row(query).Scan(&used); err != nil {
		return explain(err)
	}
	if left := t.s.maxPages - used; left < min(sparePages, t.s.maxPages/8) {
		return fmt.Errorf("%w: %d pages are left of the %d that the file may have", ErrFull, left, t.s.maxPages)
	}
	return nil
}

// Dimension makes sure that all vectors of the embedder have the dimension of this
// one. If the stored ones have another dimension because the model behind the name
// was replaced, Dimension discards them, and they are made again.
func (t *Tx) Dimension(vector []float32) error {
	if vector == nil || t.dimension == len(vector) {
		return nil
	}
	var before int
	if err := t.row("SELECT dimension FROM embedder WHERE id = ?", t.s.embedder).Scan(&before); err != nil {
		return explain(err)
	}
	if t.dimension = len(vector); before == t.dimension {
		return nil
	}
	if _, err := t.exec("UPDATE embedder SET dimension = ? WHERE id = ?", len(vector), t.s.embedder); err != nil || before == 0 {
		return err
	}
	rev, err := t.change()
	if err != nil {
		return err
	}
	if _, err := t.exec("UPDATE passage SET vector = NULL, embedder = NULL WHERE embedder = ?", t.s.embedder); err != nil {
		return err
	}
	_, err = t.exec("UPDATE meta SET since = ?", rev) // readers of earlier changes must read everything again
	return err
}

func (t *Tx) insert(n *Note, values []any) error {
	if t.s.opts.MaxNotes > 0 && t.notes >= t.s.opts.MaxNotes {
		return ErrTooMany
	}
	r, err := t.exec(`INSERT INTO note (note_id, key, content, category, tags, pinned, source, session,
		seq, occurred, expires, created, updated, origin, rev, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, values...)
	if err != nil {
		return err
	}
	n.ID, err = r.LastInsertId()
	t.notes++
	t.fresh = append(t.fresh, n.ID)
	return err
}

// Delete removes a note with its passages.
func (t *Tx) Delete(id int64) error {
	rev, err := t.change()
	if err != nil {
		return err
	}
	if err := t.flush(); err != nil {
		return err
	}
	r, err := t.exec("DELETE FROM note WHERE id = ?", id)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return err
	}
	t.notes--
	t.s.owed = true // the log holds the note, too; emptying it after a rollback does no harm
	if rev%keptRemovals != 0 {
		return nil
	}
	if _, err = t.exec("DELETE FROM gone WHERE rev <= ?", rev-keptRemovals); err == nil {
		_, err = t.exec("UPDATE meta SET since = max(since, ?)", rev-keptRemovals)
	}
	return err
}

// Forget removes deleted notes from the log. It cannot do so while others read an
// earlier state; then a later [Store.Upkeep] does it, which also covers changes
// that Forget does not follow.
func (s *Store) Forget(ctx context.Context) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.owed {
		return nil
	}
	return s.emptyLog(ctx)
}

// emptyLog moves the log into the file unless others are reading or writing. The
// caller holds writing.
func (s *Store) emptyLog(ctx context.Context) error {
	// Waiting for a reader here would block all writers, so do not wait. Both
	// statements run even if ctx ends, so that the writer waits again afterwards in
	// any case.
	always := context.WithoutCancel(ctx)
	if _, err := s.conn.ExecContext(always, "PRAGMA busy_timeout = 0"); err != nil {
		return explain(err)
	}
	var busy, frames, moved int
	err := s.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	_, restored := s.conn.ExecContext(always, busyTimeout)
	if err = errors.Join(explain(err), explain(restored)); err == nil && busy == 0 {
		s.owed = false
	}
	return err
}
