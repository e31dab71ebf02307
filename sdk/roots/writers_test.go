package roots_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// targets opens several places of r.
func targets(tb testing.TB, r *roots.Roots, names ...string) []*roots.Target {
	tb.Helper()
	var all []*roots.Target
	for _, name := range names {
		t, err := r.Target(name, parents)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(t.Close)
		all = append(all, t)
	}
	return all
}

// TestLock checks that a lock on a place excludes others from the place, what is in it and
// what it is in, and from nothing else; also through other Roots of the process.
func TestLock(t *testing.T) {
	dir := tree(t, map[string]string{"d/a": "", "d/ab": "", "e/": ""})
	shared := &roots.Shared{}
	first := openWith(t, roots.Options{Shared: shared}, dir)
	second := openWith(t, roots.Options{Shared: shared}, dir)
	third := open(t, dir) // shares nothing
	for _, tt := range []struct {
		held, wanted string
		free         bool
	}{
		{"d/a", "d/a", false},
		{"d/a", "d", false},
		{"d", "d/a", false},
		{"d", "d/new/file", false},
		{"d/a", "d/ab", true},
		{"d", "e", true},
		{"d/a", ".", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			unlock, err := first.Lock(t.Context(), targets(t, first, tt.held)...)
			if err != nil {
				t.Fatal(err)
			}
			got := false
			go func() { // ends once it has the lock
				release, err := second.Lock(t.Context(), targets(t, second, tt.wanted, "e/x")...)
				if err != nil {
					t.Error(err)
					return
				}
				got = true
				release()
			}()
			synctest.Wait()
			if got != tt.free {
				t.Errorf("while %s is held, %s is free: %t, want %t", tt.held, tt.wanted, got, tt.free)
			}
			release, err := third.Lock(t.Context(), targets(t, third, tt.wanted)...)
			if err != nil {
				t.Fatal(err)
			}
			release()
			unlock()
			synctest.Wait()
			if !got {
				t.Errorf("%s is not free after %s was released", tt.wanted, tt.held)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		if _, err := first.Lock(t.Context(), targets(t, first, "d")...); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("too slow"))
		defer cancel()
		if _, err := second.Lock(ctx, targets(t, second, "d/a")...); err == nil || err.Error() != "too slow" {
			t.Errorf("Lock = %v, want that it ends with its context", err)
		}
	})
}

