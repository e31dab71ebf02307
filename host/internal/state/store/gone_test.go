package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDatabaseIsTakenAway removes and replaces files of a database under a store.
func TestDatabaseIsTakenAway(t *testing.T) {
	t.Parallel()
	for _, name := range []string{FileName, FileName + "-wal", FileName + "-shm"} {
		for _, replaced := range []bool{false, true} {
			what := "removed"
			if replaced {
				what = "replaced"
			}
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				s := open(t, dir)
				if err := s.Do(t.Context(), add(1, "before")); err != nil {
					t.Fatal(err)
				}
				path, aside := filepath.Join(dir, name), filepath.Join(t.TempDir(), name)
				if err := os.Rename(path, aside); err != nil {
					t.Fatal(err)
				}
				if replaced {
					if err := os.WriteFile(path, []byte("another file"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Healthy(); !errors.Is(err, ErrGone) {
					t.Errorf("Healthy = %v, want ErrGone before anybody writes", err)
				}
				err := s.Do(t.Context(), add(2, "lost"))
				if !errors.Is(err, ErrUnwritable) || !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), name) {
					t.Errorf("Do = %v, want ErrUnwritable, ErrGone and %q", err, name)
				}
				if err := os.Rename(aside, path); err != nil {
					t.Fatal(err)
				}
				if err := s.Do(t.Context(), add(3, "back")); err != nil {
					t.Errorf("Do with the file back = %v", err)
				}
				if err := s.Healthy(); err != nil {
					t.Errorf("Healthy with the file back = %v", err)
				}
				if got := notes(t, s); len(got) != 2 {
					t.Errorf("notes %v, want 1 and 3", got)
				}
			})
		}
	}
}
