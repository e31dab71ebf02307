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

// Mode says what a search goes by.
type Mode string

// The modes.
const (
	// Hybrid goes by words, also misspelled ones, and by vectors.
	Hybrid Mode = "hybrid"
	// Vector goes by vectors only.
	Vector Mode = "vector"
	// Keyword goes by the words as they are written, apart from endings.
	Keyword Mode = "keyword"
)

// Search says what is searched.
type Search struct {
	Text   string
	Mode   Mode
	Limit  int
	Filter rank.Filter
	// Words and Near weigh words and vectors in a hybrid search.
	Words, Near float64
	// Recent puts the newest of what was found first.
	Recent bool
	Now    time.Time
}

// Found is a note that was found.
type Found struct {
	store.Note
	Score float64
	// Part is what of the content fits best.
	Part terms.Passage
}

// ErrVectors says that a search by vectors cannot be made; errors that wrap it
// say why.
var ErrVectors = errors.New("vectors cannot be searched now")

// How near a note must be, by vectors without a model, that has none of the
// words: what is further has parts of words in common by chance.
const (
	leastHybrid = 0.2
	leastVector = 0.1
)

// recentShare is what a note must reach of the best one's score to be put before
// it for being newer.
const recentShare = 0.5

// Search returns the notes that fit best, the best first, and what the caller
// should know about how they were found, or "".
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
		if err := u.anew(ctx, q.Vector); err != nil {
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

// replaced says why vectors cannot be compared.
const replaced = "the embedder's model was replaced, and the notes are being embedded anew"

// anew has all notes embedded anew, by a model whose vectors are like this one.
func (u *User) anew(ctx context.Context, vector []float32) error {
	err := u.store.Write(ctx, func(tx *store.Tx) error { return tx.Dimension(vector) })
	u.set.Embed()
	return err
}

// addVector adds the vector of the query. Without one, a hybrid search goes by
// words, and the caller is told.
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
			return fmt.Sprintf("%d passages of notes have no vector: they were searched by their words only", pending), nil
		}
		return "", nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case mode == Vector:
		return "", fmt.Errorf("%w: %w: %w", ErrVectors, errNoEmbedder, err)
	}
	q.Words, q.Near = 1, 0
	return "only words were searched, since the embedder does not answer: " + err.Error(), nil
}

// read returns the notes that were found. One that was removed meanwhile is left
// out.
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

// part returns a passage of a content, the last if it has become shorter meanwhile.
func part(content string, passage int) terms.Passage {
	parts := terms.Passages(content)
	return parts[min(passage, len(parts)-1)]
}

const (
	// maxQuoted bounds the notes that phrases of a query leave over.
	maxQuoted = 10_000
	// maxWithin bounds the phrases of a query for which all notes are read.
	maxWithin = 4
)

// quoted finds the notes that have every phrase in quotation marks, and every
// beginning of a word that ends in an asterisk. It returns nil if there are none
// in the query; and the query without the marks.
func (u *User) quoted(ctx context.Context, query string) (map[int64]bool, string, error) {
	var wanted, within []string
	parts := strings.Split(query, `"`)
	for i, part := range parts {
		if i%2 == 1 && i < len(parts)-1 {
			switch {
			case terms.Unspaced(part): // FTS5 finds whole words only
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

// searchText searches without an index, by the words as they are.
func (u *User) searchText(ctx context.Context, s Search, only map[int64]bool) ([]Found, string, error) {
	if s.Mode == Vector {
		return nil, "", fmt.Errorf("%w: the notes take more memory than the plugin has", ErrVectors)
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
	return found, "only words were searched, as they are written: the notes take more memory than the plugin has", nil
}
