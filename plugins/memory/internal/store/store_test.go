package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, path string, change ...func(*Options)) *Store {
	t.Helper()
	opts := Options{Path: path, User: "ada", Embedder: "test"}
	for _, f := range change {
		f(&opts)
	}
	s, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func temp(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "notes.db")
}

// noteOf returns a note that says the content, with a vector.
func noteOf(id, content string) *Note {
	n := &Note{NoteID: id, Content: content, Seq: -1, Created: now, Updated: now}
	for _, p := range terms.Passages(content) {
		n.Passages = append(n.Passages, Passage{Start: p.Start, Stop: p.Stop, Terms: Terms(content[p.Start:p.Stop]), Vector: []float32{1, float32(len(content))}})
	}
	return n
}

func (s *Store) put(t *testing.T, notes ...*Note) {
	t.Helper()
	err := s.Write(t.Context(), func(tx *Tx) error {
		for _, n := range notes {
			if err := tx.Put(n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNotesComeBackAsTheyWere(t *testing.T) {
	path := temp(t)
	s := open(t, path)
	n := noteOf("note-1", "Grüße 🎉 שלום 東京 \x00 "+strings.Repeat("a sentence. ", 200))
	n.Key, n.Category, n.Tags, n.Pinned = "k", rank.Daily, []string{"a", `b"\`}, true
	n.Source, n.Session, n.Seq, n.Origin = "Ada", "s1", 0, Origin{Client: "c", Session: "cs"}
	n.Occurred, n.Expires = now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0)
	plain := noteOf("note-2", "plain")
	s.put(t, n, plain)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	got, err := s.ByKey(t.Context(), "k", now)
	if err != nil {
		t.Fatal(err)
	}
	want := *n
	want.Passages = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ByKey() (-want +got):\n%s", diff)
	}
	if got, err := s.ByNoteID(t.Context(), "note-2", now); err != nil || got.Seq != -1 || !got.Expires.IsZero() || got.Key != "" {
		t.Errorf("ByNoteID() = %+v, %v", got, err)
	}
	if _, err := s.ByKey(t.Context(), "k", n.Expires); !errors.Is(err, ErrNotFound) {
		t.Errorf("ByKey() of a note that has expired = %v", err)
	}
	// The index receives exactly the saved notes.
	var told []rank.Note
	if _, err := s.Changes(t.Context(), 0, Reader{Put: func(all []rank.Note) error { told = append(told, all...); return nil }}); err != nil {
		t.Fatal(err)
	}
	if len(told) != 2 || len(told[0].Passages) != len(n.Passages) || !told[0].At.Equal(n.Occurred) || !told[1].At.Equal(now) || told[0].Seq != 0 || told[1].Seq != -1 {
		t.Fatalf("Changes() tells %+v", told)
	}
	for i, p := range told[0].Passages {
		if !cmp.Equal(p.Terms, n.Passages[i].Terms) || !cmp.Equal(p.Vector, n.Passages[i].Vector) {
			t.Errorf("passage %d is %+v, want %+v", i, p, n.Passages[i])
		}
	}
}

// A change is made as a whole or not at all.
func TestAFailedChangeIsUndone(t *testing.T) {
	s := open(t, temp(t))
	s.put(t, noteOf("note-1", "one"))
	rev, err := s.Rev(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	ctx, cancel := context.WithCancel(t.Context())
	for name, f := range map[string]func(tx *Tx) error{
		"fails at the end": func(tx *Tx) error { return errors.Join(tx.Put(noteOf("note-2", "two")), tx.Delete(1), broken) },
		"the same key":     func(tx *Tx) error { return errors.Join(tx.Put(noteOf("note-3", "x")), tx.Put(noteOf("note-1", "x"))) },
		"is given up": func(tx *Tx) error {
			err := tx.Put(noteOf("note-2", "two"))
			cancel()
			return errors.Join(err, ctx.Err())
		},
	} {
		use := t.Context()
		if name == "is given up" {
			use = ctx
		}
		if err := s.Write(use, f); err == nil {
			t.Errorf("a change that %s is made", name)
		}
		if now, err := s.Rev(t.Context()); err != nil || now != rev {
			t.Errorf("%s: the last change is %d, want %d: %v", name, now, rev, err)
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_ = s.Write(t.Context(), func(tx *Tx) error { panic(tx.Put(noteOf("note-2", "two"))) })
	}()
	s.put(t, noteOf("note-4", "four"))
	if st, err := s.Stats(t.Context(), now); err != nil || st.Notes != 2 {
		t.Errorf("%d notes, want 2: %v", st.Notes, err)
	}
}

// A reader that follows the changes ends up with the same data as one that reads everything.
func TestChanges(t *testing.T) {
	s := open(t, temp(t))
	follower := map[int64]string{}
	reader := Reader{
		Put: func(all []rank.Note) error {
			for _, n := range all {
				follower[n.ID] = n.Passages[0].Terms[0].Text
			}
			return nil
		},
		Remove: func(ids []int64) error {
			for _, id := range ids {
				delete(follower, id)
			}
			return nil
		},
	}
	rev := int64(0)
	follow := func(want map[int64]string) {
		t.Helper()
		var err error
		if rev, err = s.Changes(t.Context(), rev, reader); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, follower); diff != "" {
			t.Errorf("after change %d (-want +got):\n%s", rev, diff)
		}
	}
	follow(map[int64]string{})
	one, two := noteOf("note-1", "tea"), noteOf("note-2", "milk")
	s.put(t, one, two)
	follow(map[int64]string{1: "tea", 2: "milk"})
	one.Content, one.Passages = "cocoa", noteOf("", "cocoa").Passages
	s.put(t, one, noteOf("note-3", "water"))
	if err := s.Write(t.Context(), func(tx *Tx) error { return tx.Delete(2) }); err != nil {
		t.Fatal(err)
	}
	follow(map[int64]string{1: "cocoa", 3: "water"})
	follow(map[int64]string{1: "cocoa", 3: "water"})
	if _, err := s.Changes(t.Context(), rev+1, reader); !errors.Is(err, ErrReload) {
		t.Errorf("Changes() since the future = %v, want %v", err, ErrReload)
	}
}

func TestVectorsOfAnotherEmbedder(t *testing.T) {
	path := temp(t)
	s := open(t, path)
	s.put(t, noteOf("note-1", "tea"), noteOf("note-2", "milk"))
	if known, err := s.Known(t.Context(), "tea"); err != nil || len(known) != 2 {
		t.Errorf("Known() = %v, %v", known, err)
	}
	other := open(t, path, func(o *Options) { o.Embedder = "other" })
	if known, err := other.Known(t.Context(), "tea"); err != nil || known != nil {
		t.Errorf("Known() of another embedder = %v, %v", known, err)
	}
	pending, err := other.Unembedded(t.Context(), 10)
	if err != nil || len(pending) != 2 || pending[0].Text != "tea" {
		t.Fatalf("Unembedded() = %v, %v", pending, err)
	}
	pending[1].Text = "milk, which was changed meanwhile"
	if n, err := other.SetVectors(t.Context(), pending, [][]float32{{1, 2, 3}, {4, 5, 6}}); err != nil || n != 1 {
		t.Fatalf("SetVectors() = %d, %v, want 1", n, err)
	}
	if n, err := other.Pending(t.Context()); err != nil || n != 1 {
		t.Errorf("Pending() = %d, %v, want 1", n, err)
	}
	// The model is replaced under the same name: its vectors are computed again.
	rev, err := other.Rev(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Write(t.Context(), func(tx *Tx) error { return tx.Dimension([]float32{1}) }); err != nil {
		t.Fatal(err)
	}
	if n, err := other.Pending(t.Context()); err != nil || n != 2 {
		t.Errorf("Pending() = %d, %v, want 2", n, err)
	}
	if _, err := other.Changes(t.Context(), rev, Reader{}); !errors.Is(err, ErrReload) {
		t.Errorf("Changes() = %v, want %v", err, ErrReload)
	}
}

func TestUpkeep(t *testing.T) {
	s := open(t, temp(t))
	old := func(id string, change func(*Note)) *Note {
		n := noteOf(id, id)
		n.Created, n.Updated, n.Category = now.AddDate(0, 0, -20), now.AddDate(0, 0, -10), rank.Daily
		change(n)
		return n
	}
	s.put(t,
		old("old", func(*Note) {}), old("pinned", func(n *Note) { n.Pinned = true }), old("core", func(n *Note) { n.Category = rank.Core }),
		old("written anew", func(n *Note) { n.Updated = now }), old("expired", func(n *Note) { n.Category, n.Expires = rank.Core, now }),
		old("expires later", func(n *Note) { n.Category, n.Expires = rank.Core, now.Add(time.Millisecond) }),
	)
	n, err := s.Upkeep(t.Context(), now, map[rank.Category]time.Duration{rank.Daily: 9 * 24 * time.Hour, rank.Core: 0})
	if err != nil || n != 2 {
		t.Fatalf("Upkeep() = %d, %v, want 2", n, err)
	}
	var ids []string
	if err := s.All(t.Context(), 0, now, func(n *Note) bool { ids = append(ids, n.NoteID); return true }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"pinned", "core", "written anew", "expires later"}, ids); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// Deleted text is no longer in any file.
func TestDeletedMeansGone(t *testing.T) {
	path := temp(t)
	s := open(t, path)
	const secret = "xyzzyplugh"
	n := noteOf("note-1", "the word is "+secret)
	s.put(t, n, noteOf("note-2", "another"))
	inFiles := func() bool {
		for _, file := range []string{path, path + "-wal"} {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(data, []byte(secret)) {
				return true
			}
		}
		return false
	}
	if !inFiles() {
		t.Fatal("the note is in no file: the test would prove nothing")
	}
	if err := s.Write(t.Context(), func(tx *Tx) error { return tx.Delete(n.ID) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if inFiles() {
		t.Error("the note is still there")
	}
	for _, table := range []string{"passage", "note_text", "note"} {
		var rows int
		if err := s.reader.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&rows); err != nil || rows != 1 {
			t.Errorf("%s has %d rows, want that of the other note: %v", table, rows, err)
		}
	}
}

func TestSnapshots(t *testing.T) {
	path := temp(t)
	s := open(t, path)
	s.put(t, noteOf("note-1", "one"), noteOf("note-2", "two"))
	copied := path + ".copy"
	if size, err := s.Snapshot(t.Context(), copied); err != nil || size == 0 {
		t.Fatalf("Snapshot() = %d, %v", size, err)
	}
	if _, err := s.Snapshot(t.Context(), copied); !errors.Is(err, os.ErrExist) {
		t.Errorf("Snapshot() to a file that is there = %v", err)
	}
	written := path + ".written" // by another process
	must(t, os.WriteFile(written+Part, nil, 0o600))
	if _, err := s.Snapshot(t.Context(), written); !errors.Is(err, os.ErrExist) {
		t.Errorf("Snapshot() to a file that is being written = %v", err)
	}
	must(t, os.Remove(written+Part)) // it is still there
	var ids []string
	take := func(n *Note) error { ids = append(ids, n.NoteID); return nil }
	if err := ReadSnapshot(t.Context(), copied, "ada", take); err != nil || !cmp.Equal(ids, []string{"note-1", "note-2"}) {
		t.Errorf("ReadSnapshot() reads %v: %v", ids, err)
	}
	if err := ReadSnapshot(t.Context(), copied, "bea", take); !errors.Is(err, ErrFile) {
		t.Errorf("ReadSnapshot() of another user = %v", err)
	}
	must(t, os.Remove(copied))
	if err := ReadSnapshot(t.Context(), copied, "ada", take); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ReadSnapshot() of no file = %v", err)
	}
	if _, err := os.Lstat(copied); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading a snapshot that is not there makes one: %v", err)
	}
}

func TestTooManyNotes(t *testing.T) {
	s := open(t, temp(t), func(o *Options) { o.MaxNotes = 2 })
	one := noteOf("note-1", "one")
	s.put(t, one, noteOf("note-2", "two"))
	if err := s.Write(t.Context(), func(tx *Tx) error { return tx.Put(noteOf("note-3", "three")) }); !errors.Is(err, ErrTooMany) {
		t.Errorf("Put() of a third = %v, want %v", err, ErrTooMany)
	}
	s.put(t, one) // a deleted note does not change again
}

func TestMatch(t *testing.T) {
	s := open(t, temp(t))
	s.put(t, noteOf("note-1", "the garden gate"), noteOf("note-2", "the gate of the garden"), noteOf("note-3", "gardening"))
	for expression, want := range map[string][]int64{
		Phrase("garden gate", false):                 {1},
		Phrase("gard", true):                         {1, 2, 3},
		Phrase(`gate" OR "x`, false):                 nil,
		AnyOf([]string{"gardening", "gate", "gate"}): {1, 2, 3},
		Phrase("a\x00b", false):                      nil,
	} {
		got, err := s.Match(t.Context(), expression, 10)
		if err != nil {
			t.Errorf("Match(%s) = %v", expression, err)
		}
		found := map[int64]bool{}
		for _, id := range got {
			found[id] = true
		}
		if len(got) != len(want) {
			t.Errorf("Match(%s) = %v, want %v", expression, got, want)
		}
		for _, id := range want {
			if !found[id] {
				t.Errorf("Match(%s) = %v, want %v", expression, got, want)
			}
		}
	}
}

func FuzzColumns(f *testing.F) {
	f.Add(encodeTerms(Terms("some words of words")))
	f.Add([]byte{200})
	f.Fuzz(func(t *testing.T, data []byte) {
		terms, err := decodeTerms(data)
		if err == nil {
			again, err := decodeTerms(encodeTerms(terms))
			if err != nil || !cmp.Equal(terms, again) {
				t.Errorf("%v comes back as %v: %v", terms, again, err)
			}
		}
		if v := decodeVector(data); len(v) != len(data)/4 && v != nil {
			t.Errorf("%d bytes are %d numbers", len(data), len(v))
		}
	})
}
