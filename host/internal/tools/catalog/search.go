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
	words := slices.DeleteFunc(wordsOf(query), isFiller)
	var entries []*Entry
	var weights []map[string]float64 // of each entry, by word of the query
	having := make(map[string]int)   // number of entries with a word
	for _, e := range c.Entries() {
		if e.OfHost() || !mayUse(e.Spec.Name) {
			continue
		}
		found := e.weights(words)
		for word, weight := range found {
			if weight > 0 {
				having[word]++
			}
		}
		entries, weights = append(entries, e), append(weights, found)
	}
	type scored struct {
		entry *Entry
		score float64
	}
	var all []scored
	for i, e := range entries {
		score, found := 0.0, 0
		for _, word := range words { // a word that few tools have tells more
			if weight := weights[i][word]; weight > 0 {
				score += weight * math.Log(1+float64(len(entries))/float64(having[word]))
				found++
			}
		}
		if found > 0 { // all words in a description are worth more than one in a name
			all = append(all, scored{e, score * float64(found) / float64(len(words))})
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

// isFiller reports whether a word says nothing about a tool.
func isFiller(word string) bool {
	switch word {
	case "a", "an", "the", "and", "or", "of", "to", "in", "on", "by", "for", "with", "from", "is", "it", "its", "my", "me", "this", "that", "tool", "use", "how", "what":
		return true
	}
	return false
}

// The weights of a word, by where it occurs.
const (
	weightName        = 2
	weightHint        = 2
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
					found[word] = max(found[word], field.weight*likeness(word, other))
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

// likeness returns 1 for equal words, less for forms of one word, such as "commit" and
// "commits", and 0 for others.
func likeness(a, b string) float64 {
	const stem, ending = 4, 3
	if len(a) > len(b) {
		a, b = b, a
	}
	switch {
	case a == b:
		return 1
	case len(a) >= stem && len(b)-len(a) <= ending && strings.HasPrefix(b, a):
		return 0.8
	}
	return 0
}
