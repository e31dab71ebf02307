package keywords

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

func slots(hits []Hit) []uint32 {
	all := []uint32{}
	for _, h := range hits {
		all = append(all, h.Slot)
	}
	return all
}

func terms(all ...string) []Term {
	var list []Term
	for _, t := range all {
		list = append(list, Term{Text: t, Count: 1})
	}
	return list
}

func TestSearch(t *testing.T) {
	x := New()
	x.Add(0, terms("tea", "green"))
	x.Add(1, terms("tea", "black", "milk", "sugar"))
	x.Add(2, terms("coffee", "black"))
	x.Add(4, []Term{{Text: "coffee", Count: 5}, {Text: "cup", Count: 1}}) // 3 has no terms
	for _, tt := range []struct {
		name  string
		query []Query
		n     int
		keep  func(uint32) bool
		want  []uint32
	}{
		{"a shorter text first", []Query{{Term: "tea"}}, 10, nil, []uint32{0, 1}},
		{"more of a term first", []Query{{Term: "coffee"}}, 10, nil, []uint32{4, 2}},
		{"both terms first", []Query{{Term: "tea"}, {Term: "milk"}}, 10, nil, []uint32{1, 0}},
		{"a weight", []Query{{Term: "green", Weight: 0.01}, {Term: "milk"}}, 10, nil, []uint32{1, 0}},
		{"as many as wanted", []Query{{Term: "black"}}, 1, nil, []uint32{2}},
		{"what is kept", []Query{{Term: "black"}}, 10, func(slot uint32) bool { return slot == 1 }, []uint32{1}},
		{"nothing", []Query{{Term: "juice"}}, 10, nil, []uint32{}},
		{"none", []Query{{Term: "tea"}}, 0, nil, []uint32{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := gocmp.Diff(tt.want, slots(x.Search(tt.query, tt.n, tt.keep))); diff != "" {
				t.Errorf("Search() (-want +got):\n%s", diff)
			}
		})
	}
	if x.texts != 4 || x.Count("black") != 2 || x.Rarity("milk") <= x.Rarity("tea") || x.Rarity("never") < x.Rarity("milk") {
		t.Errorf("%d texts, black in %d, rarity of milk %v, tea %v, never %v", x.texts, x.Count("black"), x.Rarity("milk"), x.Rarity("tea"), x.Rarity("never"))
	}
	x.Remove(0)
	x.Remove(99)
	if x.texts != 3 {
		t.Errorf("%d texts after one was removed, want 3", x.texts)
	}
}

// A search leaves nothing behind that the next one would find.
func TestSearchesAreIndependent(t *testing.T) {
	x := New()
	x.Add(0, terms("a", "b"))
	x.Add(1, terms("b"))
	want := x.Search([]Query{{Term: "b"}}, 10, nil)
	x.Search([]Query{{Term: "a"}}, 10, func(uint32) bool { return false })
	if diff := gocmp.Diff(want, x.Search([]Query{{Term: "b"}}, 10, nil)); diff != "" {
		t.Errorf("the second search (-first +second):\n%s", diff)
	}
}

// Best finds the same as sorting everything does.
func TestBestIsThatOfSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		hits := make([]Hit, r.IntN(500))
		for i := range hits {
			hits[i] = Hit{uint32(i), float32(r.IntN(1+round)) - 2}
		}
		n := r.IntN(60)
		want := slices.Clone(hits)
		slices.SortFunc(want, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Slot, a.Slot)) })
		want = want[:min(n, len(want))]
		if diff := gocmp.Diff(want, Best(hits, n)); diff != "" {
			t.Fatalf("Best(%d hits, %d) (-want +got):\n%s", len(hits), n, diff)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	const texts = 100_000
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("w%d", int(r.ExpFloat64()*2000)) }
	x := New()
	for slot := range uint32(texts) {
		var all []Term
		for range 15 {
			all = append(all, Term{Text: word(), Count: 1})
		}
		x.Add(slot, all)
	}
	for b.Loop() {
		x.Search([]Query{{Term: word()}, {Term: word()}, {Term: word()}, {Term: word()}}, 1000, func(uint32) bool { return true })
	}
}
