package users

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed"
	"github.com/toolhost/toolhost/plugins/memory/internal/embed/embedtest"
	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/store"
)

// testing.TB, or a property test's.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newSet(t *testing.T, change ...func(*Options)) *Set {
	t.Helper()
	opts := Options{Embedder: embed.Local{}, Wait: time.Minute, MaxOpen: 8, Idle: time.Hour, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&opts)
	}
	s := New(t.Context(), opts)
	t.Cleanup(s.Close)
	return s
}

// openFiles returns how many users' files are open.
func openFiles(s *Set) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.users)
}

// saved saves a note of a user.
func saved(ctx context.Context, t tester, s *Set, user, dir, content string) string {
	t.Helper()
	u, done, err := s.Use(ctx, user, dir)
	if err != nil {
		t.Fatalf("Use(%q) = %v", user, err)
	}
	defer done()
	n := &store.Note{NoteID: fmt.Sprintf("note-%q-%d", content, time.Now().UnixNano()), Content: content, Seq: -1, Created: time.Now(), Updated: time.Now()}
	if n.Passages, err = u.Prepare(ctx, content); err != nil {
		t.Fatalf("Prepare(%q) = %v", content, err)
	}
	if err := u.Store().Write(ctx, func(tx *store.Tx) error { return tx.Put(n) }); err != nil {
		t.Fatalf("Put(%q) = %v", content, err)
	}
	return n.NoteID
}

// found returns the results of a user's search.
func found(ctx context.Context, t tester, s *Set, user, dir, query string, mode Mode) []string {
	t.Helper()
	u, done, err := s.Use(ctx, user, dir)
	if err != nil {
		t.Fatalf("Use(%q) = %v", user, err)
	}
	defer done()
	all, _, err := u.Search(ctx, Search{Text: query, Mode: mode, Limit: 20, Words: .8, Near: .2, Now: time.Now(), Filter: rank.Filter{Conversation: true}})
	if err != nil {
		t.Fatalf("Search(%q) = %v", query, err)
	}
	var texts []string
	for _, f := range all {
		texts = append(texts, f.Content)
	}
	return texts
}

// No user finds another's notes, whatever their names are, even if the host gives all users one
// directory.
func TestUsersAreApart(t *testing.T) {
	names := rapid.OneOf(
		rapid.SampledFrom([]string{"ada", "Ada", "ADA", "ada ", "../ada", "..", "/", "ada/../bea", "ada\x00", "ada\x00bea", "аda", "notes-x.db", strings.Repeat("a", 10_000), strings.Repeat("a", 10_001)}),
		rapid.StringN(1, 50, -1),
	)
	rapid.Check(t, func(r *rapid.T) {
		dir := filepath.Join(t.TempDir(), "users")
		if err := os.Mkdir(dir, 0o700); err != nil {
			r.Fatalf("%v", err)
		}
		s := newSet(t, func(o *Options) { o.MaxOpen = 2 })
		defer s.Close()
		users := rapid.SliceOfNDistinct(names, 2, 3, rapid.ID[string]).Draw(r, "users")
		secrets := map[string]string{}
		for i, user := range users {
			secrets[user] = fmt.Sprintf("the shared words and secret%d", i)
			saved(t.Context(), r, s, user, dir, secrets[user])
		}
		for _, user := range users {
			for _, mode := range []Mode{Hybrid, Vector, Keyword} {
				got := found(t.Context(), r, s, user, dir, "shared words secret0 secret1 secret2", mode)
				if len(got) != 1 || got[0] != secrets[user] {
					r.Fatalf("%.40q finds %q by %s, want its own note only", user, got, mode)
				}
			}
		}
		// Control: one user with all the notes finds all of them.
		for _, secret := range secrets {
			saved(t.Context(), r, s, "control", dir, secret)
		}
		if got := found(t.Context(), r, s, "control", dir, "shared words", Hybrid); len(got) != len(users) {
			r.Fatalf("one user with the notes of %d finds %d: nothing was proved", len(users), len(got))
		}
		entries, err := os.ReadDir(filepath.Dir(dir))
		if err != nil || len(entries) != 1 {
			r.Fatalf("something was made outside of the directory: %v, %v", entries, err)
		}
	})
}

// Notes of inactive users are closed, and opened again on demand.
func TestUsersAreClosed(t *testing.T) {
	dir, s := t.TempDir(), newSet(t, func(o *Options) { o.MaxOpen = 3 })
	for i := range 10 {
		saved(t.Context(), t, s, fmt.Sprint(i), dir, fmt.Sprintf("the word%d", i))
	}
	if n := openFiles(s); n > 3 {
		t.Errorf("%d users are open, want 3 at most", n)
	}
	for i := range 10 {
		if got := found(t.Context(), t, s, fmt.Sprint(i), dir, "word0 word1 word2 word3 word4 word5 word6 word7 word8 word9", Keyword); len(got) != 1 {
			t.Errorf("user %d finds %q", i, got)
		}
	}
	s.closeUnused(time.Hour)
	if openFiles(s) == 0 {
		t.Error("users were closed that were just active")
	}
	for deadline := time.Now().Add(time.Minute); openFiles(s) > 0; s.closeUnused(0) { // the background may have one in use
		if time.Now().After(deadline) {
			t.Fatalf("%d users are open, want none", openFiles(s))
		}
	}
}

