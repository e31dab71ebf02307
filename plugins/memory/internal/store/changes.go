package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
)

// batch is how many passages are passed on at a time, or a few more if the last
// note is long. Passages on the way are not counted as memory of an index yet.
const batch = 250

// Rev returns the number of the last change.
func (s *Store) Rev(ctx context.Context) (int64, error) {
	var rev int64
	err := s.query(ctx, "SELECT rev FROM meta", func(rows *sql.Rows) error { return rows.Scan(&rev) })
	return rev, err
}

// A Reader receives changes.
type Reader struct {
	// Put receives notes that are new or have changed. It may keep the slice.
	Put func([]rank.Note) error
	// Remove receives the IDs of removed notes.
	Remove func(ids []int64) error
}

// ErrReload means that the removals since a change are no longer known, so that the
// caller must read everything again.
var ErrReload = errors.New("everything must be read again")

// Changes passes all changes after since to r and returns the number of the last
// one. If since is 0, it passes all notes. All changes are of one snapshot.
func (s *Store) Changes(ctx context.Context, since int64, r Reader) (int64, error) {
	tx, err := s.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return 0, explain(err)
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	var rev, listed int64
	meta, err := s.prepared(ctx, s.reader, "SELECT rev, since FROM meta")
	if err != nil {
		return 0, explain(err)
	}
	if err := tx.StmtContext(ctx, meta).QueryRowContext(ctx).Scan(&rev, &listed); err != nil {
		return 0, explain(err)
	}
	if rev == since {
		return rev, nil
	}
	if since > 0 {
		if since < listed || rev < since {
			return 0, ErrReload
		}
		if err := s.removed(ctx, tx, since, r); err != nil {
			return 0, explain(err)
		}
	}
	return rev, explain(s.changed(ctx, tx, since, r))
}

func (s *Store) removed(ctx context.Context, tx *sql.Tx, since int64, r Reader) error {
	gone, err := s.prepared(ctx, s.reader, "SELECT note FROM gone WHERE rev > ?")
	if err != nil {
		return err
	}
	rows, err := tx.StmtContext(ctx, gone).QueryContext(ctx, since)
	if err != nil {
		return err
	}
	var ids []int64
	if err := each(rows, func(rows *sql.Rows) error { return scanID(rows, &ids) }); err != nil || len(ids) == 0 {
		return err
	}
	return r.Remove(ids)
}

// changed passes on notes with their passages.
func (s *Store) changed(ctx context.Context, tx *sql.Tx, since int64, r Reader) error {
	query := `SELECT n.id, n.category, n.pinned, n.tags, n.source, n.session, ifnull(n.seq, -1), ifnull(n.occurred, n.updated), ifnull(n.expires, 0),
		p.terms, p.analyzer, iif(p.analyzer = ?, '', n.content), p.start, p.stop, iif(p.embedder = ?, p.vector, NULL)
		FROM note n`
	args := []any{terms.Version, s.embedder}
	if since > 0 {
		query += " INDEXED BY note_rev CROSS JOIN passage p ON p.note = n.id WHERE n.rev > ?"
		args = append(args, since)
	} else {
		query += " CROSS JOIN passage p ON p.note = n.id"
	}
	stmt, err := s.prepared(ctx, s.reader, query+" ORDER BY n.id, p.id")
	if err != nil {
		return err
	}
	rows, err := tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var notes []rank.Note
	passages := 0 // of notes
	for rows.Next() {
		var id, at, expires int64
		var n rank.Note
		var tags, found, vector, content sql.RawBytes
		var analyzer, start, stop int
		if err := rows.Scan(&id, &n.Category, &n.Pinned, &tags, &n.Source, &n.Session, &n.Seq, &at, &expires, &found, &analyzer, &content, &start, &stop, &vector); err != nil {
			return err
		}
		if len(notes) == 0 || notes[len(notes)-1].ID != id {
			if passages >= batch {
				if err := r.Put(notes); err != nil {
					return err
				}
				notes, passages = nil, 0
			}
			n.ID, n.At = id, time.UnixMilli(at)
			if expires != 0 {
				n.Expires = time.UnixMilli(expires)
			}
			if len(tags) > 2 {
				if err := json.Unmarshal(tags, &n.Tags); err != nil {
					return err
				}
			}
			notes = append(notes, n)
		}
		p := rank.Passage{Vector: decodeVector(vector)}
		if analyzer == terms.Version {
			p.Terms, err = decodeTerms(found)
		} else { // the stored terms are of another version
			p.Terms = Terms(string(content[min(start, len(content)):min(stop, len(content))]))
		}
		if err != nil {
			return err
		}
		last := &notes[len(notes)-1]
		last.Passages = append(last.Passages, p)
		passages++
	}
	if err := rows.Err(); err != nil || len(notes) == 0 {
		return err
	}
	return r.Put(notes)
}
