package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
)

// A note that is pinned after it was found too old, and before it is removed, stays.
func TestUpkeepLooksAtNotesAsTheyAre(t *testing.T) {
	s := open(t, temp(t))
	pinned, old := noteOf("note-1", "a thing of that day"), noteOf("note-2", "another")
	for _, n := range []*Note{pinned, old} {
		n.Category, n.Updated = rank.Daily, now.AddDate(0, 0, -10)
	}
	s.put(t, pinned, old)
	rules := rulesOf(now, map[rank.Category]time.Duration{rank.Daily: time.Hour})
	daily := rules[len(rules)-1]
	found, err := s.due(t.Context(), daily)
	must(t, err)
	if diff := cmp.Diff([]int64{pinned.ID, old.ID}, found); diff != "" {
		t.Fatalf("due() (-want +got):\n%s", diff)
	}
	pinned.Pinned = true
	s.put(t, pinned)
	if n, err := s.purge(t.Context(), daily, found); err != nil || n != 1 {
		t.Errorf("purge() = %d, %v, want 1", n, err)
	}
	if _, err := s.ByNoteID(t.Context(), pinned.NoteID, now); err != nil {
		t.Errorf("a note that was pinned is gone: %v", err)
	}
	if _, err := s.ByNoteID(t.Context(), old.NoteID, now); !errors.Is(err, ErrNotFound) {
		t.Errorf("the other note = %v, want %v", err, ErrNotFound)
	}
}

// Expired text leaves the log even if another rule fails, or if a save has removed it.
func TestUpkeepEmptiesTheLog(t *testing.T) {
	const secret = "xyzzyplugh"
	expired := noteOf("note-1", "the word is "+secret)
	expired.Expires = now
	for name, remove := range map[string]func(*testing.T, *Store){
		"a rule fails": func(t *testing.T, s *Store) {
			t.Helper()
			old := noteOf("note-2", "old")
			old.Category, old.Updated = rank.Daily, now.AddDate(0, 0, -10)
			s.put(t, old)
			_, err := s.conn.ExecContext(t.Context(), "CREATE TRIGGER stays BEFORE DELETE ON note WHEN old.category = 1 BEGIN SELECT raise(ABORT, 'it stays'); END")
			must(t, err)
			n, err := s.Upkeep(t.Context(), now, map[rank.Category]time.Duration{rank.Daily: time.Hour})
			if n != 1 || err == nil || !strings.Contains(err.Error(), "it stays") {
				t.Errorf("Upkeep() = %d, %v, want 1 and the error of the other rule", n, err)
			}
		},
		"a save removes it": func(t *testing.T, s *Store) {
			t.Helper()
			must(t, s.Write(t.Context(), func(tx *Tx) error {
				return errors.Join(tx.Delete(expired.ID), tx.Put(noteOf("note-2", "in its place")))
			}))
			if n, err := s.Upkeep(t.Context(), now, nil); n != 0 || err != nil {
				t.Errorf("Upkeep() = %d, %v, want nothing to remove", n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := temp(t)
			s := open(t, path)
			expired.ID = 0
			s.put(t, expired)
			remove(t, s)
			for _, file := range []string{path, path + "-wal"} {
				data, err := os.ReadFile(file)
				must(t, err)
				if bytes.Contains(data, []byte(secret)) {
					t.Errorf("%s holds the note", filepath.Base(file))
				}
			}
		})
	}
}

// Deleting does not wait for a reader of an older state; the log is emptied later.
func TestForgetDoesNotWait(t *testing.T) {
	path := temp(t)
	s := open(t, path)
	const secret = "xyzzyplugh"
	n := noteOf("note-1", "the word is "+secret)
	s.put(t, n, noteOf("note-2", "another"))
	inFiles := func() bool {
		t.Helper()
		for _, file := range []string{path, path + "-wal"} {
			data, err := os.ReadFile(file)
			must(t, err)
			if bytes.Contains(data, []byte(secret)) {
				return true
			}
		}
		return false
	}
	tx, err := s.reader.BeginTx(t.Context(), nil)
	must(t, err)
	must(t, tx.QueryRowContext(t.Context(), "SELECT rev FROM meta").Scan(new(int)))
	must(t, s.Write(t.Context(), func(tx *Tx) error { return tx.Delete(n.ID) }))
	must(t, s.Forget(t.Context()))
	if !inFiles() {
		t.Error("the note is gone while somebody reads it: the test proves nothing")
	}
	var timeout int
	if err := s.conn.QueryRowContext(t.Context(), "PRAGMA busy_timeout").Scan(&timeout); err != nil || timeout != 10_000 {
		t.Errorf("afterwards the writer waits %d ms for others, want 10000: %v", timeout, err)
	}
	must(t, tx.Rollback())
	if _, err := s.Upkeep(t.Context(), now, nil); err != nil {
		t.Fatal(err)
	}
	if inFiles() {
		t.Error("the note is still there")
	}
}

// A passage that the embedder has refused is not asked for again, and is counted.
func TestRefusedPassages(t *testing.T) {
	s := open(t, temp(t), func(o *Options) { o.Embedder = "other" })
	one, two := noteOf("note-1", "tea"), noteOf("note-2", "milk")
	one.Passages[0].Vector, two.Passages[0].Vector = nil, nil
	s.put(t, one, two)
	pending, err := s.Unembedded(t.Context(), 10)
	must(t, err)
	if n, err := s.SetVectors(t.Context(), pending, [][]float32{nil, {1, 2}}); err != nil || n != 2 {
		t.Fatalf("SetVectors() = %d, %v, want 2", n, err)
	}
	if n, err := s.Pending(t.Context()); err != nil || n != 0 {
		t.Errorf("%d passages are pending, want none: %v", n, err)
	}
	if n, err := s.Refused(t.Context()); err != nil || n != 1 {
		t.Errorf("%d passages are refused, want 1: %v", n, err)
	}
	if left, err := s.Unembedded(t.Context(), 10); err != nil || len(left) != 0 {
		t.Errorf("Unembedded() = %v, %v", left, err)
	}
	if known, err := s.Known(t.Context(), "tea"); err != nil || known != nil {
		t.Errorf("Known() = %v, %v, want none", known, err)
	}
}

// Expired notes are counted only in their own figure.
func TestStats(t *testing.T) {
	s := open(t, temp(t))
	gone := noteOf("note-1", "gone")
	gone.Key, gone.Pinned, gone.Expires = "k", true, now
	daily := noteOf("note-2", "daily")
	daily.Category = rank.Daily
	s.put(t, gone, daily, noteOf("note-3", "core"))
	got, err := s.Stats(t.Context(), now)
	must(t, err)
	want := Stats{Notes: 2, Expired: 1, Core: 1, Daily: 1, Passages: 3, Oldest: now, Newest: now}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Stats() (-want +got):\n%s", diff)
	}
}

