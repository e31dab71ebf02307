package rank

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/keywords"
	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
)

const (
	// best is how many notes of each kind of search are looked at.
	best = 1000
	// rescored is how many of those found by their words are compared by their
	// vectors in any case.
	rescored = 200
	// many texts are so many that what half of them reach says nothing.
	many = 50
	// highestMiddle bounds that, as a share of the best.
	highestMiddle = 0.9
	// ofSession is what a note gets of the best score in its session.
	ofSession = 0.2
	// sourceNamed is the factor of notes whose source the query names.
	sourceNamed = 1.7
	// nearWeight is what a term counts that is only like one of the query.
	nearWeight = 0.6
	// inIDs is what a note gets for being one of those that may count: it is found,
	// whatever its words are.
	inIDs = 0.01
	// maxCorrected bounds the words of a query that are taken for misspelled ones:
	// each is compared with a thousand others.
	maxCorrected = 32
	// Older notes count less, but never less than agedLeast of what they would.
	agedLeast = 0.85
)

// shares says what of a note's score those around it get in their session: the
// second before it, the one before, itself, the one after, and the second after.
var shares = [5]float64{0.2, 0.3, 0, 0.5, 0.2}

// halfLife says how soon notes of a category count less; 0 is never.
var halfLife = [categories]time.Duration{Daily: 14 * 24 * time.Hour, Conversation: 30 * 24 * time.Hour}

// A Query says what is searched.
type Query struct {
	Text string
	// Vector is that of Text; nil searches by words only.
	Vector []float32
	// Words and Near weigh the two kinds of search; 0 leaves one out.
	Words, Near float64
	// Correct takes words that no note has for misspelled ones.
	Correct bool
	// Least is how near a note must be that has no word of the query.
	Least float64
	// Limit is how many notes are returned.
	Limit int
	// Filter says which notes count.
	Filter Filter
	// Now is the time.
	Now time.Time
}

// A Hit is a note that was found. The best score of words or vectors alone is 1
// before what stands around a note is added.
type Hit struct {
	ID    int64
	Score float64
	At    time.Time
	// Passage says which part of the note fits best.
	Passage int
}

// Search returns the notes that fit the query best, the best first.
func (x *Index) Search(ctx context.Context, q Query) ([]Hit, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	keep := x.keep(q.Filter, q.Now)
	byWords := x.searchWords(q, keep)
	scores, parts := map[uint32]float64{}, map[uint32]uint32{}
	if q.Words > 0 {
		x.fuse(scores, parts, byWords, q.Words, false)
	}
	if q.Near > 0 && q.Vector != nil {
		byVector, err := x.searchVectors(ctx, q, keep, byWords)
		if err != nil {
			return nil, err
		}
		x.fuse(scores, parts, byVector, q.Near, q.Words > 0)
	}
	x.smooth(scores, keep)
	for id := range q.Filter.IDs {
		if place, known := x.byID[id]; known && keep(place) {
			scores[place] += inIDs
		}
	}
	x.favor(scores, q)
	hits := make([]Hit, 0, len(scores))
	for place, score := range scores {
		if n := &x.notes[place]; score > 0 {
			hits = append(hits, Hit{ID: n.id, Score: score, At: time.Unix(n.at, 0), Passage: int(parts[place])})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.At.Compare(a.At), cmp.Compare(b.ID, a.ID))
	})
	return hits[:min(len(hits), q.Limit)], nil
}

// Newest returns the newest of the hits that reach a share of the best score, the
// newest first.
func Newest(hits []Hit, share float64, limit int) []Hit {
	hits = slices.DeleteFunc(slices.Clone(hits), func(h Hit) bool { return h.Score < share*hits[0].Score })
	slices.SortStableFunc(hits, func(a, b Hit) int { return b.At.Compare(a.At) })
	return hits[:min(len(hits), limit)]
}

// searchWords finds slots by the terms of the query.
func (x *Index) searchWords(q Query, keep func(place uint32) bool) []keywords.Hit {
	if q.Words <= 0 {
		return nil
	}
	var query []keywords.Query
	seen := map[string]bool{}
	add := func(term string, weight float64) {
		if !seen[term] {
			seen[term] = true
			query = append(query, keywords.Query{Term: term, Weight: weight})
		}
	}
	words := terms.Words(q.Text)
	for _, w := range words {
		add(w.Term, 1)
	}
	if q.Correct {
		for _, w := range x.unknown(words) {
			terms.Near(w.Folded, func(term string) {
				if x.words.Count(term) > 0 {
					add(term, nearWeight)
				}
			})
		}
	}
	return x.words.Search(query, best, func(slot uint32) bool { return keep(x.owner[slot]) })
}

