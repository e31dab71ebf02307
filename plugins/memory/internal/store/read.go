package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/keywords"
	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
)

// Terms returns the terms of a text with their counts, in the order of their first
// occurrence.
func Terms(text string) []keywords.Term {
	return Count(terms.Words(text))
}

// Count counts the terms of words.
func Count(words []terms.Word) []keywords.Term {
	places := make(map[string]int, len(words))
	var all []keywords.Term
	for _, w := range words {
		place, known := places[w.Term]
		if !known {
			place = len(all)
			places[w.Term] = place
			all = append(all, keywords.Term{Text: w.Term})
		}
		all[place].Count++
	}
	return all
}

// notes returns the notes that a query yields.
func (s *Store) notes(ctx context.Context, query string, args ...any) ([]Note, error) {
	var notes []Note
	err := s.query(ctx, query, func(rows *sql.Rows) error {
		n, err := scan(rows)
		notes = append(notes, n)
		return err
	}, args...)
	return notes, err
}

// one returns the note that a query yields, or [ErrNotFound].
func (s *Store) one(ctx context.Context, query string, args ...any) (Note, error) {
	notes, err := s.notes(ctx, query, args...)
	if err != nil {
		return Note{}, err
	}
	if len(notes) == 0 {
		return Note{}, ErrNotFound
	}
	return notes[0], nil
}

// ByNoteID returns a note that has not expired, or [ErrNotFound].
func (s *Store) ByNoteID(ctx context.Context, id string, now time.Time) (Note, error) {
	return s.one(ctx, "SELECT "+noteColumns+" FROM note WHERE note_id = ? AND (expires IS NULL OR expires > ?)", id, now.UnixMilli())
}

// ByKey returns a note that has not expired, or [ErrNotFound].
func (s *Store) ByKey(ctx context.Context, key string, now time.Time) (Note, error) {
	return s.one(ctx, "SELECT "+noteColumns+" FROM note WHERE key = ? AND (expires IS NULL OR expires > ?)", key, now.UnixMilli())
}

// ByIDs returns the notes that exist, in the order of ids.
func (s *Store) ByIDs(ctx context.Context, ids []int64) ([]Note, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	notes, err := s.notes(ctx, "SELECT "+noteColumns+" FROM note WHERE id IN (SELECT value FROM json_each(?))", string(list))
	places := make(map[int64]int, len(ids))
	for i, id := range ids {
		places[id] = i
	}
	slices.SortFunc(notes, func(a, b Note) int { return cmp.Compare(places[a.ID], places[b.ID]) })
	return notes, err
}

// Listing selects the notes that [Store.List] returns.
type Listing struct {
	Category *rank.Category
	// Prefix is the beginning of the notes' keys; "" selects all notes.
	Prefix string
	// Pinned selects pinned notes only.
	Pinned bool
	// Before is the ID of the last note of the previous page; 0 is the first page.
	Before int64
	Limit  int
	Now    time.Time
}

// maxListed is how many bytes of a note's content a list contains.
const maxListed = 1 << 10

// List returns notes, the newest first, with the beginning of their content. The
// last character of a content may be incomplete.
func (s *Store) List(ctx context.Context, l Listing) ([]Note, error) {
	begin := fmt.Sprintf("substr(CAST(content AS BLOB), 1, %d)", maxListed) // substr of a text would stop at NUL
	query := "SELECT " + strings.Replace(noteColumns, "content", begin, 1) + " FROM note WHERE (expires IS NULL OR expires > ?)"
	args := []any{l.Now.UnixMilli()}
	add := func(condition string, values ...any) {
		query += " AND " + condition
		args = append(args, values...)
	}
	if l.Category != nil {
		add("category = ?", int(*l.Category))
	}
	if l.Prefix != "" {
		add("substr(key, 1, ?) = ?", len([]rune(l.Prefix)), l.Prefix)
	}
	if l.Pinned {
		add("pinned = 1")
	}
	if l.Before > 0 {
		add("id < ?", l.Before)
	}
	return s.notes(ctx, query+" ORDER BY id DESC LIMIT ?", append(args, l.Limit)...)
}

// errEnough ends a query early.
var errEnough = errors.New("enough was read")

// All passes notes in the order in which they were saved, those with an ID above
// after, to take until it returns false.
func (s *Store) All(ctx context.Context, after int64, now time.Time, take func(*Note) bool) error {
	err := s.query(ctx, "SELECT "+noteColumns+" FROM note WHERE id > ? AND (expires IS NULL OR expires > ?) ORDER BY id", func(rows *sql.Rows) error {
		n, err := scan(rows)
		if err == nil && !take(&n) {
			err = errEnough
		}
		return err
	}, after, now.UnixMilli())
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Match returns the IDs of the notes that an FTS5 expression matches, the best
// first.
func (s *Store) Match(ctx context.Context, expression string, limit int) ([]int64, error) {
	return s.ids(ctx, "SELECT rowid FROM note_text WHERE note_text MATCH ? ORDER BY rank LIMIT ?", expression, limit)
}

// Containing returns the IDs of the notes that contain a text, the newest first.
func (s *Store) Containing(ctx context.Context, text string, limit int) ([]int64, error) {
	return s.ids(ctx, "SELECT id FROM note WHERE instr(content, ?) > 0 ORDER BY id DESC LIMIT ?", text, limit)
}

// Phrase returns the FTS5 expression for a phrase. If prefix is set, its last word
// matches as a prefix.
func Phrase(text string, prefix bool) string {
	quoted := `"` + strings.ReplaceAll(strings.ReplaceAll(text, "\x00", " "), `"`, `""`) + `"`
	if prefix {
		return quoted + "*"
	}
	return quoted
}

// AnyOf returns the FTS5 expression for any of the words.
func AnyOf(words []string) string {
	var all []string
	for _, word := range slices.Compact(slices.Sorted(slices.Values(words))) {
		all = append(all, Phrase(word, false))
	}
	return strings.Join(all, " OR ")
}

// Stats are counts of the notes that have not expired. Expired counts those that
// have expired and are not removed yet.
type Stats struct {
	Notes, Expired, Pinned  int
	Core, Daily, Said       int
	Passages, Pending, Keys int
	Oldest, Newest          time.Time
}

// Stats counts the notes.
func (s *Store) Stats(ctx context.Context, now time.Time) (Stats, error) {
	var st Stats
	var oldest, newest sql.NullInt64
	err := s.query(ctx, `SELECT count(*), (SELECT count(*) FROM note WHERE expires <= ?1), count(iif(pinned, 1, NULL)),
		count(iif(category = 0, 1, NULL)), count(iif(category = 1, 1, NULL)), count(iif(category = 2, 1, NULL)),
		count(key), min(created), max(created) FROM note WHERE expires IS NULL OR expires > ?1`, func(rows *sql.Rows) error {
		return rows.Scan(&st.Notes, &st.Expired, &st.Pinned, &st.Core, &st.Daily, &st.Said, &st.Keys, &oldest, &newest)
	}, now.UnixMilli())
	if err != nil {
		return st, err
	}
	st.Oldest, st.Newest = fromMillis(oldest), fromMillis(newest)
	if st.Passages, err = s.number(ctx, "SELECT count(*) FROM passage"); err != nil {
		return st, err
	}
	st.Pending, err = s.Pending(ctx)
	return st, err
}

// Len returns the number of notes, including expired ones that are not removed yet.
func (s *Store) Len(ctx context.Context) (int, error) {
	return s.number(ctx, "SELECT notes FROM meta")
}
