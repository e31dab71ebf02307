package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
)

// Unembedded is a passage that the current embedder was not asked for.
type Unembedded struct {
	ID   int64
	Text string
}

// Pending returns how many passages the current embedder was not asked for.
func (s *Store) Pending(ctx context.Context) (int, error) {
	return s.number(ctx, "SELECT (SELECT count(*) FROM passage) - (SELECT count(*) FROM passage WHERE embedder = ?)", s.embedder)
}

// Refused returns how many passages the current embedder refused. It reads all of
// them.
func (s *Store) Refused(ctx context.Context) (int, error) {
	return s.number(ctx, "SELECT count(*) FROM passage WHERE embedder = ? AND vector IS NULL", s.embedder)
}

// Unembedded returns up to limit passages that the current embedder was not asked
// for.
func (s *Store) Unembedded(ctx context.Context, limit int) ([]Unembedded, error) {
	var all []Unembedded
	err := s.query(ctx, `SELECT p.id, p.start, p.stop, n.content FROM passage p JOIN note n ON n.id = p.note
		WHERE p.embedder IS NULL OR p.embedder < ?1 OR p.embedder > ?1 LIMIT ?2`, func(rows *sql.Rows) error {
		var u Unembedded
		var start, stop int
		var content string
		if err := rows.Scan(&u.ID, &start, &stop, &content); err != nil {
			return err
		}
		u.Text = content[min(start, len(content)):min(stop, len(content))]
		all = append(all, u)
		return nil
	}, s.embedder, limit)
	return all, err
}

// Known returns the vector that the current embedder made of the same text earlier,
// or nil.
func (s *Store) Known(ctx context.Context, text string) ([]float32, error) {
	var vector []float32
	err := s.query(ctx, "SELECT vector FROM passage WHERE hash = ? AND embedder = ? AND vector IS NOT NULL LIMIT 1", func(rows *sql.Rows) error {
		var data []byte
		err := rows.Scan(&data)
		vector = decodeVector(data)
		return err
	}, PassageHash(text), s.embedder)
	return vector, err
}

// SetVectors stores the vectors of passages, nil for a passage that the embedder
// refused, and returns how many it stored. It skips passages that were removed or
// have another text now.
func (s *Store) SetVectors(ctx context.Context, passages []Unembedded, vectors [][]float32) (int, error) {
	set := 0
	err := s.Write(ctx, func(t *Tx) error {
		set = 0
		for i, p := range passages {
			if err := t.Dimension(vectors[i]); err != nil {
				return err
			}
			r, err := t.exec("UPDATE passage SET vector = ?, embedder = ? WHERE id = ? AND hash = ?",
				encodeVector(vectors[i]), s.embedder, p.ID, PassageHash(p.Text))
			if err != nil {
				return err
			}
			if n, err := r.RowsAffected(); err != nil || n == 0 {
				continue
			}
			set++
			t.grows = t.grows || vectors[i] != nil
			rev, err := t.change()
			if err != nil {
				return err
			}
			if _, err := t.exec("UPDATE note SET rev = ? WHERE id = (SELECT note FROM passage WHERE id = ?)", rev, p.ID); err != nil {
				return err
			}
		}
		return nil
	})
	return set, err
}

// purged is the maximum number of notes that one call of Upkeep removes by each
// rule.
const purged = 1000

// Upkeep removes expired notes, and notes that are not pinned and were last written
// longer ago than keep allows for their category. It returns how many it removed;
// there may be more if that is a large number. It also clears the log of notes
// deleted now or earlier.
func (s *Store) Upkeep(ctx context.Context, now time.Time, keep map[rank.Category]time.Duration) (int, error) {
	removed := 0
	var errs []error
	for _, r := range rulesOf(now, keep) {
		found, err := s.due(ctx, r)
		if err == nil && len(found) > 0 {
			var n int
			n, err = s.purge(ctx, r, found)
			removed += n
		}
		errs = append(errs, err) // continue with the other rules
	}
	return removed, errors.Join(append(errs, s.Forget(ctx))...)
}