// unknown returns the words that no note has, the first of them.
func (x *Index) unknown(words []terms.Word) []terms.Word {
	var all []terms.Word
	for _, w := range words {
		if len(all) < maxCorrected && x.words.Count(w.Term) == 0 && !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// searchVectors finds slots by the vector of the query.
func (x *Index) searchVectors(ctx context.Context, q Query, keep func(place uint32) bool, byWords []keywords.Hit) ([]keywords.Hit, error) {
	also := make([]uint32, 0, rescored)
	for _, h := range byWords[:min(len(byWords), rescored)] {
		also = append(also, h.Slot)
	}
	var keepSlot func(slot uint32) bool
	if !q.Filter.none(x, q.Now) {
		keepSlot = func(slot uint32) bool { return keep(x.owner[slot]) }
	}
	var all []keywords.Hit
	for i, near := range x.near {
		if i == Conversation.collection() && !q.Filter.Conversation {
			continue
		}
		found, err := near.Search(ctx, q.Vector, best+rescored, keepSlot, also)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if float64(f.Score) > q.Least && keep(x.owner[f.Slot]) {
				all = append(all, keywords.Hit{Slot: f.Slot, Score: f.Score})
			}
		}
	}
	return keywords.Best(all, best+rescored), nil
}

// fuse adds what notes get for the slots that were found, the best of which gets
// weight; if it is raised, what is below the middle gets nothing. A note gets what
// the best of its passages does, whose place goes to parts.
func (x *Index) fuse(scores map[uint32]float64, parts map[uint32]uint32, hits []keywords.Hit, weight float64, raised bool) {
	if len(hits) == 0 || hits[0].Score <= 0 {
		return
	}
	// What half of many texts reach says nothing; of a few it may.
	floor := 0.0
	if raised {
		middle := min(hits[len(hits)/2].Score, highestMiddle*hits[0].Score) // all may be the same
		floor = float64(middle) * min(1, float64(len(hits))/many)
	}
	scale := weight / (float64(hits[0].Score) - floor)
	var done map[uint32]bool // notes of several passages
	for _, h := range hits {
		place := x.owner[h.Slot]
		if n := &x.notes[place]; n.slots > 1 {
			if done[place] {
				continue
			}
			if done == nil {
				done = map[uint32]bool{}
			}
			done[place] = true
			if _, known := parts[place]; !known {
				parts[place] = h.Slot - n.firstSlot
			}
		}
		scores[place] += max(0, float64(h.Score)-floor) * scale
	}
}

// smooth adds to each note of a session something of the scores of those before
// and after it, since an answer stands next to its question, and of the best of
// the session, which is about something.
func (x *Index) smooth(scores map[uint32]float64, keep func(place uint32) bool) {
	added, top := map[uint32]float64{}, map[uint32]float64{}
	for _, place := range slices.Sorted(maps.Keys(scores)) { // sums are the same each time
		n, score := &x.notes[place], scores[place]
		if !n.threaded() {
			continue
		}
		thread := x.threads[n.session]
		here, _ := slices.BinarySearchFunc(thread, n.seq, func(other uint32, seq int64) int {
			return cmp.Compare(x.notes[other].seq, seq)
		})
		for d, share := range shares {
			if i := here + d - len(shares)/2; share > 0 && i >= 0 && i < len(thread) && keep(thread[i]) {
				added[thread[i]] += share * score
			}
		}
	}
	for place, score := range added {
		scores[place] += score
	}
	for place, score := range scores {
		session := x.notes[place].session
		top[session] = max(top[session], score)
	}
	for place := range scores {
		if n := &x.notes[place]; n.session != 0 && n.category == Conversation {
			scores[place] += ofSession * top[n.session]
		}
	}
}

// favor multiplies scores by what speaks for a note beside its text.
func (x *Index) favor(scores map[uint32]float64, q Query) {
	named := x.named(q.Text)
	for place, score := range scores {
		n := &x.notes[place]
		if n.source != 0 && named[n.source] {
			score *= sourceNamed
		}
		if half := halfLife[n.category]; half > 0 && !n.pinned {
			age := max(q.Now.Sub(time.Unix(n.at, 0)), 0)
			score *= agedLeast + (1-agedLeast)*math.Exp2(-age.Hours()/half.Hours())
		}
		scores[place] = score
	}
}

// named returns the sources of which the text has all words.
func (x *Index) named(text string) map[uint32]bool {
	words := map[string]bool{}
	for _, w := range terms.Split(text) {
		words[w] = true
	}
	named := map[uint32]bool{}
	for word := range words {
		for _, source := range x.sources[word] {
			rest := terms.Split(x.names.text(source))
			named[source] = !slices.ContainsFunc(rest, func(w string) bool { return !words[w] })
		}
	}
	return named
}
