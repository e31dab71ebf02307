package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Files that are not this user's notes are refused and stay as they are.
func TestBadFiles(t *testing.T) {
	whole := temp(t)
	s := open(t, whole)
	for word := range strings.FieldsSeq(strings.Repeat("some words of a text ", 200)) {
		s.put(t, noteOf("note-"+word+time.Now().String(), word))
	}
	s.put(t, noteOf("note-last", "whole."))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	run := func(path, statement string) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	page := bytes.Index(good, []byte("whole.")) / pageSize // one of many that hold notes
	for name, make := range map[string]func(path string){
		"text": func(path string) { must(t, os.WriteFile(path, []byte("hello"), 0o600)) },
		"half": func(path string) { must(t, os.WriteFile(path, good[:len(good)/2], 0o600)) },
		"zeros": func(path string) {
			must(t, os.WriteFile(path, append(good[:8192:8192], bytes.Repeat([]byte{0}, len(good)-8192)...), 0o600))
		},
		"damaged": func(path string) {
			damaged := bytes.Clone(good)
			copy(damaged[page*pageSize:], bytes.Repeat([]byte{0xff}, 16))
			must(t, os.WriteFile(path, damaged, 0o600))
		},
		"directory": func(path string) { must(t, os.Mkdir(path, 0o700)) },
		"link":      func(path string) { must(t, os.Symlink(whole, path)) },
		"foreign":   func(path string) { run(path, "CREATE TABLE t (a)") },
		"newer":     func(path string) { must(t, os.WriteFile(path, good, 0o600)); run(path, "PRAGMA user_version = 99") },
		"another user's": func(path string) {
			must(t, os.WriteFile(path, good, 0o600))
			run(path, "UPDATE meta SET user = 'bea'")
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := temp(t)
			make(path)
			before, _ := os.ReadFile(path)
			s, err := Open(t.Context(), Options{Path: path, User: "ada", Embedder: "test"})
			want := ErrFile
			if name == "newer" {
				want = ErrNewer
			}
			if !errors.Is(err, want) {
				t.Errorf("Open() = %v, want %v", err, want)
			}
			if err == nil {
				must(t, s.Close())
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
	empty := temp(t)
	must(t, os.WriteFile(empty, nil, 0o600)) // its maker was killed
	open(t, empty).put(t, noteOf("note-1", "one"))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An acknowledged change survives a loss of power only if the log is synced.
func TestTheFileIsDurable(t *testing.T) {
	s := open(t, temp(t))
	for query, want := range map[string]string{
		"PRAGMA journal_mode": "wal", "PRAGMA synchronous": "2", "PRAGMA secure_delete": "1", "PRAGMA foreign_keys": "1",
	} {
		var got string
		if err := s.conn.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s of the writer = %s, %v, want %s", query, got, err, want)
		}
	}
}

// withSteps are the steps of now and more, which a later version may have.
func withSteps(t *testing.T, more ...string) fs.FS {
	t.Helper()
	all := fstest.MapFS{}
	names, err := steps(migrations)
	must(t, err)
	for _, name := range names {
		text, err := fs.ReadFile(migrations, name)
		must(t, err)
		all[name] = &fstest.MapFile{Data: text}
	}
	for i, text := range more {
		all[fmt.Sprintf("migrations/%04d_more.sql", len(names)+1+i)] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

// upgrade applies steps to a file.
func upgrade(ctx context.Context, path string, all fs.FS) error {
	db, err := connect(path, writerParams)
	if err != nil {
		return err
	}
	return errors.Join(migrate(ctx, db, "ada", all), db.Close())
}

// contents returns the content of a file, and the number of applied steps.
func contents(t *testing.T, path string) (version int, notes []string) {
	t.Helper()
	db, err := connect(path, checkParams)
	must(t, err)
	defer func() { must(t, db.Close()) }()
	must(t, db.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&version))
	rows, err := db.QueryContext(t.Context(), "SELECT content FROM note ORDER BY id")
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var content string
		must(t, rows.Scan(&content))
		notes = append(notes, content)
	}
	must(t, rows.Err())
	return version, notes
}

const (
	// addsColumn is a step that a later version may have.
	addsColumn = "ALTER TABLE note ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'; UPDATE note SET content = content || '!'"
	// neverEnds is a step that is killed.
	neverEnds = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
)

// A file of an earlier version is brought up to date with all that is in it; a step
// that fails, or is killed, leaves it as it was, for this version to open.
func TestMigrations(t *testing.T) {
	path := temp(t)
	s := open(t, path)
	s.put(t, noteOf("note-1", "one"), noteOf("note-2", "two"))
	must(t, s.Close())
	before, notes := contents(t, path)
	if before != 1 || !cmp.Equal(notes, []string{"one", "two"}) {
		t.Fatalf("at first there are version %d and %q", before, notes)
	}
	unchanged := func(when string) {
		t.Helper()
		if version, now := contents(t, path); version != before || !cmp.Equal(notes, now) {
			t.Errorf("%s there are version %d and %q, want %d and %q", when, version, now, before, notes)
		}
		s := open(t, path)
		s.put(t, noteOf("note-x", "another"))
		must(t, s.Write(t.Context(), func(tx *Tx) error {
			n, err := tx.ByNoteID("note-x")
			return errors.Join(err, tx.Delete(n.ID))
		}))
		must(t, s.Close())
	}
	if err := upgrade(t.Context(), path, withSteps(t, addsColumn, "CREATE TABLE note (a)")); err == nil || !strings.Contains(err.Error(), "0003_more.sql") {
		t.Errorf("a step that fails = %v, want its name", err)
	}
	unchanged("after a step that failed")

	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMigrationIsKilled$")
	cmd.Env = append(os.Environ(), "STORE_MIGRATES="+path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatal(err)
	}
	// From here on, the step writes. Any moment will do except its end, which never comes.
	for deadline, look := time.Now().Add(time.Minute), time.Tick(time.Millisecond); ; <-look {
		if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 100*pageSize {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the step writes nothing")
		}
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	unchanged("after a step that was killed")

	must(t, upgrade(t.Context(), path, withSteps(t, addsColumn)))
	if version, now := contents(t, path); version != before+1 || !cmp.Equal(now, []string{"one!", "two!"}) {
		t.Errorf("brought up to date there are version %d and %q", version, now)
	}
	must(t, upgrade(t.Context(), path, withSteps(t, addsColumn))) // nothing is left to do
	if _, now := contents(t, path); !cmp.Equal(now, []string{"one!", "two!"}) {
		t.Errorf("a step was applied again: %q", now)
	}
	if _, err := Open(t.Context(), Options{Path: path, User: "ada", Embedder: "test"}); !errors.Is(err, ErrNewer) {
		t.Errorf("Open() by the version before = %v, want %v", err, ErrNewer)
	}
}

// TestMigrationIsKilled is the process that is killed.
func TestMigrationIsKilled(t *testing.T) {
	path := os.Getenv("STORE_MIGRATES")
	if path == "" {
		return // TestMigrations starts it
	}
	_, err := fmt.Fprintln(os.Stdout, "migrates")
	must(t, err)
	const fills = "CREATE TABLE filled AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT randomblob(1000) FROM n;"
	t.Error(upgrade(t.Context(), path, withSteps(t, addsColumn+";"+fills+neverEnds)))
}
