package roots_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/sdk/roots"
)

// TestAllowed checks that allowed files can be read, copied and moved although a pattern
// covers them, and that no other secrets can.
func TestAllowed(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		".env": "KEY=1", "a/.env": "KEY=2", ".ssh/key": "KEY=3", ".ssh/deep/key": "KEY=4", "link": "-> .env", "other": "-> a/.env", "private/x": "KEY=5", "a/private/x": "plain",
	})
	open := func(allowed ...string) *roots.Roots {
		t.Helper()
		for i, name := range allowed {
			allowed[i] = filepath.Join(dir, name)
		}
		return openWith(t, roots.Options{Secrets: []string{".env", ".ssh", filepath.Join(dir, "private")}, Allowed: allowed}, dir)
	}
	if err := os.Link(filepath.Join(dir, ".env"), filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	r := open(".env", ".ssh")
	for name, want := range map[string]string{".env": "KEY=1", ".ssh/key": "KEY=3", ".ssh/deep/key": "KEY=4", "link": "KEY=1", "a/private/x": "plain"} {
		if got := read(r, name); got != want {
			t.Errorf("%s reads %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"a/.env", ".ENV", "other", "private/x", "hard"} {
		if got := read(r, name); len(got) == len("KEY=1") && got[:4] == "KEY=" {
			t.Errorf("%s reads %q though it is not allowed", name, got)
		}
	}
	for name, want := range map[string]bool{".ssh/deep/key": true, ".ssh/key": false} {
		if got := read(open(".ssh/deep/key"), name); (got[:4] == "KEY=") != want {
			t.Errorf("of a directory of which a file is allowed, %s reads %q", name, got)
		}
	}
	if got := transfer(t, r, ".env", "copied", roots.MoveOptions{Copy: true}); got != "" {
		t.Errorf("an allowed file cannot be copied: %s", got)
	}
	if got := transfer(t, r, "a/.env", "copied2", roots.MoveOptions{Copy: true}); got == "" {
		t.Error("a file that is not allowed is copied")
	}
	if got := transfer(t, r, ".ssh", "moved", roots.MoveOptions{}); got != "" {
		t.Errorf("an allowed directory cannot be moved: %s", got)
	}
	if got := transfer(t, open(), "a", "b", roots.MoveOptions{Copy: true}); got != "" {
		t.Errorf("a directory with a secret that stays one cannot be copied: %s", got)
	}
}
