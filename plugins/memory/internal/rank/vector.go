package rank

import (
	"cmp"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed"
	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
)

// Embed returns the vector of a query in the local embedder's space. Rare terms
// weigh more, and misspelled words are corrected.
func (x *Index) Embed(text string) []float32 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	words := terms.Words(text)
	corrected := map[terms.Word]terms.Word{}
	for _, w := range x.unknown(words) {
		best, count := w, 0
		terms.Near(w.Folded, func(term string) {
			if n := x.words.Count(term); n > count {
				best, count = terms.Word{Folded: term, Term: term}, n
			}
		})
		corrected[w] = best
	}
	for i, w := range words {
		words[i] = cmp.Or(corrected[w], w)
	}
	return embed.Hash(words, x.words.Rarity)
}
