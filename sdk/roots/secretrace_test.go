package roots_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/sdk/roots"
)

// TestSecretByHardLink checks that a secret cannot be read under another name, even one that
// was created after the search for secrets, and that other files with several names can be
// read.
func TestSecretByHardLink(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a/.env": "KEY=1", "a/.ssh/deep/key": "KEY=2", "plain": "harmless", "notes": "KEY=3"})
	link := func(from, to string) {
		t.Helper()
		if err := os.Link(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	shared := &roots.Shared{}
	r := openWith(t, roots.Options{Shared: shared}, dir)
	link("plain", "plain2")
	link("a/.env", "x")
	if got := read(r, "plain2"); got != "harmless" {
		t.Errorf("a file with two harmless names reads %q", got)
	}
	if got := read(r, "x"); got == "KEY=1" {
		t.Error("a secret is read by a hard link")
	}
	link("a/.ssh/deep/key", "y")
	if got := read(openWith(t, roots.Options{Shared: shared}, dir), "y"); got == "KEY=2" {
		t.Error("a secret is read by a hard link that was made later")
	}
	link("notes", ".netrc")
	if got := read(r, "notes"); got == "KEY=3" {
		t.Error("a file is read that got the name of a secret later")
	}
	d, err := r.OpenDir(".", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if f, err := d.Open("x"); err == nil {
		_ = f.Close()
		t.Error("a secret is opened in a directory by a hard link")
	}
	target, err := r.Target("x", roots.TargetOptions{Read: true})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if f, err := target.Open(); err == nil {
		_ = f.Close()
		t.Error("a secret is opened as a target by a hard link")
	}
	if got := transfer(t, r, "x", "copied", roots.MoveOptions{Copy: true}); got == "" {
		t.Error("a secret is copied by a hard link")
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	link("a/.env", "d/x")
	if got := transfer(t, r, "d", "e", roots.MoveOptions{Copy: true}); got == "" {
		t.Error("a secret is copied with its directory by a hard link")
	}
	none := openWith(t, roots.Options{Secrets: []string{}}, dir)
	if got := read(none, "x"); got != "KEY=1" {
		t.Errorf("without secrets the file reads %q", got)
	}
}
