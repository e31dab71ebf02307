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
	// best is how many of the best hits by words, and by vectors, are considered.
	best = 1000
	// rescored is how many of the best hits by words are compared by vector even if
	// their vectors are not among the nearest.
	rescored = 200
	// many is the number of hits from which on a score that half of them reach
	// counts nothing.
	many = 50
	// highestMiddle bounds that score, as a share of the best one.
	highestMiddle = 0.9
	// ofSession is the share of the best score in a session that each note of the
	// session gets.
	ofSession = 0.2
	// sourceNamed is the factor for notes whose source the query names.
	sourceNamed = 1.7
	// nearWeight is the weight of a term that is only similar to one of the query.
	nearWeight = 0.6
	// inIDs is the score added to each note in Filter.IDs, so that it is found even
	// if none of its words match.
	inIDs = 0.01
	// maxCorrected bounds how many words of a query are corrected. Each correction
	// looks up about a thousand words.
	maxCorrected = 32
	// agedLeast is the least share of its score that an old note keeps.
	agedLeast = 0.85
)

// shares are the shares of a note's score that its neighbors in the session get:
// the second before it, the one before it, itself, the one after it, and the second
// after it.
var shares = [5]float64{0.2, 0.3, 0, 0.5, 0.2}

// halfLife is the age at which a note of a category has lost half of the score that age can
// cost. 0 means that age does not matter.
var halfLife = [categories]time.Duration{Daily: 14 * 24 * time.Hour, Conversation: 30 * 24 * time.Hour}

// A Query describes a search.
type Query struct {
	Text string
	// Vector is the vector of Text. If it is nil, only words are searched.
	Vector []float32
	// Words and Near are the weights of the two kinds of search. 0 skips one.
	Words, Near float64
	// Correct corrects the spelling of words that no note has.
	Correct bool
	// Least is the similarity that a note must exceed to be found by its vector.
	Least float64
	// Limit is the maximum number of hits.
	Limit int
	// Filter selects the notes to search.
	Filter Filter
	// Now is the current time.
	Now time.Time
}

// A Hit is a found note. Words and vectors each give their best note their weight
// ([Query]) as its score; then session, source and age change it.
type Hit struct {
	ID    int64
	Score float64
	At    time.Time
	// Passage is the index of the passage that matches best.
	Passage int
}

// Search returns the notes that match the query best, the best first.
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

// Newest returns those of the hits that reach a share of the best score, the newest
// first.
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

// unknown returns the words that no note has, up to maxCorrected of them.
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

// fuse adds the scores of hits to the notes they belong to. The best hit adds
// weight. If raised is set, hits below the median score add nothing. A note takes
// the score of its best passage, whose index goes to parts.
func (x *Index) fuse(scores map[uint32]float64, parts map[uint32]uint32, hits []keywords.Hit, weight float64, raised bool) {
	if len(hits) == 0 || hits[0].Score <= 0 {
		return
	}
	// A score that half of many hits reach says nothing. With few hits it may say
	// something.
	floor := 0.0
	if raised {
		middle := min(hits[len(hits)/2].Score, highestMiddle*hits[0].Score) // all scores may be equal
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

// smooth raises the scores of a session's notes: each gets a share of its
// neighbors' scores, since an answer is next to its question, and a share of the
// best score in the session, since a session is about a topic.
func (x *Index) smooth(scores map[uint32]float64, keep func(place uint32) bool) {
	added, top := map[uint32]float64{}, map[uint32]float64{}
	for _, place := range slices.Sorted(maps.Keys(scores)) { // sorted, so that rounding is the same each time
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

// favor multiplies scores by factors for source and age.
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

// named returns the sources whose words are all in the text.
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