// rule is a condition on notes to remove.
type rule struct {
	condition string
	values    []any
}

func rulesOf(now time.Time, keep map[rank.Category]time.Duration) []rule {
	rules := []rule{{"expires <= ?", []any{now.UnixMilli()}}}
	for category, age := range keep {
		if age > 0 {
			rules = append(rules, rule{"category = ? AND pinned = 0 AND updated < ?", []any{int(category), now.Add(-age).UnixMilli()}})
		}
	}
	return rules
}

// due returns notes that match a rule.
func (s *Store) due(ctx context.Context, r rule) ([]int64, error) {
	return s.ids(ctx, "SELECT id FROM note WHERE "+r.condition+" LIMIT ?", append(r.values, purged)...)
}

// purge removes the notes that still match the rule, and returns how many.
func (s *Store) purge(ctx context.Context, r rule, found []int64) (int, error) {
	removed := 0
	err := s.Write(ctx, func(t *Tx) error {
		removed = 0
		for _, id := range found { // it may have been pinned or prolonged in the meantime
			still, err := t.ids("SELECT id FROM note WHERE "+r.condition+" AND id = ?", append(r.values, id)...)
			if err != nil {
				return err
			}
			if len(still) == 0 {
				continue
			}
			if err := t.Delete(id); err != nil {
				return err
			}
			removed++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

// Part is the suffix of an unfinished snapshot's name.
const Part = ".part"

// Snapshot writes the current notes to another file and returns its size. It fails
// with [os.ErrExist] if the file exists or another process is writing it. The file
// appears complete or not at all. A process that is killed leaves a file behind
// whose name contains [Part].
func (s *Store) Snapshot(ctx context.Context, path string) (int64, error) {
	part := path + Part
	if err := reserve(part, path); err != nil {
		return 0, err
	}
	db, err := connect(s.opts.Path, checkParams)
	if err == nil {
		_, err = db.ExecContext(ctx, "VACUUM INTO ?", part)
		err = errors.Join(explain(err), db.Close())
	}
	var size int64
	if err == nil {
		size, err = publish(part, path)
	}
	if err != nil {
		for _, left := range []string{part, part + "-journal"} {
			if removed := os.Remove(left); !errors.Is(removed, os.ErrNotExist) {
				err = errors.Join(err, removed)
			}
		}
		return 0, err
	}
	return size, nil
}

// reserve creates an empty file at part for SQLite to write into. Only one of
// several processes succeeds.
func reserve(part, path string) error {
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = f.Close()
	if _, missing := os.Lstat(path); missing == nil { // another process has just published it
		err = fmt.Errorf("%s: %w", path, os.ErrExist)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

// publish durably renames a complete file and returns its size, which it reads
// first because another process may remove the file under its new name at any time.
func publish(part, path string) (int64, error) {
	f, err := os.Open(part)
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(part, path); err != nil {
		return 0, err
	}
	return info.Size(), syncDir(filepath.Dir(path))
}

// ReadSnapshot passes the notes of a user's snapshot to take. It does not change
// the snapshot.
func ReadSnapshot(ctx context.Context, path, user string, take func(*Note) error) error {
	if _, err := os.Lstat(path); err != nil {
		return err // check would create an empty file
	}
	if err := check(ctx, path); err != nil {
		return explain(err)
	}
	db, err := connect(path, checkParams)
	if err != nil {
		return explain(err)
	}
	return explain(errors.Join(readAll(ctx, db, user, take), db.Close()))
}

func readAll(ctx context.Context, db *sql.DB, user string, take func(*Note) error) error {
	var owner string
	if err := db.QueryRowContext(ctx, "SELECT user FROM meta").Scan(&owner); err != nil {
		return err
	}
	if owner != user {
		return fmt.Errorf("%w: it holds the notes of another user", ErrFile)
	}
	rows, err := db.QueryContext(ctx, "SELECT "+noteColumns+" FROM note ORDER BY id")
	if err != nil {
		return err
	}
	return each(rows, func(rows *sql.Rows) error {
		n, err := scan(rows)
		if err == nil {
			err = take(&n)
		}
		return err
	})
}
