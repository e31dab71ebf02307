package vectors

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// random returns a vector of the length 1.
func random(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	var sum float64
	for i := range v {
		x := r.NormFloat64()
		v[i] = float32(x)
		sum += x * x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// like returns a vector near another one.
func like(r *rand.Rand, v []float32, apart float32) []float32 {
	w := random(r, len(v))
	for i := range w {
		w[i] = w[i]*apart + v[i]
	}
	return w
}

func newIndex(tb testing.TB) *Index {
	tb.Helper()
	x, err := New()
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

func (x *Index) must(tb testing.TB, slot uint32, v []float32) {
	tb.Helper()
	if err := x.Add(tb.Context(), slot, v); err != nil {
		tb.Fatal(err)
	}
}

func found(tb testing.TB, x *Index, query []float32, n int, keep func(uint32) bool, also ...uint32) []uint32 {
	tb.Helper()
	hits, err := x.Search(tb.Context(), query, n, keep, also)
	if err != nil {
		tb.Fatal(err)
	}
	slots := []uint32{}
	for _, h := range hits {
		slots = append(slots, h.Slot)
	}
	return slots
}

func TestSearch(t *testing.T) {
	x := newIndex(t)
	if got := found(t, x, []float32{1}, 5, nil); len(got) != 0 {
		t.Errorf("an empty index finds %v", got)
	}
	x.must(t, 0, []float32{1, 0, 0})
	x.must(t, 3, []float32{0.8, 0.6, 0})
	x.must(t, 7, []float32{0, 1, 0})
	x.must(t, 8, []float32{0, 5, 0}) // as near as the one before
	for range 20 {                   // equals are in the same order each time
		if diff := cmp.Diff([]uint32{8, 7, 3, 0}, found(t, x, []float32{0, 2, 0}, 9, nil)); diff != "" {
			t.Fatalf("Search() (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]uint32{3, 0}, found(t, x, []float32{0, 2, 0}, 9, func(slot uint32) bool { return slot < 7 })); diff != "" {
		t.Errorf("Search() of some (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]uint32{7, 3}, found(t, x, []float32{0, 2, 0}, 9, func(slot uint32) bool { return slot == 3 }, 7, 99)); diff != "" {
		t.Errorf("Search() of some and one more (-want +got):\n%s", diff)
	}
	for _, slot := range []uint32{7, 7, 5} {
		if err := x.Remove(t.Context(), slot); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]uint32{8, 3}, found(t, x, []float32{0, 2, 0}, 2, nil)); diff != "" || x.live != 3 {
		t.Errorf("Search() after a removal of %d (-want +got):\n%s", x.live, diff)
	}
}

func TestBadVectorsAreRefused(t *testing.T) {
	x := newIndex(t)
	x.must(t, 0, []float32{1, 0})
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tt := range []struct {
		v    []float32
		want error
	}{
		{[]float32{1}, ErrDimension},
		{[]float32{1, 0, 0}, ErrDimension},
		{nil, ErrDimension},
		{[]float32{0, 0}, ErrValue},
		{[]float32{nan, 1}, ErrValue},
		{[]float32{inf, 1}, ErrValue},
	} {
		if err := x.Add(t.Context(), 1, tt.v); !errors.Is(err, tt.want) {
			t.Errorf("Add(%v) = %v, want %v", tt.v, err, tt.want)
		}
		if _, err := x.Search(t.Context(), tt.v, 1, nil, nil); !errors.Is(err, tt.want) {
			t.Errorf("Search(%v) = %v, want %v", tt.v, err, tt.want)
		}
	}
	if diff := cmp.Diff([]uint32{0}, found(t, x, []float32{1, 1}, 5, nil)); diff != "" {
		t.Errorf("Search() after bad vectors (-want +got):\n%s", diff)
	}
}

// The candidates of the sketches contain the results of a full comparison.
func TestSketchesFindTheNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const topics, texts, dimension = 200, 2 * sketchAbove, 384
	var topic [topics][]float32
	for i := range topic {
		topic[i] = random(r, dimension)
	}
	x := newIndex(t)
	for slot := range uint32(texts) {
		x.must(t, slot, like(r, topic[r.IntN(topics)], 1.5))
	}
	share := 0.0
	const queries = 20
	for range queries {
		query := like(r, topic[r.IntN(topics)], 1.5)
		exact, err := compare(t.Context(), x.all, query, 20)
		if err != nil {
			t.Fatal(err)
		}
		got := found(t, x, query, 20, nil)
		for _, h := range exact {
			if slices.Contains(got, h.Slot) {
				share += 1.0 / 20 / queries
			}
		}
	}
	if len(x.sketches) != texts {
		t.Errorf("%d of %d vectors have a sketch", len(x.sketches), texts)
	}
	if share < 0.9 {
		t.Errorf("sketches find %.2f of the 20 nearest, want 0.9", share)
	}
}

func TestNearestSketches(t *testing.T) {
	all := make([]sketch, 100)
	for i := range all {
		all[i][0] = 1<<(i/10) - 1 // ten each that differ in 0, 1, 2 ... bits
	}
	var s sketch
	if diff := cmp.Diff([]int{19, 18, 17, 16, 15, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, s.nearest(all, 15, nil)); diff != "" {
		t.Errorf("nearest(15) (-want +got):\n%s", diff)
	}
	odd := func(place int) bool { return place%2 == 1 }
	if diff := cmp.Diff([]int{9, 7, 5}, s.nearest(all, 3, odd)); diff != "" {
		t.Errorf("nearest(3 odd) (-want +got):\n%s", diff)
	}
	if got := s.nearest(all, 1000, odd); len(got) != 50 {
		t.Errorf("nearest(1000 odd) has %d places, want 50", len(got))
	}
}

func BenchmarkSearch(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []uint32{1000, 4000, 10_000, 100_000} {
		x := newIndex(b)
		for slot := range n {
			x.must(b, slot, random(r, 384))
		}
		query := random(r, 384)
		b.Run(strconv.Itoa(int(n)), func(b *testing.B) {
			for b.Loop() {
				if _, err := x.Search(b.Context(), query, 1200, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
