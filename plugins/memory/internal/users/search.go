package users

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
	"github.com/toolhost/toolhost/plugins/memory/internal/vectors"
)

// Mode is the way to search.
type Mode string

// The modes.
const (
	// Hybrid searches by words, correcting misspelled ones, and by vectors.
	Hybrid Mode = "hybrid"
	// Vector searches by vectors only.
	Vector Mode = "vector"
	// Keyword searches by words as they are spelled, except for endings.
	Keyword Mode = "keyword"
)

// Search describes a search.
type Search struct {
	Text   string
	Mode   Mode
	Limit  int
	Filter rank.Filter
	// Words and Near are the weights of words and vectors in a hybrid search.
	Words, Near float64
	// Recent sorts the newest of the best hits first.
	Recent bool
	Now    time.Time
}

// Found is a note that a search found.
type Found struct {
	store.Note
	Score float64
	// Part is the passage of the content that matches best.
	Part terms.Passage
}

// ErrVectors means that vectors cannot be searched now. Errors that wrap it give
// the reason.
var ErrVectors = errors.New("vector search is not available now")

// The similarity, by the local embedder, that a note without any word of the query
// must exceed. Notes below it share parts of words by chance.
const (
	leastHybrid = 0.2
	leastVector = 0.1
)

// recentShare is the share of the best score that a note must reach to be sorted
// before the best one for being newer.
const recentShare = 0.5

// Search returns the notes that match best, the best first. The string is a message
// for the caller about a limitation of the search, or "".
func (u *User) Search(ctx context.Context, s Search) ([]Found, string, error) {
	index, err := u.Index(ctx)
	if err != nil {
		return nil, "", err
	}
	only, plain, err := u.quoted(ctx, s.Text)
	if err != nil {
		return nil, "", err
	}
	if index == nil {
		return u.searchText(ctx, s, only)
	}
	q := rank.Query{
		Text: plain, Words: s.Words, Near: s.Near, Correct: s.Mode != Keyword, Limit: s.Limit, Filter: s.Filter, Now: s.Now,
	}
	q.Filter.IDs = only
	note := ""
	if s.Mode == Keyword || s.Near == 0 && s.Mode == Hybrid {
		q.Words, q.Near = 1, 0
	} else if note, err = u.addVector(ctx, index, &q, s.Mode); err != nil {
		return nil, "", err
	}
	if s.Recent {
		q.Limit = max(5*s.Limit, 50)
	}
	hits, err := index.Search(ctx, q)
	if errors.Is(err, vectors.ErrDimension) {
		if err := u.reembed(ctx, q.Vector); err != nil {
			return nil, "", err
		}
		if s.Mode == Vector {
			return nil, "", fmt.Errorf("%w: %s", ErrVectors, replaced)
		}
		note, q.Words, q.Near = "only words were searched: "+replaced, 1, 0
		hits, err = index.Search(ctx, q)
	}
	if err != nil {
		return nil, "", err
	}
	if s.Recent {
		hits = rank.Newest(hits, recentShare, s.Limit)
	}
	found, err := u.read(ctx, hits, s.Now)
	return found, note, err
}

// replaced is the reason for which vectors cannot be compared.
const replaced = "the embedder's model changed, and the notes are being embedded again"

// reembed discards all vectors, which have another dimension than vector, and
// embeds all notes again in the background.
func (u *User) reembed(ctx context.Context, vector []float32) error {
	err := u.store.Write(ctx, func(tx *store.Tx) error { return tx.Dimension(vector) })
	u.set.Embed()
	return err
}

// addVector adds the vector to the query. If there is none, a hybrid search uses
// words only and the returned message reports it.
func (u *User) addVector(ctx context.Context, index *rank.Index, q *rank.Query, mode Mode) (string, error) {
	if mode == Vector {
		q.Words, q.Near = 0, 1
	}
	if u.set.queries.local {
		q.Vector, q.Least = index.Embed(q.Text), leastHybrid
		if mode == Vector {
			q.Least = leastVector
		}
		return "", nil
	}
	vector, err := u.set.queries.query(ctx, q.Text)
	switch {
	case err == nil:
		q.Vector = vector
		if pending := index.Pending(); pending > 0 {
			return fmt.Sprintf("%d passages have no vector yet: they were searched by words only", pending), nil
		}
		return "", nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case mode == Vector:
		return "", fmt.Errorf("%w: %w: %w", ErrVectors, errNoEmbedder, err)
	}
	q.Words, q.Near = 1, 0
	return "only words were searched because the embedder does not respond: " + err.Error(), nil
}