// One that is in use is not closed.
func TestUsersInUseStayOpen(t *testing.T) {
	dir, s := t.TempDir(), newSet(t, func(o *Options) { o.MaxOpen = 1 })
	u, done, err := s.Use(t.Context(), "ada", dir)
	if err != nil {
		t.Fatal(err)
	}
	saved(t.Context(), t, s, "bea", dir, "hers")
	s.closeUnused(0)
	if _, err := u.Store().Rev(t.Context()); err != nil {
		t.Errorf("the file in use was closed: %v", err)
	}
	done()
}

// Two processes on one file see each other's notes. (Two sets share nothing but
// the file; a test of the plugin has real processes.)
func TestTwoOnOneFile(t *testing.T) {
	dir := t.TempDir()
	sets := []*Set{newSet(t), newSet(t)}
	var wg sync.WaitGroup
	for i, s := range sets {
		wg.Go(func() {
			for n := range 50 {
				saved(t.Context(), t, s, "ada", dir, fmt.Sprintf("the word number%dx%d", i, n))
			}
		})
	}
	wg.Wait()
	for i, s := range sets {
		for _, word := range []string{"number0x7", "number1x49"} {
			if got := found(t.Context(), t, s, "ada", dir, word, Keyword); len(got) != 1 {
				t.Errorf("set %d finds %q for %s", i, got, word)
			}
		}
	}
}

// A file that was removed, or replaced, is not written to any more.
func TestTheFileIsRemoved(t *testing.T) {
	dir, s := t.TempDir(), newSet(t)
	saved(t.Context(), t, s, "ada", dir, "the first")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := found(t.Context(), t, s, "ada", dir, "first", Hybrid); len(got) != 0 {
		t.Errorf("a user that was deleted finds %q", got)
	}
	saved(t.Context(), t, s, "ada", dir, "the second")
	if got := found(t.Context(), t, newSet(t), "ada", dir, "second", Hybrid); len(got) != 1 {
		t.Errorf("the new file has %q", got)
	}
}

