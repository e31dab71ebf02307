package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
)

// keptRemovals is for how many changes at least removals are listed; whoever has
// read no later one reads everything again.
const keptRemovals = 10_000

// Tx is a change of the notes that is being made: all of it, or nothing.
type Tx struct {
	s   *Store
	ctx context.Context //nolint:containedctx // a change lives as long as the function that gets it
	rev int64
	// notes is how many there are, once that was read; fresh are those of them that
	// are not in note_text yet, in order.
	notes int
	fresh []int64
	// grows says that something was added: that must leave room for deleting.
	grows bool
	// dimension is that of the embedder's vectors, once that was read.
	dimension int
}

// Write makes a change. It is on disk when Write returns without an error, and
// otherwise undone. f may look at the notes as they are now, and nobody else
// changes them meanwhile.
func (s *Store) Write(ctx context.Context, f func(*Tx) error) (err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	t := &Tx{s: s, ctx: ctx}
	// What was begun is ended, also if ctx has ended: the caller must know what
	// has become of it.
	end := &Tx{s: s, ctx: context.WithoutCancel(ctx)}
	begin, err := s.prepared(ctx, s.conn, "BEGIN IMMEDIATE")
	if err != nil {
		return explain(err)
	}
	if _, err := begin.ExecContext(ctx); err != nil { // it may wait for another process
		_, _ = end.exec("ROLLBACK") // it may have begun all the same, if ctx ended meanwhile
		return explain(err)
	}
	made := false
	defer func() {
		if made {
			return
		}
		_, _ = end.exec("ROLLBACK") // also if f panics; SQLite may have rolled it back already
		if errors.Is(err, ErrFull) {
			_ = s.emptyLog(end.ctx) // what the log takes is room, too
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

// change returns the number of the change, which the first thing that is
// changed gives it.
func (t *Tx) change() (int64, error) {
	if t.rev == 0 {
		if err := t.row("UPDATE meta SET rev = rev + 1 RETURNING rev, notes").Scan(&t.rev, &t.notes); err != nil {
			return 0, explain(err)
		}
	}
	return t.rev, nil
}

// flush writes what the notes that were added have in other tables.
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

// statement returns a statement of the change, and a context to run it with.
// Statements are short and are not given up in the middle, which would take two
// goroutines for each.
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

// row returns the one row of a query; its Scan has the error.
func (t *Tx) row(query string, args ...any) interface{ Scan(...any) error } {
	stmt, ctx, err := t.statement(query)
	if err != nil {
		return failedRow{err}
	}
	return stmt.QueryRowContext(ctx, args...)
}

// ids returns the numbers that a query finds.
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

// ByNoteID returns a note, or [ErrNotFound].
func (t *Tx) ByNoteID(id string) (Note, error) {
	return scan(t.row("SELECT "+noteColumns+" FROM note WHERE note_id = ?", id))
}

// ByKey returns a note, or [ErrNotFound].
func (t *Tx) ByKey(key string) (Note, error) {
	return scan(t.row("SELECT "+noteColumns+" FROM note WHERE key = ?", key))
}

// ByID returns a note, or [ErrNotFound].
func (t *Tx) ByID(id int64) (Note, error) {
	return scan(t.row("SELECT "+noteColumns+" FROM note WHERE id = ?", id))
}

// Same returns a note that says the same as n, or [ErrNotFound]: one of its
// category without a key, which has not expired, whose content differs in case and
// space at most, and in nothing that n tells of when, where and by whom it was
// said.
func (t *Tx) Same(n *Note, now time.Time) (Note, error) {
	return scan(t.row("SELECT "+noteColumns+` FROM note INDEXED BY note_hash
		WHERE hash = ?1 AND category = ?2 AND key IS NULL AND (expires IS NULL OR expires > ?3)
			AND (?4 = '' OR source = ?4) AND (?5 = '' OR session = ?5) AND (?6 < 0 OR seq = ?6) AND (?7 IS NULL OR occurred = ?7)
		ORDER BY id LIMIT 1`,
		ContentHash(n.Content), int(n.Category), now.UnixMilli(), n.Source, n.Session, n.Seq, toMillis(n.Occurred)))
}

// Put saves a note, and sets its ID: a new one if that is 0, else in the place of
// the one that has it.
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

// room returns [ErrFull] if the change makes the file about as large as this
// process may make one: what is left is for deleting.
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
		return fmt.Errorf("%w: %d pages are left of %d that the file may have", ErrFull, left, t.s.maxPages)
	}
	return nil
}

// Dimension makes sure that all vectors of the embedder have the length of this
// one: those of another length, of a model that was replaced under its name, are
// forgotten, and made anew like those of another embedder.
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
	_, err = t.exec("UPDATE meta SET since = ?", rev) // nobody can go on from an earlier change
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

// Delete removes a note and everything that it is found by.
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
	t.s.owed = true // it is in the log, too; if this is undone, emptying it does no harm
	if rev%keptRemovals != 0 {
		return nil
	}
	if _, err = t.exec("DELETE FROM gone WHERE rev <= ?", rev-keptRemovals); err == nil {
		_, err = t.exec("UPDATE meta SET since = max(since, ?)", rev-keptRemovals)
	}
	return err
}

// Forget makes sure that what was deleted is not left in the log either. It
// cannot while others read what was there before: then [Store.Upkeep] does it, as
// after changes that Forget does not follow.
func (s *Store) Forget(ctx context.Context) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.owed {
		return nil
	}
	return s.emptyLog(ctx)
}

// emptyLog moves the log into the file, unless others read or write at this
// moment. The caller holds writing.
func (s *Store) emptyLog(ctx context.Context) error {
	// Whoever waits for a reader here lets all writers wait. Both settings are made
	// also if ctx ends: the writer waits again in any case.
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
