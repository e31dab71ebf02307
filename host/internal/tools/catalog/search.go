package catalog

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
)

// Search returns the tools that fit a query best, the best first, and at most limit of them. It
// looks at the tools of plugins that the caller may use: at their names, aliases, titles, search
// hints, descriptions, plugins and arguments. If no word of the query occurs, it returns tools with
// a similar name.
func (c *Catalog) Search(query string, limit int, mayUse func(tool string) bool) []*Entry {
	words := wordsOf(query)
	var entries []*Entry
	var weights []map[string]float64 // of each entry, by word of the query
	having := make(map[string]int)   // number of entries with a word
	for _, e := range c.Entries() {
		if e.OfHost() || !mayUse(e.Spec.Name) {
			continue
		}
		found := e.weights(words)
		for word := range found {
			having[word]++
		}
		entries, weights = append(entries, e), append(weights, found)
	}
	type scored struct {
		entry *Entry
		score float64
	}
	var all []scored
	for i, e := range entries {
		score := 0.0
		for _, word := range words { // a word that few tools have tells more
			if weight := weights[i][word]; weight > 0 {
				score += weight * math.Log(1+float64(len(entries))/float64(having[word]))
			}
		}
		if score > 0 {
			all = append(all, scored{e, score})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var best []*Entry
	for _, s := range all[:min(limit, len(all))] {
		if s.score*5 < all[0].score { // the rest shares only common words with the query
			break
		}
		best = append(best, s.entry)
	}
	if len(best) == 0 {
		return similar(query, entries, limit)
	}
	return best
}

// similar returns the entries whose names are nearly the query.
func similar(query string, entries []*Entry, limit int) (near []*Entry) {
	byName := make(map[string]*Entry)
	var names []string
	for _, e := range entries {
		byName[e.Spec.Name] = e
		names = append(names, e.Spec.Name)
	}
	for _, name := range schema.Nearest(strings.TrimSpace(query), names) {
		near = append(near, byName[name])
	}
	return near[:min(limit, len(near))]
}

// The weights of a word, by where it occurs.
const (
	weightName        = 4
	weightHint        = 3
	weightDescription = 1
)

// weights returns the weight of each word that occurs in the entry.
func (e *Entry) weights(words []string) map[string]float64 {
	found := make(map[string]float64)
	for _, field := range []struct {
		weight float64
		texts  []string
	}{
		{weightName, []string{e.Spec.Name}},
		{weightHint, append([]string{e.Spec.Title, e.Spec.SearchHint}, e.Aliases...)},
		{weightDescription, append([]string{e.Spec.Description, e.Plugin, e.Spec.Category}, e.arguments()...)},
	} {
		for _, text := range field.texts {
			for _, other := range wordsOf(text) {
				for _, word := range words {
					if found[word] < field.weight && sameWord(word, other) {
						found[word] = field.weight
					}
				}
			}
		}
	}
	return found
}

func (e *Entry) arguments() (names []string) {
	for name := range e.Schema.Names() {
		names = append(names, name)
	}
	return names
}

// wordsOf returns the words of a text in lower case, each once. An underscore separates words.
func wordsOf(text string) (words []string) {
	seen := make(map[string]bool)
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	return words
}

// sameWord reports whether two words are equal or forms of one, such as "commit" and "commits".
func sameWord(a, b string) bool {
	const stem, ending = 4, 3
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || len(a) >= stem && len(b)-len(a) <= ending && strings.HasPrefix(b, a)
}
