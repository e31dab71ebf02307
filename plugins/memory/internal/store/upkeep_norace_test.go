//go:build !race

package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A file near its maximum size takes no notes and no vectors, and frees its space, whatever has
// filled it.
func TestRoomIsLeftForDeleting(t *testing.T) {
	const pages, spare = 1600, 1600 / 8
	// put saves notes of a size without vectors, some in each change, until there is
	// no room.
	put := func(t *testing.T, s *Store, size, some int) {
		t.Helper()
		for saved := 0; saved < pages*100; saved += some {
			err := s.Write(t.Context(), func(tx *Tx) error {
				for i := range some {
					id := fmt.Sprintf("note-%d-%d", size, saved+i)
					n := noteOf(id, id+strings.Repeat(" word", size/5))
					for p := range n.Passages {
						n.Passages[p].Vector = nil
					}
					if err := tx.Put(n); err != nil {
						return err
					}
				}
				return nil
			})
			if errors.Is(err, ErrFull) {
				return
			}
			must(t, err)
		}
		t.Fatal("there is always room")
	}
	for name, fill := range map[string]func(*testing.T, *Store){
		"small notes": func(t *testing.T, s *Store) { t.Helper(); put(t, s, 2000, 20) },
		"large notes": func(t *testing.T, s *Store) { t.Helper(); put(t, s, 400<<10, 1) },
		"imports":     func(t *testing.T, s *Store) { t.Helper(); put(t, s, 10<<10, 30) },
		"vectors": func(t *testing.T, s *Store) {
			t.Helper()
			put(t, s, 2000, 20)
			pending, err := s.Unembedded(t.Context(), pages)
			must(t, err)
			for some := range slices.Chunk(pending, 10) { // until there is no room
				if _, err = s.SetVectors(t.Context(), some, slices.Repeat([][]float32{make([]float32, 1024)}, len(some))); err != nil {
					break
				}
			}
			if !errors.Is(err, ErrFull) {
				t.Errorf("SetVectors() = %v, want %v", err, ErrFull)
			}
			// Texts that the embedder refuses take no space.
			if n, err := s.SetVectors(t.Context(), pending[len(pending)-1:], [][]float32{nil}); err != nil || n != 1 {
				t.Errorf("SetVectors() of a passage that was refused = %d, %v, want 1", n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, temp(t))
			_, err := s.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages))
			must(t, err)
			s.maxPages = pages
			small := noteOf("note-small", "small")
			s.put(t, small)
			fill(t, s)
			var used int64
			must(t, s.conn.QueryRowContext(t.Context(), "SELECT (SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM pragma_freelist_count)").Scan(&used))
			if left := pages - used; left < spare {
				t.Errorf("%d pages are left, want at least %d", left, spare)
			}
			must(t, s.Write(t.Context(), func(tx *Tx) error { return tx.Delete(small.ID) }))
			var ids []int64
			must(t, s.All(t.Context(), 0, now, func(n *Note) bool { ids = append(ids, n.ID); return true }))
			for _, id := range ids[:min(len(ids), 50)] {
				must(t, s.Write(t.Context(), func(tx *Tx) error { return tx.Delete(id) }))
			}
			s.put(t, noteOf("note-last", "last"))
		})
	}
}