// Terms from another version of the plugin are computed again.
func TestTermsOfAnotherVersion(t *testing.T) {
	s := open(t, temp(t))
	s.put(t, noteOf("note-1", "green tea"))
	_, err := s.conn.ExecContext(t.Context(), "UPDATE passage SET analyzer = 0, terms = x'03646f6701'") // "dog"
	must(t, err)
	var told []rank.Note
	_, err = s.Changes(t.Context(), 0, Reader{Put: func(all []rank.Note) error { told = append(told, all...); return nil }})
	must(t, err)
	if len(told) != 1 || !cmp.Equal(told[0].Passages[0].Terms, Terms("green tea")) {
		t.Errorf("Changes() tells %v", told)
	}
}

// Removals are not listed forever; a reader that missed them reads everything.
func TestRemovalsAreForgotten(t *testing.T) {
	s := open(t, temp(t))
	one, two := noteOf("note-1", "one"), noteOf("note-2", "two")
	s.put(t, one, two)
	remove := func(n *Note) {
		t.Helper()
		must(t, s.Write(t.Context(), func(tx *Tx) error { return tx.Delete(n.ID) }))
	}
	remove(one)
	_, err := s.conn.ExecContext(t.Context(), "UPDATE meta SET rev = ?", 2*keptRemovals-1)
	must(t, err)
	remove(two)
	var listed int
	if err := s.conn.QueryRowContext(t.Context(), "SELECT count(*) FROM gone").Scan(&listed); err != nil || listed != 1 {
		t.Errorf("%d removals are listed, want the last: %v", listed, err)
	}
	reader := Reader{Put: func([]rank.Note) error { return nil }, Remove: func([]int64) error { return nil }}
	if _, err := s.Changes(t.Context(), 1, reader); !errors.Is(err, ErrReload) {
		t.Errorf("Changes() since the first = %v, want %v", err, ErrReload)
	}
	if _, err := s.Changes(t.Context(), keptRemovals, reader); err != nil {
		t.Errorf("Changes() since a later one = %v", err)
	}
}

func TestByIDs(t *testing.T) {
	s := open(t, temp(t))
	s.put(t, noteOf("note-1", "one"), noteOf("note-2", "two"), noteOf("note-3", "three"))
	notes, err := s.ByIDs(t.Context(), []int64{3, 99, 1})
	must(t, err)
	if len(notes) != 2 || notes[0].Content != "three" || notes[1].Content != "one" {
		t.Errorf("ByIDs(3, 99, 1) = %v", notes)
	}
	if none, err := s.ByIDs(t.Context(), nil); err != nil || len(none) != 0 {
		t.Errorf("ByIDs() = %v, %v", none, err)
	}
}