// TestLockKeepsWritersApart checks that calls that read and rewrite a file do not lose each
// other's changes. Without a common Shared, as in several processes, some calls are refused,
// but no acknowledged change is lost.
func TestLockKeepsWritersApart(t *testing.T) {
	const callers, each = 8, 20
	count := func(shared *roots.Shared) (sum, conflicts int) {
		dir := tree(t, map[string]string{"n": "0"})
		var mu sync.Mutex // guards conflicts
		var wg sync.WaitGroup
		for range callers {
			r := openWith(t, roots.Options{Shared: shared}, dir)
			wg.Go(func() { // ends after its rounds
				for range each {
					if err := increment(t.Context(), r); err != nil {
						mu.Lock()
						conflicts++
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		if _, err := fmt.Sscan(contents(t, dir)["n"], &sum); err != nil {
			t.Fatal(err)
		}
		return sum, conflicts
	}
	if sum, conflicts := count(&roots.Shared{}); sum != callers*each || conflicts > 0 {
		t.Errorf("%d increments gave %d with %d conflicts", callers*each, sum, conflicts)
	}
	met := 0
	for range 10 {
		sum, conflicts := count(nil)
		if sum != callers*each-conflicts {
			t.Errorf("%d increments were acknowledged, and gave %d", callers*each-conflicts, sum)
		}
		met += conflicts
	}
	if met == 0 {
		t.Error("without a common Shared nobody met, so the test shows nothing")
	}
}

func increment(ctx context.Context, r *roots.Roots) error {
	t, err := r.Target("n", follow)
	if err != nil {
		return err
	}
	defer t.Close()
	unlock, err := r.Lock(ctx, t)
	if err != nil {
		return err
	}
	defer unlock()
	f, err := t.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	n := 0
	if _, err := fmt.Sscan(string(data), &n); err != nil {
		return err
	}
	return t.Write(fmt.Append(nil, n+1), roots.WriteOptions{})
}

// TestSweep checks that the next writer removes the remains of a dead process, and nothing else.
func TestSweep(t *testing.T) {
	const (
		stale  = ".toolhost-AAAAAAAAAAAAAAAAAAAAAAAAAA.tmp"
		stale2 = ".toolhost-BBBBBBBBBBBBBBBBBBBBBBBBBB.tmp"
		used   = ".toolhost-CCCCCCCCCCCCCCCCCCCCCCCCCC.tmp"
		young  = ".toolhost-DDDDDDDDDDDDDDDDDDDDDDDDDD.tmp"
		link   = ".toolhost-EEEEEEEEEEEEEEEEEEEEEEEEEE.tmp"
	)
	dir := tree(t, map[string]string{
		stale: "half", stale2 + "/deep/file": "half", used: "half", young: "half", link: "-> d/keep", "d/keep": "k",
		".toolhost-short.tmp": "", ".toolhost-aaaaaaaaaaaaaaaaaaaaaaaaaa.tmp": "", "d/" + stale: "not here",
	})
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{stale, stale2, used} {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(dir, young), old, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, used))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	want := contents(t, dir)
	for name := range want {
		if name == stale || strings.HasPrefix(name, stale2) {
			delete(want, name)
		}
	}
	want["new"] = "new"
	if got := write(open(t, dir), "new", "new", follow, roots.WriteOptions{}); got != "" {
		t.Fatal(got)
	}
	for name := range contents(t, dir) {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is left", name)
		}
	}
	for name := range want {
		if _, ok := contents(t, dir)[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
}

// TestSwapRaceOfWrites checks that renames between check and write gain nothing. The control
// checks and then writes by name: it writes outside.
func TestSwapRaceOfWrites(t *testing.T) {
	const (
		bound = 2_000_000 // attempts until the control must leak
		least = 3_000     // attempts on the roots
	)
	outside := tree(t, map[string]string{"f": "untouched"})
	dir := tree(t, map[string]string{"inside/f": "old"})
	defer swapper(t, dir, outside)()

	touched := func() bool {
		content, err := os.ReadFile(filepath.Join(outside, "f"))
		return err != nil || string(content) != "untouched"
	}
	attempts := 0
	for !touched() {
		if attempts++; attempts == bound {
			t.Fatalf("the control run has not written outside in %d attempts, so the test shows nothing", bound)
		}
		path, err := filepath.EvalSymlinks(filepath.Join(dir, "name", "f"))
		if err == nil && strings.HasPrefix(path, dir+"/") {
			runtime.Gosched()                               // as any scheduler may
			_ = os.WriteFile(path, []byte("leaked"), 0o644) // may fail
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("untouched"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	written := 0
	for n := 0; n < max(least, attempts) || written == 0 && n < bound; n++ {
		switch got := write(r, "name/f", fmt.Sprint(n), follow, roots.WriteOptions{}); {
		case got == "":
			written++
		case strings.HasPrefix(got, "permission_denied: "), strings.HasPrefix(got, "not_found: "), strings.HasPrefix(got, "conflict: "), strings.HasSuffix(got, ": not a directory"),
			strings.HasSuffix(got, ": too many symbolic links"): // the system has followed swaps for long enough
		default:
			t.Fatalf("attempt %d: %s", n, got)
		}
	}
	if touched() || len(contents(t, outside)) != 1 {
		t.Fatalf("a swapped link let a file outside be written: %v", contents(t, outside))
	}
	if written == 0 {
		t.Error("no attempt has written, so the test shows nothing")
	}
	t.Logf("the control leaked after %d attempts; %d of the attempts on the roots have written inside", attempts, written)
}

// FuzzWrite checks, for any name, that a written file is in the folder, and that an error is
// for a model and leaves nothing behind.
func FuzzWrite(f *testing.F) {
	for _, name := range []string{
		"a.txt", "sub/../a.txt", "../a.txt", "new/deep/a.txt", "out/x", "link/x", "abs/y", "dangling", ".env", ".git/config", "a.txt/x", "\x00", "\xff", "./.", "sub/./out/../../z",
	} {
		f.Add(name)
	}
	outside := tree(f, map[string]string{"passwd": "outside"})
	dir := tree(f, map[string]string{
		"a.txt": "a", "sub/b.txt": "b", "link": "-> sub", "out": "-> " + outside, "sub/out": "-> ../../..", "up": "-> .", "abs": "-> $DIR/sub", "dangling": "-> not/there",
		"protected/x": "p",
	})
	above := filepath.Dir(dir)
	r := openWith(f, roots.Options{Protected: []string{dir + "/protected"}}, dir)
	f.Fuzz(func(t *testing.T, name string) {
		// This test never writes a secret's content.
		before := len(contents(t, outside))
		target, err := r.Target(name, parents)
		if err == nil {
			defer target.Close()
			err = target.Write([]byte("fuzz"), roots.WriteOptions{})
		}
		if err == nil {
			content, readErr := os.ReadFile(target.Identity())
			if readErr != nil || string(content) != "fuzz" || !strings.HasPrefix(target.Identity(), dir+"/") {
				t.Errorf("Write(%q) went to %s: %q, %v", name, target.Identity(), content, readErr)
			}
			if got := strings.ToLower(target.String()); strings.HasPrefix(got, "protected") && (got == "protected" || got[9] == '/') && strings.HasPrefix(target.String(), "protected") {
				t.Errorf("Write(%q) changed what is protected", name)
			}
		} else {
			var told *tool.Error
			if !errors.As(err, &told) || !told.Code.Valid() || told.Code == tool.Conflict {
				t.Fatalf("Write(%q) = %v, want a *tool.Error", name, err)
			}
		}
		if len(contents(t, outside)) != before {
			t.Errorf("Write(%q) wrote outside", name)
		}
		entries, err := os.ReadDir(above)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Type().IsRegular() {
				t.Errorf("Write(%q) wrote above: %s", name, e.Name())
			}
		}
	})
}
