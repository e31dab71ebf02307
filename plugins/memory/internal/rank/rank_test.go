package rank

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed"
	"github.com/toolhost/toolhost/plugins/memory/internal/keywords"
	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
)

// now is when the tests search.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// noteOf returns a note whose passages say the texts.
func noteOf(id int64, category Category, texts ...string) Note {
	n := Note{ID: id, Category: category, Seq: -1, At: now}
	for _, text := range texts {
		words := terms.Words(text)
		var list []keywords.Term
		for _, w := range words {
			list = append(list, keywords.Term{Text: w.Term, Count: 1})
		}
		n.Passages = append(n.Passages, Passage{Terms: list, Vector: embed.Hash(words, nil)})
	}
	return n
}

func with(n Note, change func(*Note)) Note {
	change(&n)
	return n
}

func index(t *testing.T, notes ...Note) *Index {
	t.Helper()
	x, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Put(t.Context(), notes); err != nil {
		t.Fatal(err)
	}
	return x
}

// find returns the notes that a search finds.
func (x *Index) find(t *testing.T, q Query) []int64 {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 10
	}
	if q.Now.IsZero() {
		q.Now = now
	}
	if q.Near > 0 {
		q.Vector = x.Embed(q.Text)
	}
	hits, err := x.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	ids := []int64{}
	for _, h := range hits {
		ids = append(ids, h.ID)
	}
	return ids
}

func TestSearch(t *testing.T) {
	x := index(t,
		noteOf(1, Core, "the garden fence is green"),
		noteOf(2, Daily, "water the garden"),
		noteOf(3, Conversation, "what a garden"),
		with(noteOf(4, Core, "an old garden plan"), func(n *Note) { n.At = now.AddDate(-2, 0, 0); n.Tags = []string{"plan", "old"} }),
		with(noteOf(5, Core, "a garden party"), func(n *Note) { n.Expires = now.Add(time.Hour) }),
		noteOf(6, Core, "nothing of it here", "but the garden is in the second passage"),
	)
	all := Filter{Conversation: true}
	for _, tt := range []struct {
		name string
		q    Query
		want []int64 // in any order
	}{
		{"not conversations", Query{Text: "garden", Words: 1}, []int64{1, 2, 4, 5, 6}},
		{"conversations too", Query{Text: "garden", Words: 1, Filter: all}, []int64{1, 2, 3, 4, 5, 6}},
		{"by vectors", Query{Text: "garden fence green", Near: 1, Least: 0.5}, []int64{1}},
		{"what has expired is hidden at once", Query{Text: "garden party", Words: .8, Near: .2, Now: now.Add(time.Hour)}, []int64{1, 2, 4, 6}},
		{"one category", Query{Text: "garden", Words: 1, Filter: Filter{Only: Daily, OnlySet: true}}, []int64{2}},
		{"tags", Query{Text: "garden", Words: 1, Near: 1, Filter: Filter{Tags: []string{"old", "plan"}}}, []int64{4}},
		{"a tag that nothing has", Query{Text: "garden", Words: 1, Near: 1, Filter: Filter{Tags: []string{"plans"}}}, []int64{}},
		{"since", Query{Text: "garden plan", Words: 1, Filter: Filter{Since: now, Only: Core, OnlySet: true}}, []int64{1, 5, 6}},
		{"until", Query{Text: "garden plan", Words: 1, Filter: Filter{Until: now}}, []int64{4}},
		{"some notes", Query{Text: "garden", Words: 1, Near: 1, Filter: Filter{IDs: map[int64]bool{2: true}}}, []int64{2}},
		{"misspelled", Query{Text: "fecne", Words: 1, Correct: true}, []int64{1}},
		{"misspelled, but the words as they are", Query{Text: "fecne", Words: 1}, []int64{}},
		{"no words", Query{Text: "?", Words: .8, Near: .2, Least: .2}, []int64{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := x.find(t, tt.q)
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Search(%q) (-want +got):\n%s", tt.q.Text, diff)
			}
		})
	}
}

