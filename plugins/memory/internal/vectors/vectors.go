// Package vectors finds the texts whose vectors are nearest to that of a query. The
// vectors are in memory, in a collection of chromem-go, which compares the query
// with all of them. If there are many, sketches of 64 bytes first select a thousand
// candidates, and chromem-go compares only those.
//
// An [Index] is not safe for concurrent changes. Any number of searches may run
// while no change does.
package vectors

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/philippgille/chromem-go"
)

const (
	// sketchAbove is the number of vectors above which sketches are used.
	sketchAbove = 4096
	// candidates is how many vectors the sketches select.
	candidates = 1000
)

// ErrDimension means that a vector is not as long as the others.
var ErrDimension = errors.New("the vector has another dimension")

// ErrValue means that a vector is zero, or contains an infinity or a NaN.
var ErrValue = errors.New("the vector has no direction")

// Hit is a found text with its cosine similarity.
type Hit struct {
	Slot  uint32
	Score float32
}

// Index holds the vectors of texts. Make it with [New].
type Index struct {
	dimension int
	all       *chromem.Collection
	// Ordered by slot. Removed vectors stay as nil.
	slots    []uint32
	vectors  [][]float32
	sketches []sketch // empty up to sketchAbove
	live     int
}

// New returns an empty index. The first vector sets the dimension.
func New() (*Index, error) {
	all, err := newCollection()
	if err != nil {
		return nil, err
	}
	return &Index{all: all}, nil
}

// newCollection returns an empty collection in memory.
func newCollection() (*chromem.Collection, error) {
	return chromem.NewDB().CreateCollection("notes", nil, refuse)
}

// refuse is the embedding function. Without one, chromem-go would send texts to
// OpenAI.
func refuse(context.Context, string) ([]float32, error) {
	return nil, errors.New("the text has no vector")
}

// vectorBytes is the approximate overhead of a vector, mostly in the collection.
const vectorBytes = 240

// Bytes returns the approximate memory that the index takes.
func (x *Index) Bytes() int64 {
	const sketchBytes = words * 8
	return int64(x.live)*(vectorBytes+4*int64(x.dimension)) + sketchBytes*int64(len(x.sketches))
}

// Add adds the vector of a text. The vector must not change afterwards. Slots must
// grow.
func (x *Index) Add(ctx context.Context, slot uint32, vector []float32) error {
	if x.dimension == 0 {
		x.dimension = len(vector)
	}
	if len(vector) != x.dimension {
		return fmt.Errorf("%w: %d, expected %d", ErrDimension, len(vector), x.dimension)
	}
	if !usable(vector) {
		return ErrValue
	}
	if err := x.all.AddDocument(ctx, chromem.Document{ID: id(slot), Embedding: vector}); err != nil {
		return fmt.Errorf("add a vector: %w", err)
	}
	x.slots = append(x.slots, slot)
	x.vectors = append(x.vectors, vector)
	x.live++
	if x.live > sketchAbove {
		for i := len(x.sketches); i < len(x.vectors); i++ {
			x.sketches = append(x.sketches, sketchOf(x.vectors[i]))
		}
	}
	return nil
}

// usable reports whether a vector has a direction.
func usable(vector []float32) bool {
	var sum float64
	for _, value := range vector {
		sum += float64(value) * float64(value)
	}
	return sum > 0 && !math.IsInf(sum, 0) && !math.IsNaN(sum)
}

// Remove removes the vector of a text, if it exists.
func (x *Index) Remove(ctx context.Context, slot uint32) error {
	place, found := slices.BinarySearch(x.slots, slot)
	if !found || x.vectors[place] == nil {
		return nil
	}
	x.vectors[place] = nil
	x.live--
	return x.all.Delete(ctx, nil, nil, id(slot))
}

// Search returns the n texts nearest to the query, the nearest first; of two that
// are equally near, the newer first. keep selects the texts; nil means all. Texts
// in also are compared even if no sketch selects them.
func (x *Index) Search(ctx context.Context, query []float32, n int, keep func(slot uint32) bool, also []uint32) ([]Hit, error) {
	if x.live == 0 {
		return nil, nil
	}
	if len(query) != x.dimension {
		return nil, fmt.Errorf("%w: %d, expected %d", ErrDimension, len(query), x.dimension)
	}
	if !usable(query) {
		return nil, ErrValue
	}
	if keep == nil && x.live <= sketchAbove {
		return compare(ctx, x.all, query, n)
	}
	places := x.choose(query, keep)
	for _, slot := range also {
		if place, found := slices.BinarySearch(x.slots, slot); found && x.vectors[place] != nil {
			places = append(places, place)
		}
	}
	some, err := newCollection()
	if err != nil {
		return nil, err
	}
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		if err := some.AddDocument(ctx, chromem.Document{ID: id(x.slots[place]), Embedding: x.vectors[place]}); err != nil {
			return nil, fmt.Errorf("compare vectors: %w", err)
		}
	}
	return compare(ctx, some, query, n)
}

// choose returns the places of candidates.
func (x *Index) choose(query []float32, keep func(slot uint32) bool) []int {
	wanted := func(place int) bool {
		return x.vectors[place] != nil && (keep == nil || keep(x.slots[place]))
	}
	if len(x.sketches) == len(x.vectors) {
		s := sketchOf(query)
		return s.nearest(x.sketches, candidates, wanted)
	}
	var places []int
	for place := range x.vectors {
		if wanted(place) {
			places = append(places, place)
		}
	}
	return places
}

// compare asks chromem-go for the nearest vectors in a collection. chromem-go
// returns equal scores in any order, and an error if n exceeds the size.
func compare(ctx context.Context, c *chromem.Collection, query []float32, n int) ([]Hit, error) {
	n = min(n, c.Count())
	if n <= 0 {
		return nil, nil
	}
	found, err := c.QueryEmbedding(ctx, query, n, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("compare vectors: %w", err)
	}
	hits := make([]Hit, len(found))
	for i, f := range found {
		hits[i] = Hit{slotOf(f.ID), f.Similarity}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Slot, a.Slot))
	})
	return hits, nil
}

// id returns the document ID of a slot.
func id(slot uint32) string { return string(binary.BigEndian.AppendUint32(nil, slot)) }

func slotOf(id string) uint32 { return binary.BigEndian.Uint32([]byte(id)) }
