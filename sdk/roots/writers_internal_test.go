package roots

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSweepKeepsNobody checks that while one directory is swept, which may take long, other
// writers do not wait, there or elsewhere.
func TestSweepKeepsNobody(t *testing.T) {
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	var w writers
	if _, first := w.begin(dir); !first {
		t.Fatal("a directory was swept before")
	}
	if _, first := w.begin(dir); first { // the sweep is in progress
		t.Error("a directory is swept twice")
	}
	if !w.sweeping.TryLock() {
		t.Fatal("a sweep keeps others waiting")
	}
	w.sweeping.Unlock()
	stale := filepath.Join(dir.Name(), temporaryName())
	if err := os.WriteFile(stale, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.sweep(dir)
	if _, err := os.Lstat(stale); err != nil {
		t.Errorf("a directory is swept again: %v", err)
	}
}
