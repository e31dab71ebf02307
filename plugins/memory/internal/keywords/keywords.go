// Package keywords finds texts that share terms with a query, by BM25 over an index
// in memory. The caller numbers the texts with small slot numbers. An [Index] is
// not safe for concurrent changes. Any number of searches may run while no change
// does.
package keywords

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
)

// Parameters of BM25: k1 limits the effect of repeated terms, b sets the effect of
// a text's length. Notes are short, so both are low.
const (
	k1 = 0.9
	b  = 0.3
)

// Term is a term of a text with the number of its occurrences.
type Term struct {
	Text  string
	Count int
}

// Hit is a found text.
type Hit struct {
	Slot  uint32
	Score float32
}

// Index is an inverted index. Make it with [New].
type Index struct {
	ids      map[string]uint32
	postings [][]posting // by id
	lengths  []uint16    // by slot, in terms
	total    uint64      // of all lengths
	texts    int
	bytes    int64
	scratch  sync.Pool
}

// posting is a term in a text.
type posting struct {
	slot  uint32
	count uint16
}

// New returns an empty index.
func New() *Index {
	x := &Index{ids: map[string]uint32{}}
	x.scratch.New = func() any { return &scratch{} }
	return x
}

// scratch is the working memory of one search.
type scratch struct {
	scores []float32 // by slot
	found  []uint32
}

// Add adds a text. It keeps no reference to terms. Slots must grow; a skipped slot
// is a text without terms.
func (x *Index) Add(slot uint32, terms []Term) {
	for uint32(len(x.lengths)) <= slot {
		x.lengths = append(x.lengths, 0)
	}
	length := 0
	for _, t := range terms {
		id, known := x.ids[t.Text]
		if !known {
			id = x.addTerm(t.Text)
		}
		before := cap(x.postings[id])
		x.postings[id] = append(x.postings[id], posting{slot, uint16(min(t.Count, math.MaxUint16))})
		x.bytes += postingBytes * int64(cap(x.postings[id])-before)
		length += t.Count
	}
	x.lengths[slot] = uint16(min(length, math.MaxUint16))
	x.total += uint64(x.lengths[slot])
	x.texts++
}

// Approximate sizes in memory.
const (
	postingBytes = 8
	termBytes    = 96 // without its text and postings
	slotBytes    = 8  // its length, and its score in a search
)

// Bytes returns the approximate memory that the index takes.
func (x *Index) Bytes() int64 { return x.bytes + slotBytes*int64(len(x.lengths)) }

func (x *Index) addTerm(text string) uint32 {
	x.bytes += termBytes + int64(len(text))
	id := uint32(len(x.postings))
	x.ids[strings.Clone(text)] = id // text is part of a longer string
	x.postings = append(x.postings, nil)
	return id
}

// Remove removes a text from the number of texts and from their total length. Its
// terms stay until the index is rebuilt, so the keep function of a search must
// exclude its slot.
func (x *Index) Remove(slot uint32) {
	if int(slot) < len(x.lengths) {
		x.total -= uint64(x.lengths[slot])
		x.lengths[slot] = 0
		x.texts--
	}
}

// Count returns how many texts have a term.
func (x *Index) Count(term string) int {
	if id, known := x.ids[term]; known {
		return len(x.postings[id])
	}
	return 0
}

// Rarity returns the weight of a term: the fewer texts have it, the higher.
func (x *Index) Rarity(term string) float64 {
	return x.rarity(x.Count(term))
}

func (x *Index) rarity(texts int) float64 {
	n := float64(texts)
	return math.Log(1 + (float64(max(x.texts, texts))-n+0.5)/(n+0.5))
}

// Query is a term to search for and its weight. A weight of 0 means 1.
type Query struct {
	Term   string
	Weight float64
}

// Search returns the best n texts that have any of the terms and that keep selects,
// the best first; of two equal ones, the newer first. A nil keep selects all.
func (x *Index) Search(query []Query, n int, keep func(slot uint32) bool) []Hit {
	s, ok := x.scratch.Get().(*scratch)
	if !ok {
		s = &scratch{}
	}
	defer x.scratch.Put(s)
	if len(s.scores) < len(x.lengths) {
		s.scores = make([]float32, max(len(x.lengths), cap(x.lengths)))
	}
	average := float64(x.total) / float64(max(x.texts, 1))
	for _, q := range query {
		if id, known := x.ids[q.Term]; known {
			s.add(x.postings[id], x.lengths, x.rarity(len(x.postings[id]))*cmp.Or(q.Weight, 1), average)
		}
	}
	hits := make([]Hit, 0, len(s.found))
	for _, slot := range s.found {
		if keep == nil || keep(slot) {
			hits = append(hits, Hit{slot, s.scores[slot]})
		}
		s.scores[slot] = 0
	}
	s.found = s.found[:0]
	return Best(hits, n)
}

// add adds the scores of the texts with a term.
func (s *scratch) add(postings []posting, lengths []uint16, rarity, average float64) {
	scale, flat, slope := float32(rarity*(k1+1)), float32(k1*(1-b)), float32(k1*b/math.Max(average, 1))
	for _, p := range postings {
		count := float32(p.count)
		if s.scores[p.slot] == 0 {
			s.found = append(s.found, p.slot)
		}
		s.scores[p.slot] += scale * count / (count + flat + slope*float32(lengths[p.slot]))
	}
}

// Best returns the best n hits, the best first.
func Best(hits []Hit, n int) []Hit {
	better := func(a, b Hit) int {
		if c := cmp.Compare(b.Score, a.Score); c != 0 {
			return c
		}
		return cmp.Compare(b.Slot, a.Slot)
	}
	if n > 0 && len(hits) > 4*n {
		hits = atLeast(hits, n)
	}
	slices.SortFunc(hits, better)
	return hits[:min(len(hits), max(n, 0))]
}

// atLeast removes hits that cannot be among the best n without sorting all: it
// counts hits by score and keeps the ranges that hold the best.
func atLeast(hits []Hit, n int) []Hit {
	const steps = 1024
	var highest float32
	for _, h := range hits {
		highest = max(highest, h.Score)
	}
	if highest <= 0 {
		return hits
	}
	var counts [steps + 1]int
	scale := steps / highest
	for _, h := range hits {
		counts[int(max(h.Score, 0)*scale)]++
	}
	floor, above := steps, counts[steps]
	for above < n && floor > 0 {
		floor--
		above += counts[floor]
	}
	return slices.DeleteFunc(hits, func(h Hit) bool { return int(max(h.Score, 0)*scale) < floor })
}