func TestAHitNamesItsPassage(t *testing.T) {
	x := index(t, noteOf(1, Core, "nothing", "the garden", "nothing else"), noteOf(2, Core, "garden"))
	hits, err := x.Search(t.Context(), Query{Text: "garden", Words: .8, Near: .2, Vector: x.Embed("garden"), Limit: 5, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		if want := map[int64]int{1: 1, 2: 0}[h.ID]; h.Passage != want {
			t.Errorf("note %d was found by its passage %d, want %d", h.ID, h.Passage, want)
		}
	}
}

// A search finds an answer with its question, and a session with its topic. It does not find a
// note of another session, or outside a conversation.
func TestNeighbours(t *testing.T) {
	said := func(id int64, session string, seq int64, text string) Note {
		return with(noteOf(id, Conversation, text), func(n *Note) { n.Session, n.Seq = session, seq })
	}
	x := index(t,
		said(1, "a", 1, "where do you keep the ladder"), said(2, "a", 2, "behind the shed"), said(3, "a", 3, "thanks"), said(4, "a", 4, "bye"),
		said(5, "b", 2, "good morning"),
		with(noteOf(6, Core, "unrelated"), func(n *Note) { n.Session, n.Seq = "a", 2 }),
	)
	if diff := cmp.Diff([]int64{1, 2, 3}, x.find(t, Query{Text: "ladder", Words: 1, Filter: Filter{Conversation: true}})); diff != "" {
		t.Errorf("Search() (-want +got):\n%s", diff)
	}
	if err := x.Remove(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1, 3, 4}, x.find(t, Query{Text: "ladder", Words: 1, Filter: Filter{Conversation: true}})); diff != "" {
		t.Errorf("Search() after a removal (-want +got):\n%s", diff)
	}
}

