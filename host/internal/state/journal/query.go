package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
	// maxQueryBytes limits the size of the rows that a query returns.
	maxQueryBytes = 8 << 20
	// followPage limits the rows that Follow reads at once.
	followPage = 256
)

// Query selects rows that match all fields that are set.
type Query struct {
	// Kind is the kind of the rows.
	Kind                                      Kind
	Call, Tool, Plugin, User, Session, Status string
	// Since and Until limit the time of a row; Until is exclusive. All rows are examined,
	// because the clock may have been set back.
	Since, Until time.Time
	// Before and After limit the number of a row; both are exclusive.
	Before, After int64
	// Limit is the largest number of rows; the default is 100, the maximum 1,000. Large rows may
	// make it fewer, but at least one is returned if any matches: an empty result is the end.
	Limit int
	// OldestFirst returns the first rows in their order. Otherwise the last rows are returned,
	// newest first.
	OldestFirst bool
}

// Query returns the durable rows that match q.
func (j *Journal) Query(ctx context.Context, q Query) ([]Record, error) {
	records, err := find(ctx, j.opts.Store.Read(), q)
	if err != nil {
		return nil, fmt.Errorf("query the journal: %w", err)
	}
	return records, nil
}

// find walks the rows by number; only the call has an index.
func find(ctx context.Context, db querier, q Query) ([]Record, error) {
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	where, args := "seq > ?", []any{q.After}
	if q.Before > 0 {
		where, args = where+" AND seq < ?", append(args, q.Before)
	}
	if q.Call != "" {
		where, args = where+" AND call = ?", append(args, q.Call)
	}
	order := " ORDER BY seq DESC"
	if q.OldestFirst {
		order = " ORDER BY seq"
	}
	rows, err := db.QueryContext(ctx, "SELECT seq, call, body, hash FROM journal WHERE "+where+order, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	words := q.words()
	var records []Record
	size := 0
	for len(records) < min(q.Limit, maxLimit) && size < maxQueryBytes && rows.Next() {
		var s stored
		if err := s.scan(rows); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(s.body, word) }) {
			continue
		}
		r, err := s.record()
		if err != nil {
			return nil, err
		}
		if q.fits(&r) {
			records = append(records, r)
			size += len(s.body)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	return records, addPrev(ctx, db, records)
}

// words lists texts that the body of each row that fits contains: looking for them is
// cheaper than decoding the row. Values that JSON may escape are left out.
func (q *Query) words() []string {
	var words []string
	for _, field := range []struct{ name, value string }{
		{"kind", string(q.Kind)},
		{"tool", q.Tool},
		{"plugin", q.Plugin},
		{"user", q.User},
		{"session", q.Session},
		{"status", q.Status},
	} {
		escaped := strings.ContainsFunc(field.value, func(c rune) bool { return c < ' ' || c > '~' || strings.ContainsRune(`"\<>&`, c) })
		if field.value != "" && !escaped {
			words = append(words, `"`+field.name+`":"`+field.value+`"`)
		}
	}
	return words
}

// fits reports whether r matches q.
func (q *Query) fits(r *Record) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	return is(string(q.Kind), string(r.Kind)) && is(q.Tool, r.Tool) && is(q.Plugin, r.Plugin) && is(q.User, r.User) && is(q.Session, r.Session) && is(q.Status, r.Status) &&
		!r.Time.Before(q.Since) && (q.Until.IsZero() || r.Time.Before(q.Until))
}

// Follow returns the rows after number after, as they become durable, beginning with the oldest
// kept row. It ends when ctx ends, when the journal is closed, and after an error.
func (j *Journal) Follow(ctx context.Context, after int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for ended := false; ; {
			j.mu.Lock()
			last, news := j.head.Seq, j.news
			j.mu.Unlock()
			for after < last {
				records, err := j.Query(ctx, Query{After: after, Limit: followPage, OldestFirst: true})
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					yield(Record{}, err)
					return
				}
				for _, r := range records {
					if !yield(r, nil) {
						return
					}
					after = r.Seq
				}
				if len(records) == 0 { // only retention takes rows away, from the other end
					after = last
				}
			}
			if ended {
				return
			}
			select {
			case <-news:
			case <-j.stopped:
				ended = true // the rows of the last commit are still to be sent
			case <-ctx.Done():
				return
			}
		}
	}
}

// Unfinished returns the starts that had no end when the journal was opened and have none now:
// calls that ran when the host was killed. [Journal.End] removes them from the list.
func (j *Journal) Unfinished(ctx context.Context) ([]Record, error) {
	j.mu.Lock()
	seqs := make([]int64, 0, len(j.left))
	for _, seq := range j.left {
		seqs = append(seqs, seq)
	}
	j.mu.Unlock()
	slices.Sort(seqs)
	var records []Record
	for _, seq := range seqs {
		found, err := j.Query(ctx, Query{After: seq - 1, Before: seq + 1})
		if err != nil {
			return nil, err
		}
		records = append(records, found...)
	}
	return records, nil
}

// stored is a row in the form of the database.
type stored struct {
	seq  int64
	call string
	body string
	hash digest
}

// scan reads seq, call, body and hash, and further columns into more.
func (s *stored) scan(rows *sql.Rows, more ...any) error {
	var hash []byte
	if err := rows.Scan(append([]any{&s.seq, &s.call, &s.body, &hash}, more...)...); err != nil {
		return err
	}
	var ok bool
	if s.hash, ok = asDigest(hash); !ok {
		return fmt.Errorf("row %d has no hash", s.seq)
	}
	return nil
}

// record returns the decoded row.
func (s *stored) record() (Record, error) {
	var r Record
	if err := json.Unmarshal([]byte(s.body), &r); err != nil {
		return Record{}, fmt.Errorf("row %d: %w", s.seq, err)
	}
	r.Seq, r.Call, r.Hash = s.seq, s.call, s.hash.String()
	return r, nil
}

// addPrev sets the hash of the previous row in each record.
func addPrev(ctx context.Context, db querier, records []Record) error {
	hashes := make(map[int64]string, len(records))
	for _, r := range records {
		hashes[r.Seq] = r.Hash
	}
	for i := range records {
		r := &records[i]
		if prev, ok := hashes[r.Seq-1]; ok {
			r.Prev = prev
			continue
		}
		var hash []byte
		err := db.QueryRowContext(ctx, "SELECT hash FROM journal WHERE seq = ?", r.Seq-1).Scan(&hash)
		switch d, ok := asDigest(hash); {
		case errors.Is(err, sql.ErrNoRows): // the first that is kept
		case err != nil:
			return err
		case ok:
			r.Prev = d.String()
		}
	}
	return nil
}
