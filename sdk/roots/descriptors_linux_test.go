package roots_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/roots"
)

// TestDescriptors checks that no change leaves a descriptor open, whether it succeeds or
// fails.
func TestDescriptors(t *testing.T) {
	dir := tree(t, map[string]string{"a": "a", "d/e/f": "f", "taken/x": "x", ".git/config": "c", "link": "-> nowhere"})
	r := openWith(t, roots.Options{Protected: []string{dir + "/d/e/p"}}, dir)
	round := func(n int) {
		name := fmt.Sprintf("new%d", n)
		write(r, name+"/deep/er", "x", parents, roots.WriteOptions{})
		write(r, name+"/deep/er", "y", parents, roots.WriteOptions{Append: true})
		write(r, "taken", "x", parents, roots.WriteOptions{})
		write(r, "a/b/c", "x", parents, roots.WriteOptions{})
		write(r, ".git/hooks/x", "x", parents, roots.WriteOptions{})
		write(r, "d/e/p/x", "x", parents, roots.WriteOptions{})
		write(r, strings.Repeat("n", 300)+"/x", "x", parents, roots.WriteOptions{})
		mkdir(r, name+"/x/y")
		mkdir(r, "a")
		transfer(t, r, "taken", name+"/copy", roots.MoveOptions{Copy: true})
		transfer(t, r, "taken", "a", roots.MoveOptions{Copy: true})
		transfer(t, r, "link", name+"/l", roots.MoveOptions{})
		transfer(t, r, name+"/l", "link", roots.MoveOptions{})
		transfer(t, r, "d", "x", roots.MoveOptions{})
		remove(r, name)
		remove(r, name)
	}
	round(0)
	before := descriptors(t)
	for n := range 20 {
		round(n)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open, before there were %d", after, before)
	}
}

func descriptors(tb testing.TB) int {
	tb.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		tb.Fatal(err)
	}
	return len(list)
}

// TestTreeTooDeep checks that a tree with too many levels is refused before anything changes.
func TestTreeTooDeep(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 70)), 0o755); err != nil {
		t.Fatal(err)
	}
	want := contents(t, dir)
	r := open(t, dir)
	for _, opts := range []roots.MoveOptions{{}, {Copy: true}} {
		const deep = "resource_exhausted: The directory is nested deeper than 64 levels"
		if got := transfer(t, r, "d", "x/y", opts); got != deep {
			t.Errorf("transfer(%+v) = %q, want %q", opts, got, deep)
		}
	}
	if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
		t.Errorf("the files (-want +got):\n%s", diff)
	}
}
