package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// open opens a store in dir, with a table for the test; the test closes it.
func open(tb testing.TB, dir string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), Options{Dir: dir})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	err = s.Do(tb.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec("CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY, text TEXT) STRICT")
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func add(id int, text string) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO note (id, text) VALUES (?, ?)", id, text)
		return err
	}
}

// notes returns the ids of all notes.
func notes(tb testing.TB, s *Store) []int {
	tb.Helper()
	rows, err := s.Read().QueryContext(tb.Context(), "SELECT id FROM note ORDER BY id")
	if err != nil {
		tb.Fatal(err)
	}
	defer rows.Close()
	var ids []int
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			tb.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		tb.Fatal(err)
	}
	return ids
}

func TestDoIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a?b%20 #c") // a path is not an address
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	for i := range 3 {
		if err := s.Do(t.Context(), add(i, "")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Do(t.Context(), add(9, "")); !errors.Is(err, ErrClosed) {
		t.Errorf("Do after Close = %v, want ErrClosed", err)
	}
	s = open(t, dir)
	if diff := cmp.Diff([]int{0, 1, 2}, notes(t, s)); diff != "" {
		t.Errorf("after opening again (-want +got):\n%s", diff)
	}
	info, err := os.Stat(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("the database has mode %v, want 0600", got)
	}
}

// TestSettings reads the settings on which durability rests.
func TestSettings(t *testing.T) {
	s := open(t, t.TempDir())
	want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "trusted_schema": "0"}
	got := map[string]string{}
	err := s.Do(t.Context(), func(tx *sql.Tx) error {
		for name := range want {
			var value string
			if err := tx.QueryRow("PRAGMA " + name).Scan(&value); err != nil {
				return err
			}
			got[name] = value
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings of the writer (-want +got):\n%s", diff)
	}
	if _, err := s.Read().Exec("DELETE FROM note"); err == nil {
		t.Error("a reader can write")
	}
}

// group hands fs to the writer while it is busy, so that they form one group, and returns their
// errors.
func group(t *testing.T, s *Store, fs ...func(*sql.Tx) error) []error {
	t.Helper()
	busy, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := s.Do(t.Context(), func(*sql.Tx) error {
			close(busy)
			<-release
			return nil
		})
		if err != nil {
			t.Errorf("Do of nothing: %v", err)
		}
	})
	<-busy
	errs := make([]error, len(fs))
	for i, f := range fs {
		r := &request{f: f, done: make(chan error, 1)}
		s.requests <- r
		wg.Go(func() { errs[i] = <-r.done })
	}
	close(release)
	wg.Wait()
	return errs
}

