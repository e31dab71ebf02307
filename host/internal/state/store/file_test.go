package store

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// makeDatabase makes a database with some hundred notes in dir.
func makeDatabase(t *testing.T, dir string) (path string) {
	t.Helper()
	s := open(t, dir)
	err := s.Do(t.Context(), func(tx *sql.Tx) error {
		for i := range 500 {
			if err := add(i, strings.Repeat(fmt.Sprint(i, " "), 50))(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return s.Path()
}

// execute runs statements on the file, as another program would.
func execute(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// edit changes the bytes of a file.
func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(data), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// victim is a file that the test damages.
type victim struct {
	t    *testing.T
	path string
}

func TestOpenRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(v victim)
		want   []string
	}{
		{"a text file", func(v victim) {
			edit(v.t, v.path, func([]byte) []byte { return bytes.Repeat([]byte("dear diary\n"), 1000) })
		}, []string{"not a database", "move it away"}},
		{"a short text file", func(v victim) {
			edit(v.t, v.path, func([]byte) []byte { return []byte("x") })
		}, []string{"not a database"}},
		{"a truncated file", func(v victim) {
			edit(v.t, v.path, func(b []byte) []byte { return b[:len(b)/2] })
		}, []string{"damaged"}},
		{"a file that lacks its last page", func(v victim) {
			edit(v.t, v.path, func(b []byte) []byte { return b[:len(b)-4096] })
		}, []string{"damaged"}},
		{"an empty file beside a log", func(v victim) {
			edit(v.t, v.path, func([]byte) []byte { return nil })
			if err := os.WriteFile(v.path+"-wal", []byte("rest"), 0o600); err != nil {
				v.t.Fatal(err)
			}
		}, []string{"damaged", "log"}},
		{"pages of zeros", func(v victim) {
			edit(v.t, v.path, func(b []byte) []byte { clear(b[4096 : 4*4096]); return b })
		}, []string{"damaged"}},
		{"a database of another program", func(v victim) {
			if err := os.Remove(v.path); err != nil {
				v.t.Fatal(err)
			}
			execute(v.t, v.path, "CREATE TABLE tune (id)", "PRAGMA application_id = 7")
		}, []string{"another program", "choose another state directory"}},
		{"a database of a program without an id", func(v victim) {
			if err := os.Remove(v.path); err != nil {
				v.t.Fatal(err)
			}
			execute(v.t, v.path, "PRAGMA journal_mode = wal", "CREATE TABLE tune (id)")
		}, []string{"another program"}},
		{"a newer schema", func(v victim) {
			execute(v.t, v.path, "PRAGMA user_version = 9999")
		}, []string{"newer version", "9999"}},
		{"a directory", func(v victim) {
			if err := errors.Join(os.Remove(v.path), os.Mkdir(v.path, 0o700)); err != nil {
				v.t.Fatal(err)
			}
		}, []string{"not a file"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := makeDatabase(t, t.TempDir())
			tt.damage(victim{t, path})
			before := snapshot(t, filepath.Dir(path))
			s, err := Open(t.Context(), Options{Dir: filepath.Dir(path)})
			if err == nil {
				s.Close()
				t.Fatal("Open: no error")
			}
			for _, want := range append(tt.want, path) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Open = %v, want an error with %q", err, want)
				}
			}
			if got := snapshot(t, filepath.Dir(path)); got != before {
				t.Errorf("Open changed the files that it refused:\n%s\nbefore:\n%s", got, before)
			}
		})
	}
}

// snapshot describes the data files in dir, without the index of the log, which SQLite rebuilds.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "-shm") {
			return err
		}
		data, err := os.ReadFile(path)
		if len(data) > 0 {
			fmt.Fprintf(&b, "%s %d %x\n", d.Name(), len(data), data[:min(len(data), 100)])
			for i := 100; i < len(data); i += 97 {
				fmt.Fprintf(&b, "%x", data[i])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestOpenOfDamagedPages flips bytes all over the file: Open refuses it or
// reads it, and never crashes or mends it silently.
func TestOpenOfDamagedPages(t *testing.T) {
	whole, err := os.ReadFile(makeDatabase(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 100 {
		data := bytes.Clone(whole)
		// The first bytes of a page are its structure.
		at := rnd.IntN(len(data)/4096)*4096 + rnd.IntN(100)
		data[at] ^= byte(1 + rnd.IntN(255))
		dir := t.TempDir()
		path := filepath.Join(dir, FileName)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), Options{Dir: dir})
		if err != nil {
			refused++
			if !strings.Contains(err.Error(), path) {
				t.Errorf("byte %d: %v, want an error that names the file", at, err)
			}
			continue
		}
		if err := s.Close(); err != nil {
			t.Errorf("byte %d: Close: %v", at, err)
		}
	}
	if refused < 25 {
		t.Errorf("of 100 files with a damaged page %d were refused", refused)
	}
}

// TestOpenAfterKill opens the file and log of a process that never closed its store.
func TestOpenAfterKill(t *testing.T) {
	dir, left := t.TempDir(), t.TempDir()
	s := open(t, dir)
	for i := range 10 {
		if err := s.Do(t.Context(), add(i, "")); err != nil {
			t.Fatal(err)
		}
	}
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(s.Path() + suffix)
		if err == nil {
			err = os.WriteFile(filepath.Join(left, FileName+suffix), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := notes(t, open(t, left)); len(got) != 10 {
		t.Errorf("%d notes, want 10", len(got))
	}
}
