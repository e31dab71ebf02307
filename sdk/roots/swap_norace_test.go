//go:build !race

package roots_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/sdk/roots"
)

// These races are between changes of the file system, which the race detector does not see.

// TestDirSwapRace checks that swaps gain nothing: an open directory stays the same, and
// nothing outside is entered. TestSwapRace has the control.
func TestDirSwapRace(t *testing.T) {
	outside := tree(t, map[string]string{"f": "outside"})
	dir := tree(t, map[string]string{"inside/f": "harmless"})
	defer swapper(t, dir, outside)()
	top := openDir(t, open(t, dir), ".")
	harmless := 0
	for range 100_000 {
		d, err := top.OpenDir("name")
		if err != nil {
			continue
		}
		switch readIn(d, "f") {
		case "outside":
			t.Fatal("a swapped link let a file outside be read")
		case "harmless":
			harmless++
		}
		d.Close()
	}
	if harmless == 0 {
		t.Error("no attempt read the harmless file, so the test shows nothing")
	}
}

// TestSecretRace checks that a link created between the check of a name and its use does not
// lead to a secret, whether it replaces the file or a directory above it.
func TestSecretRace(t *testing.T) {
	const (
		secret = "KEY=1"
		least  = 20_000 // attempts
	)
	dir := tree(t, map[string]string{
		".env": secret, ".ssh/f": secret, "file": "harmless", "inside/f": "harmless", "toFile": "-> .env", "toDir": "-> .ssh",
	})
	var stopped atomic.Bool
	done := make(chan error, 1)
	swap := func(harmless, link, name string) error {
		harmless, link, name = filepath.Join(dir, harmless), filepath.Join(dir, link), filepath.Join(dir, name)
		return errors.Join(os.Rename(harmless, name), os.Rename(name, harmless), os.Rename(link, name), os.Rename(name, link))
	}
	go func() { // ends when stopped; the test waits for it
		var err error
		for err == nil && !stopped.Load() {
			err = errors.Join(swap("file", "toFile", "name"), swap("inside", "toDir", "above"))
		}
		done <- err
	}()
	defer func() {
		stopped.Store(true)
		if err := <-done; err != nil {
			t.Errorf("swap: %v", err)
		}
	}()
	r := open(t, dir)
	harmless := 0
	for range least {
		for _, name := range []string{"name", "above/f"} {
			switch read(r, name) {
			case secret:
				t.Fatalf("a link that was swapped for %s let a secret be read", name)
			case "harmless":
				harmless++
			}
		}
	}
	if harmless == 0 {
		t.Error("no attempt read the harmless file, so the test shows nothing")
	}
}

// TestSwapRaceToProtected checks that a swapped-in link to a protected place inside the folder
// is not followed. The control checks for a directory and then writes through an os.Root,
// which stays in the folder but follows the link.
func TestSwapRaceToProtected(t *testing.T) {
	const (
		bound = 2_000_000 // attempts until the control must leak
		least = 3_000     // attempts on the roots
	)
	dir := tree(t, map[string]string{"inside/f": "old", ".git/hooks/": ""})
	defer swapper(t, dir, ".git/hooks")()
	hook := filepath.Join(dir, ".git/hooks/f")
	touched := func() bool {
		_, err := os.Lstat(hook)
		return err == nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	attempts := 0
	for !touched() {
		if attempts++; attempts == bound {
			t.Fatalf("the control run has not written a hook in %d attempts, so the test shows nothing", bound)
		}
		if info, err := root.Lstat("name"); err == nil && info.IsDir() {
			runtime.Gosched()                                     // as any scheduler may
			_ = root.WriteFile("name/f", []byte("leaked"), 0o644) // may fail
		}
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	written := 0
	for n := 0; n < max(least, attempts) || written == 0 && n < bound; n++ {
		if write(r, "name/f", fmt.Sprint(n), follow, roots.WriteOptions{}) == "" {
			written++
		}
		if touched() {
			t.Fatalf("attempt %d: a swapped link let a hook be written", n)
		}
	}
	if written == 0 {
		t.Error("no attempt has written, so the test shows nothing")
	}
	t.Logf("the control leaked after %d attempts; %d of the attempts on the roots have written inside", attempts, written)
}
