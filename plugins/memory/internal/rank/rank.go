// Package rank finds notes and ranks them: by their words, by their vectors, and by
// their neighbors in a conversation. An [Index] holds in memory what a search needs
// of one user's notes, without their text. It is safe for concurrent use.
package rank

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/keywords"
	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
	"github.com/toolhost/toolhost/plugins/memory/internal/vectors"
)

// Category is the kind of a note.
type Category uint8

// The categories. A search includes Conversation only on request.
const (
	Core Category = iota
	Daily
	Conversation
	categories
)

// A Note is a note as the index needs it.
type Note struct {
	ID       int64
	Category Category
	Pinned   bool
	Tags     []string
	// Source, Session and Seq report who said it, in which conversation, and at
	// which position. Seq is -1 if the note has no position.
	Source  string
	Session string
	Seq     int64
	// At is the time at which it was said or saved.
	At time.Time
	// Expires is zero if the note never expires.
	Expires  time.Time
	Passages []Passage
}

// A Passage is a part of a note.
type Passage struct {
	Terms []keywords.Term
	// Vector is nil if the passage has none yet.
	Vector []float32
}

// Index is an index of one user's notes. Make it with [New].
type Index struct {
	mu    sync.RWMutex // guards all below
	words *keywords.Index
	// near holds the vectors. Vectors of conversations are in a separate collection.
	near  [2]*vectors.Index
	notes []note
	byID  map[int64]uint32 // -> notes
	owner []uint32         // slot -> notes
	dead  int              // removed notes that are still in notes
	names names            // numbers of sources, sessions and lists of tags
	// sources maps a word to the sources whose rarest word it is.
	sources map[string][]uint32
	// threads maps a session to its notes, ordered by seq.
	threads map[uint32][]uint32
	// pending is the number of passages without a usable vector.
	pending int
	// firstExpiry is the earliest expiry of all notes in Unix seconds; 0 if none
	// expires.
	firstExpiry int64
}

// note is the part of a note that the index keeps.
type note struct {
	id        int64
	at        int64 // Unix seconds
	expires   int64 // Unix seconds; 0 if never
	seq       int64
	source    uint32
	session   uint32
	tags      uint32
	firstSlot uint32
	slots     uint16
	pending   uint16
	category  Category
	pinned    bool
	removed   bool
}

// New returns an empty index.
func New() (*Index, error) {
	x := &Index{words: keywords.New(), byID: map[int64]uint32{}, threads: map[uint32][]uint32{}, sources: map[string][]uint32{}}
	for i := range x.near {
		near, err := vectors.New()
		if err != nil {
			return nil, err
		}
		x.near[i] = near
	}
	return x, nil
}

// collection returns the index in near of the vectors of a category.
func (c Category) collection() int {
	if c == Conversation {
		return 1
	}
	return 0
}