func TestWhatSpeaksForANote(t *testing.T) {
	source := func(name string) func(*Note) { return func(n *Note) { n.Source = name } }
	for _, tt := range []struct {
		name  string
		notes []Note
		text  string
		want  []int64
	}{
		{"its source is named", []Note{
			with(noteOf(1, Core, "the fence is green"), source("Bea")), with(noteOf(2, Core, "the fence is painted green"), source("Ada Lovelace")),
		}, "what did Ada Lovelace say of the fence", []int64{2, 1}},
		{"its source is not named in full", []Note{
			with(noteOf(1, Core, "the fence is green"), source("Bea")), with(noteOf(2, Core, "the fence is painted green"), source("Ada Lovelace")),
		}, "what did Ada say of the fence", []int64{1, 2}},
		{"it is newer", []Note{
			noteOf(1, Daily, "the fence"), with(noteOf(2, Daily, "the fence"), func(n *Note) { n.At = now.AddDate(0, -2, 0) }),
		}, "fence", []int64{1, 2}},
		{"it is pinned", []Note{
			with(noteOf(1, Daily, "the fence"), func(n *Note) { n.At = now.AddDate(0, -2, 0); n.Pinned = true }), with(noteOf(2, Daily, "the fence"), func(n *Note) { n.At = now.AddDate(0, -1, 0) }),
		}, "fence", []int64{1, 2}},
		{"core never ages", []Note{
			with(noteOf(1, Core, "the fence"), func(n *Note) { n.At = now.AddDate(-9, 0, 0) }), with(noteOf(2, Daily, "the fence"), func(n *Note) { n.At = now.AddDate(0, 0, -9) }),
		}, "fence", []int64{1, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, index(t, tt.notes...).find(t, Query{Text: tt.text, Words: 1})); diff != "" {
				t.Errorf("Search(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

// Many notes that say the same are all found, the newest first.
func TestTheSameManyTimes(t *testing.T) {
	var notes []Note
	for id := range int64(120) {
		notes = append(notes, with(noteOf(id+1, Core, "the garden fence"), func(n *Note) { n.At = now.Add(time.Duration(id) * time.Second) }))
	}
	for _, q := range []Query{{Words: .8, Near: .2}, {Near: 1}, {Words: 1}} {
		q.Text, q.Limit = "garden fence", 3
		if diff := cmp.Diff([]int64{120, 119, 118}, index(t, notes...).find(t, q)); diff != "" {
			t.Errorf("Search(%v, %v) (-want +got):\n%s", q.Words, q.Near, diff)
		}
	}
}

// Sources with the same beginning are distinguished by words that few of them have, so that a
// query which names one of them examines few.
func TestSourcesThatBeginAlike(t *testing.T) {
	var notes []Note
	for id := range int64(500) {
		notes = append(notes, with(noteOf(id+1, Core, "the garden fence"), func(n *Note) { n.Source = fmt.Sprintf("https://example.com/pages/%d", id+1000) }))
	}
	x := index(t, notes...)
	if got := x.find(t, Query{Text: "what does https://example.com/pages/1234 say of the garden?", Words: 1, Limit: 2}); got[0] != 235 {
		t.Errorf("Search() finds %v, want 235 first", got)
	}
	for word, known := range x.sources {
		if len(known) > 10 {
			t.Errorf("%d sources are looked at for the word %s", len(known), word)
		}
	}
}

// Among many words that no note has, only a limited number is treated as misspelled.
func TestCorrectionsAreBounded(t *testing.T) {
	x := index(t, noteOf(1, Core, "the garden fence"))
	var text strings.Builder
	for i := range maxCorrected {
		fmt.Fprintf(&text, "unknown%d ", i)
	}
	for query, want := range map[string][]int64{
		"gardne " + text.String(): {1},
		text.String() + "gardne":  {},
	} {
		if diff := cmp.Diff(want, x.find(t, Query{Text: query, Words: 1, Correct: true})); diff != "" {
			t.Errorf("Search(%.20s...) (-want +got):\n%s", query, diff)
		}
		if near := x.Embed(query); cmp.Equal(near, x.Embed(strings.Replace(query, "gardne", "garden", 1))) != (len(want) == 1) {
			t.Errorf("Embed(%.20s...) takes the word for another one than Search", query)
		}
	}
}

func TestNewest(t *testing.T) {
	hits := []Hit{{ID: 1, Score: 1, At: now.Add(-time.Hour)}, {ID: 2, Score: .6, At: now}, {ID: 3, Score: .4, At: now.Add(time.Hour)}}
	want := []Hit{hits[1], hits[0]}
	if diff := cmp.Diff(want, Newest(hits, .5, 5)); diff != "" {
		t.Errorf("Newest() (-want +got):\n%s", diff)
	}
	if got := Newest(nil, .5, 5); len(got) != 0 {
		t.Errorf("Newest(nil) = %v", got)
	}
}

// A changed note is found by its new text; a removed one is not found, and a bad vector hides
// nothing.
func TestChanges(t *testing.T) {
	x := index(t, noteOf(1, Core, "tea"), noteOf(2, Core, "coffee"), noteOf(3, Core, "milk"))
	bad := noteOf(4, Core, "juice")
	bad.Passages[0].Vector = []float32{1, 2}
	waits := noteOf(5, Core, "water")
	waits.Passages[0].Vector = nil
	if err := x.Put(t.Context(), []Note{noteOf(1, Core, "cocoa"), bad, waits}); err != nil {
		t.Fatal(err)
	}
	if err := x.Remove(t.Context(), 2, 99); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int64{"tea": {}, "cocoa": {1}, "coffee": {}, "milk": {3}, "juice": {4}, "water": {5}} {
		if diff := cmp.Diff(want, x.find(t, Query{Text: text, Words: .8, Near: .2, Least: .2})); diff != "" {
			t.Errorf("Search(%s) (-want +got):\n%s", text, diff)
		}
	}
	if len(x.byID) != 4 || x.Pending() != 2 {
		t.Errorf("%d notes, %d pending, want 4 and 2", len(x.byID), x.Pending())
	}
	if err := x.Put(t.Context(), []Note{noteOf(4, Core, "juice")}); err != nil || x.Pending() != 1 {
		t.Errorf("%d pending after the vector that did not fit was replaced, %v; want 1", x.Pending(), err)
	}
	if diff := cmp.Diff([]int64{3}, x.Alike([]keywords.Term{{Text: "milk", Count: 1}}, Core, now)); diff != "" {
		t.Errorf("Alike() (-want +got):\n%s", diff)
	}
}

func TestWorn(t *testing.T) {
	x := index(t)
	for i := range int64(1600) {
		if err := x.Put(t.Context(), []Note{noteOf(i%20, Core, fmt.Sprintf("note %d", i))}); err != nil {
			t.Fatal(err)
		}
		if x.Worn() != (i >= 1020) {
			t.Fatalf("Worn() = %v after %d changes", x.Worn(), i)
		}
	}
}