// Notes that have expired, or are too old for their category, are removed in the background,
// from the file and from memory.
func TestUpkeepRemoves(t *testing.T) {
	dir := t.TempDir()
	s := newSet(t, func(o *Options) { o.Keep = map[rank.Category]time.Duration{rank.Core: time.Hour} })
	saved(t.Context(), t, s, "ada", dir, "stays")
	u, done, err := s.Use(t.Context(), "ada", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	now := time.Now()
	for _, n := range []store.Note{
		{NoteID: "old", Content: "old", Updated: now.Add(-2 * time.Hour)},
		{NoteID: "pinned", Content: "pinned", Updated: now.Add(-2 * time.Hour), Pinned: true},
		{NoteID: "expired", Content: "expired", Updated: now, Expires: now.Add(-time.Second)},
	} {
		n.Seq = -1
		if n.Passages, err = u.Prepare(t.Context(), n.Content); err != nil {
			t.Fatal(err)
		}
		if err := u.Store().Write(t.Context(), func(tx *store.Tx) error { return tx.Put(&n) }); err != nil {
			t.Fatal(err)
		}
	}
	if got := found(t.Context(), t, s, "ada", dir, "stays old pinned expired", Keyword); len(got) != 3 {
		t.Errorf("before, %q are found, want all but what has expired", got)
	}
	s.each(func(u *User) { u.purge(t.Context()) })
	if got := found(t.Context(), t, s, "ada", dir, "stays old pinned expired", Keyword); len(got) != 2 {
		t.Errorf("afterwards %q are found, want what stays and what is pinned", got)
	}
	if st, err := u.Store().Stats(t.Context(), now); err != nil || st.Notes != 2 {
		t.Errorf("the file has %d notes, want 2: %v", st.Notes, err)
	}
}

// remote is a set whose embedder is a server.
func remote(t *testing.T, server *embedtest.Server, model string) *Set {
	t.Helper()
	e, err := embed.NewOllama(embed.RemoteOptions{BaseURL: server.URL, Model: model, Timeout: time.Minute, Pause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return newSet(t, func(o *Options) { o.Embedder = e })
}

// embedded waits until all notes of a user have a vector.
func embedded(t *testing.T, s *Set, user, dir string) {
	t.Helper()
	u, done, err := s.Use(t.Context(), user, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	for deadline, look := time.Now().Add(time.Minute), time.Tick(time.Millisecond); ; <-look {
		if n, err := u.Store().Pending(t.Context()); err != nil || n == 0 {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the notes were not embedded within a minute")
		}
		s.Embed()
	}
}

func TestAModelFindsMeaning(t *testing.T) {
	server, dir := embedtest.Start(t), t.TempDir()
	s := remote(t, server, "m")
	saved(t.Context(), t, s, "ada", dir, "My automobile needs new tyres")
	saved(t.Context(), t, s, "ada", dir, "The physician is on holiday")
	for _, mode := range []Mode{Vector, Hybrid} {
		if got := found(t.Context(), t, s, "ada", dir, "car", mode); len(got) == 0 || !strings.Contains(got[0], "automobile") {
			t.Errorf("%s finds %q, want the automobile", mode, got)
		}
	}
	if got := found(t.Context(), t, s, "ada", dir, "car", Keyword); len(got) != 0 {
		t.Errorf("keyword finds %q", got)
	}
	// Neither the same text nor the same query is sent again.
	before := len(server.Requests())
	saved(t.Context(), t, s, "ada", dir, "My automobile needs new tyres")
	found(t.Context(), t, s, "ada", dir, "car", Vector)
	if n := len(server.Requests()) - before; n != 0 {
		t.Errorf("%d requests for what is known", n)
	}
}

// While the embedder is down notes are saved and found by their words; when it is
// back they get their vectors.
func TestTheEmbedderIsDown(t *testing.T) {
	server, dir := embedtest.Start(t), t.TempDir()
	s := remote(t, server, "m")
	server.Respond(func(w http.ResponseWriter, _ []string) bool { w.WriteHeader(http.StatusBadGateway); return true })
	saved(t.Context(), t, s, "ada", dir, "My automobile needs new tyres")
	u, done, err := s.Use(t.Context(), "ada", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	all, note, err := u.Search(t.Context(), Search{Text: "tyres", Mode: Hybrid, Limit: 5, Words: .5, Near: .5, Now: time.Now()})
	if err != nil || len(all) != 1 || !strings.Contains(note, "only words were searched") || !strings.Contains(note, "502 Bad Gateway") {
		t.Errorf("Search() = %v, %q, %v", all, note, err)
	}
	if _, _, err := u.Search(t.Context(), Search{Text: "car", Mode: Vector, Limit: 5, Now: time.Now()}); !errors.Is(err, ErrVectors) {
		t.Errorf("Search() by vectors = %v, want %v", err, ErrVectors)
	}
	asked := len(server.Requests())
	saved(t.Context(), t, s, "ada", dir, "A bicycle needs tyres as well")
	found(t.Context(), t, s, "ada", dir, "a train", Hybrid)
	for _, r := range server.Requests()[asked:] {
		if strings.Contains(fmt.Sprint(r.Texts), "train") {
			t.Errorf("a call asks for %q although the embedder was found to be down", r.Texts)
		}
	}
	if !strings.Contains(u.Trouble(), "502") {
		t.Errorf("Trouble() = %q", u.Trouble())
	}
	server.Respond(nil)
	embedded(t, s, "ada", dir)
	s.queries.note(nil) // it is asked again by calls
	if got := found(t.Context(), t, s, "ada", dir, "car", Vector); len(got) != 2 || !strings.Contains(got[0], "automobile") {
		t.Errorf("found %q when the embedder is back", got)
	}
}

// With another embedder, or another model of the same name, everything is embedded again while
// searches continue.
func TestTheEmbedderIsReplaced(t *testing.T) {
	server, dir := embedtest.Start(t), t.TempDir()
	first := newSet(t)
	for i := range 100 {
		saved(t.Context(), t, first, "ada", dir, fmt.Sprintf("The automobile number%d", i))
	}
	first.Close()
	second := remote(t, server, "m")
	if got := found(t.Context(), t, second, "ada", dir, "number7", Hybrid); len(got) != 1 && got[0] != "The automobile number7" {
		t.Errorf("meanwhile found %q", got)
	}
	embedded(t, second, "ada", dir)
	if got := found(t.Context(), t, second, "ada", dir, "car", Vector); len(got) != 20 {
		t.Errorf("found %d notes by the new embedder", len(got))
	}
	second.Close()
	server.Widen(5)
	third := remote(t, server, "m")
	u, done, err := third.Use(t.Context(), "ada", dir)
	if err != nil {
		t.Fatal(err)
	}
	all, note, err := u.Search(t.Context(), Search{Text: "number7", Mode: Hybrid, Limit: 5, Words: .5, Near: .5, Now: time.Now()})
	if err != nil || len(all) != 1 || !strings.Contains(note, "embedded again") {
		t.Errorf("Search() with a model that was replaced = %v, %q, %v", all, note, err)
	}
	done()
	embedded(t, third, "ada", dir)
	if got := found(t.Context(), t, third, "ada", dir, "car", Vector); len(got) != 20 {
		t.Errorf("found %d notes by the model in its place", len(got))
	}
}