// Put adds notes. A note replaces the one with the same ID.
func (x *Index) Put(ctx context.Context, notes []Note) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range notes {
		if err := x.remove(ctx, notes[i].ID); err != nil {
			return err
		}
		if err := x.add(ctx, &notes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) add(ctx context.Context, n *Note) error {
	place := uint32(len(x.notes))
	source, fresh := x.names.number(n.Source)
	if fresh {
		x.addSource(source, n.Source)
	}
	session, _ := x.names.number(n.Session)
	kept := note{
		id: n.ID, at: n.At.Unix(), seq: n.Seq, category: n.Category, pinned: n.Pinned,
		source: source, session: session, tags: x.names.list(n.Tags),
		firstSlot: uint32(len(x.owner)), slots: uint16(len(n.Passages)),
	}
	if !n.Expires.IsZero() {
		kept.expires = n.Expires.Unix()
		if x.firstExpiry == 0 || kept.expires < x.firstExpiry {
			x.firstExpiry = kept.expires
		}
	}
	for _, p := range n.Passages {
		slot := uint32(len(x.owner))
		x.owner = append(x.owner, place)
		x.words.Add(slot, p.Terms)
		if p.Vector == nil {
			kept.pending++
			continue
		}
		err := x.near[n.Category.collection()].Add(ctx, slot, p.Vector)
		switch {
		case errors.Is(err, vectors.ErrDimension), errors.Is(err, vectors.ErrValue):
			kept.pending++ // one bad vector must not keep the others from being found
		case err != nil:
			return fmt.Errorf("note %d: %w", n.ID, err)
		}
	}
	x.pending += int(kept.pending)
	x.notes = append(x.notes, kept)
	x.byID[n.ID] = place
	x.thread(place)
	return nil
}

// addSource indexes a source under the one of its words that the fewest sources are
// indexed under.
func (x *Index) addSource(number uint32, text string) {
	words := terms.Split(text)
	if len(words) == 0 {
		return
	}
	rarest := slices.MinFunc(words, func(a, b string) int { return cmp.Compare(len(x.sources[a]), len(x.sources[b])) })
	x.sources[rarest] = append(x.sources[rarest], number)
}

// thread inserts a note into its session, ordered by seq.
func (x *Index) thread(place uint32) {
	n := &x.notes[place]
	if !n.threaded() {
		return
	}
	all := x.threads[n.session]
	i, _ := slices.BinarySearchFunc(all, n.seq, func(other uint32, seq int64) int {
		if x.notes[other].seq < seq {
			return -1
		}
		return 1
	})
	for i < len(all) && x.notes[all[i]].seq == n.seq {
		i++
	}
	x.threads[n.session] = slices.Insert(all, i, place)
}

// threaded reports whether a note has a position in a session.
func (n *note) threaded() bool { return n.category == Conversation && n.session != 0 && n.seq >= 0 }

// Remove removes notes.
func (x *Index) Remove(ctx context.Context, ids ...int64) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, id := range ids {
		if err := x.remove(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) remove(ctx context.Context, id int64) error {
	place, known := x.byID[id]
	if !known {
		return nil
	}
	n := &x.notes[place]
	delete(x.byID, id)
	n.removed = true
	x.dead++
	x.pending -= int(n.pending)
	if all := x.threads[n.session]; n.threaded() {
		if i := slices.Index(all, place); i >= 0 {
			x.threads[n.session] = slices.Delete(all, i, i+1)
		}
	}
	for slot := n.firstSlot; slot < n.firstSlot+uint32(n.slots); slot++ {
		x.words.Remove(slot)
		if err := x.near[n.category.collection()].Remove(ctx, slot); err != nil {
			return fmt.Errorf("note %d: %w", id, err)
		}
	}
	return nil
}

// Approximate sizes in memory, without words and vectors.
const (
	noteBytes = 120
	nameBytes = 120 // without its text
)

// Bytes returns the approximate memory that the index takes.
func (x *Index) Bytes() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	sum := x.words.Bytes() + noteBytes*int64(len(x.notes)) + x.names.bytes
	for _, near := range x.near {
		sum += near.Bytes()
	}
	return sum
}

// Pending returns the number of passages without a usable vector.
func (x *Index) Pending() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.pending
}

// Worn reports whether so many notes were removed that the index should be rebuilt.
func (x *Index) Worn() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.dead > 1000 && x.dead > len(x.byID)/2
}

// names numbers texts that many notes share.
type names struct {
	numbers map[string]uint32
	texts   []string
	lists   [][]string
	bytes   int64
}

// number returns the number of a text and whether the number is new. "" has the
// number 0.
func (n *names) number(text string) (number uint32, fresh bool) {
	if text == "" {
		return 0, false
	}
	if known, ok := n.numbers[text]; ok {
		return known, false
	}
	if n.numbers == nil {
		n.numbers, n.texts, n.lists = map[string]uint32{}, []string{""}, [][]string{nil}
	}
	n.bytes += nameBytes + int64(len(text))
	number = uint32(len(n.texts))
	n.numbers[text] = number
	n.texts = append(n.texts, text)
	n.lists = append(n.lists, nil)
	return number, true
}

// list returns the number of a list of texts. An empty list has the number 0.
func (n *names) list(all []string) uint32 {
	if len(all) == 0 {
		return 0
	}
	number, fresh := n.number("\x00" + strings.Join(all, "\x00")) // names contain no control characters
	if fresh {
		n.lists[number] = all
	}
	return number
}

func (n *names) text(number uint32) string {
	if number == 0 {
		return ""
	}
	return n.texts[number]
}
