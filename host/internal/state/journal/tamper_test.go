package journal

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/host/internal/state/store"
)

// victim is a directory whose files the test damages.
type victim struct {
	t   *testing.T
	dir string
}

func databasePath(dir string) string { return filepath.Join(dir, "toolhost.db") }

func remove(tb testing.TB, path string) {
	tb.Helper()
	if err := os.Remove(path); err != nil {
		tb.Fatal(err)
	}
}

func write(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

func openStore(tb testing.TB, dir string) *store.Store {
	tb.Helper()
	s, err := store.Open(tb.Context(), store.Options{Dir: dir})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

// database opens the file as another program would.
func database(tb testing.TB, dir string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite", databasePath(dir))
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	tb.Cleanup(func() { db.Close() })
	return db
}

// tamper runs statements as another program would.
func tamper(tb testing.TB, dir string, statements ...string) {
	tb.Helper()
	db := database(tb, dir)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			tb.Fatalf("%s: %v", s, err)
		}
	}
}
