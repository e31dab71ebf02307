package rank

import (
	"cmp"
	"slices"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/keywords"
)

const (
	// rarest is how many of the rarest terms of a text are looked up.
	rarest = 8
	// alike is the maximum number of passages to return the notes of.
	alike = 5
)

// Alike returns notes of a category that share the rarest terms of a text:
// candidates for nearly identical notes.
func (x *Index) Alike(terms []keywords.Term, category Category, now time.Time) []int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	terms = slices.Clone(terms)
	slices.SortFunc(terms, func(a, b keywords.Term) int {
		return cmp.Or(cmp.Compare(x.words.Count(a.Text), x.words.Count(b.Text)), cmp.Compare(a.Text, b.Text))
	})
	var query []keywords.Query
	for _, t := range terms {
		if len(query) < rarest && x.words.Count(t.Text) > 0 {
			query = append(query, keywords.Query{Term: t.Text})
		}
	}
	keep := x.keep(Filter{Only: category, OnlySet: true, Conversation: true}, now)
	var ids []int64
	for _, h := range x.words.Search(query, alike, func(slot uint32) bool { return keep(x.owner[slot]) }) {
		if id := x.notes[x.owner[h.Slot]].id; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
