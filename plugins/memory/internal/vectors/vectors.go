// Package vectors finds the texts whose vectors are nearest to that of a query.
// The vectors are in memory, in a collection of chromem-go, which compares all of
// them. Where these are many, sketches of 64 bytes choose a thousand that may be
// near, and chromem-go compares those.
//
// An [Index] is not safe for concurrent changes; any number of searches may run
// while nothing changes it.
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
	// sketchAbove is the number of vectors from which on sketches choose.
	sketchAbove = 4096
	// candidates is how many they choose.
	candidates = 1000
)

// ErrDimension says that a vector has not the length of the others.
var ErrDimension = errors.New("the vector has another dimension")

// ErrValue says that a vector has no direction, or that what is in it is no
// number.
var ErrValue = errors.New("the vector has no direction")

// Hit is a text that was found, and how near it is: 1 is the same direction.
type Hit struct {
	Slot  uint32
	Score float32
}

// Index holds the vectors of texts. Make it with [New].
type Index struct {
	dimension int
	all       *chromem.Collection
	// In order of slot, also those that were removed, whose vector is nil.
	slots    []uint32
	vectors  [][]float32
	sketches []sketch // empty up to sketchAbove
	live     int
}

// New returns an empty index. The first vector decides how long the others are.
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

// refuse takes the place of an embedding function: without one, chromem-go would
// send texts to OpenAI.
func refuse(context.Context, string) ([]float32, error) {
	return nil, errors.New("a text came without its vector")
}

// vectorBytes is about what a vector takes beside its numbers, mostly in the
// collection.
const vectorBytes = 240

// Bytes returns about how much memory the index takes.
func (x *Index) Bytes() int64 {
	const sketchBytes = words * 8
	return int64(x.live)*(vectorBytes+4*int64(x.dimension)) + sketchBytes*int64(len(x.sketches))
}

// Add adds the vector of a text, which must not change afterwards. Slots grow.
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

// Remove removes the vector of a text, if there is one.
func (x *Index) Remove(ctx context.Context, slot uint32) error {
	place, found := slices.BinarySearch(x.slots, slot)
	if !found || x.vectors[place] == nil {
		return nil
	}
	x.vectors[place] = nil
	x.live--
	return x.all.Delete(ctx, nil, nil, id(slot))
}

// Search returns the n texts that are nearest to the query, the nearest first,
// the newer of two that are as near. keep says which count, all if it is nil; also
// names texts that are compared in any case.
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

// choose returns the places of vectors that may be near.
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

// compare lets chromem-go find the nearest in a collection. It returns equals in
// any order, and refuses to return more than there are.
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

// id is the name of a slot in a collection.
func id(slot uint32) string { return string(binary.BigEndian.AppendUint32(nil, slot)) }

func slotOf(id string) uint32 { return binary.BigEndian.Uint32([]byte(id)) }
