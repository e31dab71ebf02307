package embed

import (
	"context"
	"math"

	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
)

// LocalDimension is the dimension of the vectors of [Local].
const LocalDimension = 384

const (
	// partsWeight is the weight of all parts of a word together, relative to the
	// word.
	partsWeight = 1.4
	// The lengths of a word's parts in characters. Each end of the word counts as a
	// character.
	minPart, maxPart = 3, 5
	// repeated limits the weight of further occurrences of a word.
	repeated = 0.5
)

// Local embeds without a model: it hashes words and their parts into a vector, so
// that texts with common words or parts of words are near each other. It finds
// misspelled words, but knows nothing of meaning. It keeps no state: the same text
// always has the same vector.
type Local struct{}

var _ Embedder = Local{}

// Name implements [Embedder].
func (Local) Name() string { return "local-1" }

// Label implements [Embedder].
func (l Local) Label() string { return l.Name() }

// Embed implements [Embedder]. It never fails.
func (Local) Embed(_ context.Context, texts []string) ([][]float32, error) {
	all := make([][]float32, len(texts))
	for i, text := range texts {
		all[i] = Hash(terms.Words(text), nil)
	}
	return all, nil
}

// Hash returns the vector of words. rarity returns the weight of a term in a query;
// nil means 1 for all terms. A text without words has an arbitrary but fixed
// vector.
func Hash(words []terms.Word, rarity func(term string) float64) []float32 {
	v := make([]float32, LocalDimension)
	weight := make(map[string]float64, len(words))
	for _, w := range words {
		weight[w.Term]++
	}
	for term, count := range weight {
		weight[term] = count / (count + repeated) * (1 + repeated)
		if rarity != nil {
			weight[term] *= rarity(term)
		}
	}
	for _, w := range words {
		if weight[w.Term] == 0 {
			continue // a repetition
		}
		put(v, hash(wordSeed, w.Term), weight[w.Term])
		putParts(v, w.Folded, weight[w.Term]*partsWeight)
		weight[w.Term] = 0
	}
	normalize(v)
	return v
}

// putParts adds the parts of a word.
func putParts(v []float32, word string, weight float64) {
	runes := append(append([]rune{'^'}, []rune(word)...), '$')
	count := 0
	for n := minPart; n <= maxPart; n++ {
		count += max(0, len(runes)-n+1)
	}
	weight /= math.Sqrt(float64(max(count, 1)))
	for n := minPart; n <= maxPart; n++ {
		for i := 0; i+n <= len(runes); i++ {
			put(v, hash(partSeed, string(runes[i:i+n])), weight)
		}
	}
}

// The seeds separate words from parts of words. The first is the offset basis of
// FNV-1a.
const (
	wordSeed = 14695981039346656037
	partSeed = wordSeed ^ 0xc2b2ae3d27d4eb4f
)

// hash returns the FNV-1a hash of a text, starting with a seed.
func hash(seed uint64, text string) uint64 {
	for i := range len(text) {
		seed = (seed ^ uint64(text[i])) * 1099511628211
	}
	return (seed ^ 0xff) * 1099511628211
}

// put adds or subtracts a feature at the place that its hash selects.
func put(v []float32, h uint64, weight float64) {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	if h>>63 == 1 {
		weight = -weight
	}
	v[h%uint64(len(v))] += float32(weight)
}

// normalize scales v to the length 1. A zero vector becomes a unit vector.
func normalize(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		v[0] = 1
		return
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) * scale)
	}
}