func TestAnErrorUndoesItsFunctionOnly(t *testing.T) {
	s := open(t, t.TempDir())
	wrong := errors.New("wrong")
	runs := 0
	errs := group(t, s,
		func(tx *sql.Tx) error { runs++; return add(1, "")(tx) },
		func(tx *sql.Tx) error { return errors.Join(add(2, "")(tx), wrong) },
		func(tx *sql.Tx) error { _ = add(3, "")(tx); panic("no") },
		add(4, ""),
		add(4, "twice"),
	)
	if errs[0] != nil || !errors.Is(errs[1], wrong) || errs[2] == nil || errs[3] != nil || errs[4] == nil {
		t.Errorf("errors = %v", errs)
	}
	if !strings.Contains(fmt.Sprint(errs[2]), "panicked: no") {
		t.Errorf("the error of a panic = %v", errs[2])
	}
	if runs != 2 {
		t.Errorf("the first function ran %d times, want 2: once in the group, once alone", runs)
	}
	if diff := cmp.Diff([]int{1, 4}, notes(t, s)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if err := s.Healthy(); err != nil {
		t.Errorf("Healthy = %v: an error of a function is not one of the store", err)
	}
}

// TestAGroupSharesACommit counts transactions by the log's size: a commit
// writes each changed page once.
func TestAGroupSharesACommit(t *testing.T) {
	size := func(s *Store) int64 {
		info, err := os.Stat(s.Path() + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	var fs []func(*sql.Tx) error
	for i := range 50 {
		fs = append(fs, add(i, ""))
	}
	together, alone := open(t, t.TempDir()), open(t, t.TempDir())
	before := size(together)
	for _, err := range group(t, together, fs...) {
		if err != nil {
			t.Fatal(err)
		}
	}
	grown := size(together) - before
	before = size(alone)
	for _, f := range fs {
		if err := alone.Do(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if control := size(alone) - before; grown*10 > control {
		t.Errorf("50 functions in a group wrote %d bytes, one by one %d: they did not share a commit", grown, control)
	}
}

func TestDoGivesUp(t *testing.T) {
	s := open(t, t.TempDir())
	gone := errors.New("gone")
	dead, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := s.Do(dead, add(1, "")); !errors.Is(err, gone) {
		t.Errorf("Do with a context that ended = %v, want its cause", err)
	}

	// While the writer is busy, a waiting function can be given up; a started one is finished.
	ctx, cancel := context.WithCancelCause(t.Context())
	busy, release := make(chan struct{}), make(chan struct{})
	var begun, waiting error
	var wg sync.WaitGroup
	wg.Go(func() {
		begun = s.Do(ctx, func(tx *sql.Tx) error {
			close(busy)
			<-release
			return add(2, "")(tx)
		})
	})
	<-busy
	ran := false
	entered := make(chan struct{})
	wg.Go(func() {
		close(entered)
		waiting = s.Do(ctx, func(*sql.Tx) error { ran = true; return nil })
		close(release)
	})
	<-entered
	cancel(gone)
	wg.Wait()
	if begun != nil {
		t.Errorf("Do of a function that was begun = %v, want nil", begun)
	}
	if !errors.Is(waiting, gone) || ran {
		t.Errorf("Do of a function that waited = %v, ran %v; want the cause of the context, and not", waiting, ran)
	}
	if diff := cmp.Diff([]int{2}, notes(t, s)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestCloseAmongWriters closes a store during many writes: each Do is either kept or refused.
func TestCloseAmongWriters(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var mu sync.Mutex
	var want []int
	var wg sync.WaitGroup
	enough := make(chan struct{})
	for i := range 8 {
		wg.Go(func() {
			for id := i; ; id += 8 {
				err := s.Do(t.Context(), add(id, ""))
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Errorf("Do = %v, want ErrClosed", err)
					}
					return
				}
				mu.Lock()
				if want = append(want, id); len(want) == 200 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	got := map[int]bool{}
	for _, id := range notes(t, open(t, dir)) {
		got[id] = true
	}
	for _, id := range want {
		if !got[id] {
			t.Errorf("note %d was acknowledged and is not there", id)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d notes are there, %d were acknowledged", len(got), len(want))
	}
}

func TestPrepare(t *testing.T) {
	s := open(t, t.TempDir())
	stmt, err := s.Prepare(t.Context(), "INSERT INTO note (id) VALUES (?)")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		err := s.Do(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.StmtContext(t.Context(), stmt).Exec(i)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]int{0, 1, 2}, notes(t, s)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if _, err := s.Prepare(t.Context(), "INSERT INTO nothing"); err == nil {
		t.Error("Prepare of a wrong statement: no error")
	}
}

func TestReadMigrations(t *testing.T) {
	steps, err := readMigrations(migrations)
	if err != nil || len(steps) == 0 {
		t.Fatalf("the migrations of this program: %d, %v", len(steps), err)
	}
	for _, names := range []string{"0002_b.sql", "0001_a.sql 0003_c.sql", "0001_a.sql 0001_b.sql", "1_a.sql", "0001.txt.sql"} {
		files := fstest.MapFS{}
		for name := range strings.FieldsSeq(names) {
			files["migrations/"+name] = &fstest.MapFile{}
		}
		if _, err := readMigrations(files); err == nil {
			t.Errorf("readMigrations of %s: no error", names)
		}
	}
}

// TestMigrationsAreAllOrNone applies a good step and a bad one.
func TestMigrationsAreAllOrNone(t *testing.T) {
	s := open(t, t.TempDir())
	var version int
	err := s.Do(t.Context(), func(tx *sql.Tx) error {
		steps, err := readMigrations(migrations)
		if err != nil {
			return err
		}
		version = len(steps)
		steps = append(steps, migration{"good", "CREATE TABLE good (id) "}, migration{"bad", "CREATE TABLE bad"})
		return applyMigrations(t.Context(), tx, steps)
	})
	if err == nil || !strings.HasPrefix(err.Error(), "bad: ") {
		t.Errorf("the error of a bad step = %v, want one that names it", err)
	}
	var got, tables int
	if err := s.Read().QueryRow("PRAGMA user_version").Scan(&got); err != nil {
		t.Fatal(err)
	}
	if err := s.Read().QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = 'good'").Scan(&tables); err != nil {
		t.Fatal(err)
	}
	if got != version || tables != 0 {
		t.Errorf("schema number %d and %d tables after a bad step, want %d and 0", got, tables, version)
	}
}

// TestGrantsOfEarlierVersions: grants from before grants had bounds stay valid.
func TestGrantsOfEarlierVersions(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "old.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	steps, err := readMigrations(migrations)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(steps []migration) {
		t.Helper()
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(applyMigrations(t.Context(), tx, steps), tx.Commit()); err != nil {
			t.Fatal(err)
		}
	}
	apply(steps[:3])
	if _, err := db.ExecContext(t.Context(), `INSERT INTO grants (id, user, plugin, tool, scope, created_by, approval, created, uses, last_used)
		VALUES ('gr_1', 'ada', 'fs', 'write_file', 'always', 'bob', 'ap_1', 5, 7, 9)`); err != nil {
		t.Fatal(err)
	}
	apply(steps)
	var user, tool, rest, by string
	var uses int
	err = db.QueryRowContext(t.Context(), `SELECT user, tool, path || command || session || expires || max_uses || revoked, created_by, uses
		FROM grants WHERE id = 'gr_1'`).Scan(&user, &tool, &rest, &by, &uses)
	if err != nil || user != "ada" || tool != "write_file" || rest != "000" || by != "bob" || uses != 7 {
		t.Errorf("the grant is %s, %s, %s, %s, %d; %v", user, tool, rest, by, uses, err)
	}
}

func TestOpenNeedsADirectory(t *testing.T) {
	if _, err := Open(t.Context(), Options{}); err == nil {
		t.Error("Open without a directory: no error")
	}
	_, err := Open(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "missing")})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open in a directory that is missing = %v, want fs.ErrNotExist", err)
	}
}