// read returns the found notes, without those removed meanwhile.
func (u *User) read(ctx context.Context, hits []rank.Hit, now time.Time) ([]Found, error) {
	ids := make([]int64, len(hits))
	byID := make(map[int64]rank.Hit, len(hits))
	for i, h := range hits {
		ids[i], byID[h.ID] = h.ID, h
	}
	notes, err := u.store.ByIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	found := make([]Found, 0, len(notes))
	for _, n := range notes {
		if !n.Expired(now) {
			found = append(found, Found{n, byID[n.ID].Score, part(n.Content, byID[n.ID].Passage)})
		}
	}
	return found, nil
}

// part returns a passage of a content. If the content has become shorter meanwhile,
// it returns the last passage.
func part(content string, passage int) terms.Passage {
	parts := terms.Passages(content)
	return parts[min(passage, len(parts)-1)]
}

const (
	// maxQuoted bounds the notes that the phrases of a query select.
	maxQuoted = 10_000
	// maxWithin bounds the phrases of a query that are looked for in the text of
	// all notes.
	maxWithin = 4
)

// quoted finds the notes that contain every phrase in quotation marks and every
// word prefix that ends in an asterisk. The map is nil if the query has neither.
// The string is the query without the marks.
func (u *User) quoted(ctx context.Context, query string) (map[int64]bool, string, error) {
	var wanted, within []string
	parts := strings.Split(query, `"`)
	for i, part := range parts {
		if i%2 == 1 && i < len(parts)-1 {
			switch {
			case terms.Unspaced(part): // FTS5 matches whole words only
				within = append(within, part)
			case len(terms.Split(part)) > 0:
				wanted = append(wanted, store.Phrase(part, false))
			}
			continue
		}
		for word := range strings.FieldsSeq(part) {
			if begin, ok := strings.CutSuffix(word, "*"); ok && len(terms.Split(begin)) > 0 {
				wanted = append(wanted, store.Phrase(begin, true))
			}
		}
	}
	var only map[int64]bool
	narrow := func(ids []int64, err error) error {
		next := make(map[int64]bool, len(ids))
		for _, id := range ids {
			if only == nil || only[id] {
				next[id] = true
			}
		}
		only = next
		return err
	}
	if len(wanted) > 0 {
		if err := narrow(u.store.Match(ctx, strings.Join(wanted, " AND "), maxQuoted)); err != nil {
			return nil, "", err
		}
	}
	for _, text := range within[:min(len(within), maxWithin)] {
		if err := narrow(u.store.Containing(ctx, text, maxQuoted)); err != nil {
			return nil, "", err
		}
	}
	return only, strings.NewReplacer(`"`, " ", "*", " ").Replace(query), nil
}

// searchText searches without an index, by words as they are spelled.
func (u *User) searchText(ctx context.Context, s Search, only map[int64]bool) ([]Found, string, error) {
	if s.Mode == Vector {
		return nil, "", fmt.Errorf("%w: the index of the notes does not fit into memory", ErrVectors)
	}
	var ids []int64
	if only != nil {
		ids = slices.SortedFunc(maps.Keys(only), func(a, b int64) int { return cmp.Compare(b, a) })
	}
	if words := terms.Words(s.Text); len(words) > 0 {
		folded := make([]string, len(words))
		for i, w := range words {
			folded[i] = w.Folded
		}
		matched, err := u.store.Match(ctx, store.AnyOf(folded), maxQuoted)
		if err != nil {
			return nil, "", err
		}
		ids = append(slices.DeleteFunc(matched, func(id int64) bool { return only != nil && !only[id] }), ids...)
	}
	var found []Found
	seen := map[int64]bool{}
	for _, id := range ids {
		if len(found) == s.Limit {
			break
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		notes, err := u.store.ByIDs(ctx, []int64{id})
		if err != nil {
			return nil, "", err
		}
		for _, n := range notes {
			if s.Filter.Accepts(n.Category, n.Tags, n.At(), n.Expires, s.Now) {
				found = append(found, Found{n, 1 / float64(len(found)+1), part(n.Content, 0)})
			}
		}
	}
	return found, "only words were searched, exactly as spelled: the index of the notes does not fit into memory", nil
}
