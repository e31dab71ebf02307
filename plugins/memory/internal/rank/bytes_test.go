//go:build !race

package rank

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed"
	"github.com/toolhost/toolhost/plugins/memory/internal/keywords"
	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
)

// The race detector changes the memory use.

// Bytes is close to the memory of an index, for any notes: it keeps the process within its
// memory.
func TestBytes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(n int) string {
		letters := make([]byte, n)
		for i := range letters {
			letters[i] = 'a' + byte(random.IntN(26))
		}
		return string(letters)
	}
	few := make([]string, 2000)
	for i := range few {
		few[i] = word(7)
	}
	repeat := func(n int, part func() string) string {
		var text strings.Builder
		for range n {
			text.WriteString(part())
		}
		return text.String()
	}
	for _, tt := range []struct {
		name  string
		notes int
		text  func() string
	}{
		{"short notes", 5000, func() string { return repeat(10, func() string { return few[random.IntN(len(few))] + " " }) }},
		{"long ones of frequent words", 1000, func() string { return repeat(120, func() string { return few[random.IntN(len(few))] + " " }) }},
		{"long ones of rare words", 500, func() string { return repeat(140, func() string { return word(6) + " " }) }},
		{"Chinese", 300, func() string { return repeat(1000, func() string { return string(rune(0x4e00 + random.IntN(5000))) }) }},
		{"no vectors", 5000, func() string { return "!" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var notes []Note
			for i := range tt.notes {
				words := terms.Words(tt.text())
				n := Note{ID: int64(i + 1), Seq: int64(i), Session: "s", Source: fmt.Sprint("page ", i), Category: Conversation, At: now, Passages: make([]Passage, 1)}
				if len(words) > 0 {
					n.Passages[0].Vector = embed.Hash(words, nil)
				}
				for _, w := range words {
					n.Passages[0].Terms = append(n.Passages[0].Terms, keywords.Term{Text: w.Term, Count: 1})
				}
				notes = append(notes, n)
			}
			x := index(t)
			before := heap()
			if err := x.Put(t.Context(), notes); err != nil {
				t.Fatal(err)
			}
			after := heap()
			// The numbers of vectors exist already.
			taken := after - before
			for i := range notes {
				taken += 4 * int64(len(notes[i].Passages[0].Vector))
			}
			t.Logf("%d bytes a note, Bytes() says %d", taken/int64(tt.notes), x.Bytes()/int64(tt.notes))
			if counted := x.Bytes(); counted < taken*8/10 || counted > taken*2 {
				t.Errorf("Bytes() = %d, the index takes %d", counted, taken)
			}
			runtime.KeepAlive(notes)
		})
	}
}

// heap returns the memory in use; two collections empty the pools.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
