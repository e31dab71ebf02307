package users

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed/embedtest"
	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/store"
)

// Expired notes are removed, and unused files are closed, through the passage of time alone.
func TestUpkeepComesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := newSet(t, func(o *Options) {
			o.Idle = time.Hour
			o.Keep = map[rank.Category]time.Duration{rank.Core: 10 * time.Minute}
		})
		saved(t.Context(), t, s, "ada", dir, "the first")
		u, done, err := s.Use(t.Context(), "ada", dir)
		if err != nil {
			t.Fatal(err)
		}
		notes := func(want int) {
			t.Helper()
			synctest.Wait()
			if st, err := u.Store().Stats(t.Context(), time.Now()); err != nil || st.Notes+st.Expired != want {
				t.Errorf("after %v the file has %d notes, want %d: %v", time.Since(st.Oldest), st.Notes+st.Expired, want, err)
			}
		}
		<-time.After(5 * time.Minute)
		notes(1)
		<-time.After(6 * time.Minute)
		notes(0)
		done()
		<-time.After(50 * time.Minute)
		synctest.Wait()
		if openFiles(s) != 1 {
			t.Error("the file was closed too early")
		}
		<-time.After(15 * time.Minute)
		synctest.Wait()
		if openFiles(s) != 0 {
			t.Error("the file is open, which nobody has used for an hour")
		}
		s.Close()
	})
}

// hold lets the server wait in its answers until release is called; asked says when
// it was asked.
func hold(t *testing.T, server *embedtest.Server) (asked chan struct{}, release func()) {
	t.Helper()
	asked, wait := make(chan struct{}, 1), make(chan struct{})
	server.Respond(func(http.ResponseWriter, []string) bool {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-wait
		return false
	})
	return asked, func() { server.Respond(nil); close(wait) }
}

// While the notes of one user are being embedded, others can be closed.
func TestEmbeddingHoldsOneUser(t *testing.T) {
	server, dir := embedtest.Start(t), t.TempDir()
	s := remote(t, server, "m")
	for i := range 3 {
		saved(t.Context(), t, s, fmt.Sprint("user", i), dir, "my automobile")
	}
	u, done, err := s.Use(t.Context(), "ada", dir)
	if err != nil {
		t.Fatal(err)
	}
	asked, release := hold(t, server)
	defer release()
	n := &store.Note{NoteID: "note", Content: "the physician", Seq: -1, Updated: time.Now(), Passages: []store.Passage{{Stop: 13}}}
	if err := u.Store().Write(t.Context(), func(tx *store.Tx) error { return tx.Put(n) }); err != nil {
		t.Fatal(err)
	}
	done()
	s.Embed()
	<-asked
	s.closeUnused(0)
	if n := openFiles(s); n != 1 {
		t.Errorf("%d users are open while the notes of one are embedded, want that one", n)
	}
}

// A text that the embedder refuses keeps no other from being embedded, and no
// search from going by vectors.
func TestATextIsRefused(t *testing.T) {
	server, dir := embedtest.Start(t), t.TempDir()
	s := remote(t, server, "m")
	server.Respond(func(w http.ResponseWriter, texts []string) bool {
		if strings.Contains(strings.Join(texts, " "), "unspeakable") {
			w.WriteHeader(http.StatusBadRequest)
			return true
		}
		return false
	})
	saved(t.Context(), t, s, "ada", dir, "an unspeakable automobile")
	if err := s.queries.resting(); err != nil {
		t.Errorf("the embedder is left alone since %v", err)
	}
	for i := range 40 {
		saved(t.Context(), t, s, "ada", dir, fmt.Sprintf("The automobile number%d", i))
	}
	embedded(t, s, "ada", dir)
	if got := found(t.Context(), t, s, "ada", dir, "car", Vector); len(got) != 20 {
		t.Errorf("%d notes are found by vectors, want 20", len(got))
	}
	if got := found(t.Context(), t, s, "ada", dir, "unspeakable", Hybrid); len(got) == 0 || !strings.Contains(got[0], "unspeakable") {
		t.Errorf("the one without a vector is not found by its words: %q", got)
	}
	// A server that refuses every request is out of order.
	server.Respond(func(w http.ResponseWriter, _ []string) bool { w.WriteHeader(http.StatusBadRequest); return true })
	saved(t.Context(), t, s, "ada", dir, "another automobile")
	u, done, err := s.Use(t.Context(), "ada", dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.embedSome(t.Context()); err == nil {
		t.Error("nothing is wrong with a server that refuses everything")
	}
	done()
	server.Respond(nil)
	embedded(t, s, "ada", dir)
}
