package roots_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// swapper repeatedly replaces dir/name, a directory with a harmless file, with a symbolic link
// that leads outside, and back, until stopped.
func swapper(t *testing.T, dir, outside string) (stop func()) {
	t.Helper()
	var stopped atomic.Bool
	done := make(chan error, 1)
	inside, link, name := filepath.Join(dir, "inside"), filepath.Join(dir, "link"), filepath.Join(dir, "name")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	swap := func() error {
		if err := os.Rename(inside, name); err != nil {
			return err
		}
		if err := os.Rename(name, inside); err != nil {
			return err
		}
		if err := os.Rename(link, name); err != nil {
			return err
		}
		return os.Rename(name, link)
	}
	go func() { // ends when stopped; the test waits for it
		for !stopped.Load() {
			if err := swap(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return func() {
		stopped.Store(true)
		if err := <-done; err != nil {
			t.Errorf("swap: %v", err)
		}
	}
}

// TestSwapRace checks that renames between check and use do not give access to other files.
// The control checks and then opens by name. It leaks, which shows that the swaps are fast
// enough.
func TestSwapRace(t *testing.T) {
	const (
		secret = "outside"
		bound  = 2_000_000 // attempts until the control must leak
		least  = 20_000    // attempts on the roots
	)
	outside := tree(t, map[string]string{"f": secret})
	dir := tree(t, map[string]string{"inside/f": "harmless"})
	defer swapper(t, dir, outside)()

	control := func() string {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, "name", "f"))
		if err != nil || !strings.HasPrefix(path, dir+"/") {
			return ""
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return ""
		}
		return string(content)
	}
	attempts := 0
	for control() != secret {
		if attempts++; attempts == bound {
			t.Fatalf("the control run has not leaked in %d attempts, so the test shows nothing", bound)
		}
	}
	r := open(t, dir)
	harmless := 0
	for range max(least, 2*attempts) {
		switch read(r, "name/f") {
		case secret:
			t.Fatal("a swapped link let a file outside be read")
		case "harmless":
			harmless++
		}
	}
	if harmless == 0 {
		t.Error("no attempt read the harmless file, so the test shows nothing")
	}
	t.Logf("the control leaked after %d attempts; %d of the attempts on the roots read the harmless file", attempts, harmless)
}
