// Package keywords finds texts by the terms that they share with a query, by
// BM25 over an index in memory. Texts are known by small numbers that the caller
// gives them. An [Index] is not safe for concurrent changes; any number of
// searches may run while nothing changes it.
package keywords

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
)

// BM25: how soon more of a term adds nothing, and how much a text's length
// counts. Notes are short, so that both are low.
const (
	k1 = 0.9
	b  = 0.3
)

// Term is a term of a text and how often it is there.
type Term struct {
	Text  string
	Count int
}

// Hit is a text that was found.
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

// scratch is what one search adds up.
type scratch struct {
	scores []float32 // by slot
	found  []uint32
}

// Add adds a text, and keeps nothing of terms. Slots grow: a slot that was left
// out is a text without terms.
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

// About what the index takes of memory.
const (
	postingBytes = 8
	termBytes    = 96 // beside its text and its postings
	slotBytes    = 8  // its length, and its score in a search
)

// Bytes returns about how much memory the index takes.
func (x *Index) Bytes() int64 { return x.bytes + slotBytes*int64(len(x.lengths)) }

func (x *Index) addTerm(text string) uint32 {
	x.bytes += termBytes + int64(len(text))
	id := uint32(len(x.postings))
	x.ids[strings.Clone(text)] = id // it is a part of a longer one
	x.postings = append(x.postings, nil)
	return id
}

// Remove takes a text out of the count of texts and of their lengths. Its terms
// stay until the index is made anew: a search's keep must refuse its slot.
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

// Rarity says how much a term says about a text: more if few have it.
func (x *Index) Rarity(term string) float64 {
	return x.rarity(x.Count(term))
}

func (x *Index) rarity(texts int) float64 {
	n := float64(texts)
	return math.Log(1 + (float64(max(x.texts, texts))-n+0.5)/(n+0.5))
}

// Query is a term to search for and what it weighs; 0 is 1.
type Query struct {
	Term   string
	Weight float64
}

// Search returns the texts that have any of the terms and that keep accepts, all
// of them if it is nil: the best n, the best first, and the newer of two that
// are as good.
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

// add adds what the texts with a term get for it.
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

// atLeast leaves out hits that are not among the best n, without sorting all: it
// counts them by their score and keeps the counters that hold the best.
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
