package roots_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestForbidden checks that forbidden files cannot be read, changed or listed, under any name,
// even if they are allowed or appear later.
func TestForbidden(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"a/private/key": "KEY=1", "a/.env": "KEY=2", "a/notes": "plain", "b/x": "plain", "link": "-> a/private/key", "way": "-> a/private",
	})
	if err := os.Link(filepath.Join(dir, "a/private/key"), filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	r := openWith(t, roots.Options{
		Secrets: []string{".env"}, Forbidden: []string{"**/private", filepath.Join(dir, "a/.env"), filepath.Join(dir, "b/later")},
		Allowed: []string{filepath.Join(dir, "a"), filepath.Join(dir, "hard")},
	}, dir)
	if err := os.WriteFile(filepath.Join(dir, "b/later"), []byte("KEY=3"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(what, name string, err error) {
		t.Helper()
		if failure := tool.AsError(err); err == nil || failure.Code != tool.PermissionDenied {
			t.Errorf("%s %s: %v, want that it is denied", what, name, err)
		}
	}
	for _, name := range []string{"a/private/key", "a/private", "a/private/none", "a/.env", "b/later", "link", "way/key"} {
		_, err := r.Stat(name)
		refused("stat", name, err)
		_, err = r.Target(name, roots.TargetOptions{Follow: true, Parents: true})
		refused("change", name, err)
	}
	for name, want := range map[string]bool{dir + "/a/private/none": true, "/elsewhere/private": true, dir + "/a/notes": false, "/elsewhere/x": false} {
		if r.Forbids(name) != want {
			t.Errorf("Forbids(%s) = %v, want %v", name, !want, want)
		}
	}
	_, err := r.Open("hard")
	refused("open", "hard", err)
	if got := read(r, "a/notes"); got != "plain" {
		t.Errorf("what is not forbidden reads %q", got)
	}
	for name, want := range map[string][]string{"a": {"notes"}, "b": {"x"}} {
		d, err := r.OpenDir(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := d.Read(make([]roots.DirEntry, 1))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries[1:] {
			got = append(got, e.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
		if name == "a" {
			_, err = d.OpenDir("private")
			refused("enter", "a/private", err)
			_, err = d.Info(".env")
			refused("look at", "a/.env", err)
		}
		_ = d.Close()
	}
	for _, copied := range []bool{true, false} {
		if got := transfer(t, r, "a", "c", roots.MoveOptions{Copy: copied}); got == "" {
			t.Errorf("a directory is moved with what is forbidden in it (copied: %v)", copied)
		}
	}
	if got := transfer(t, r, "b/x", "private", roots.MoveOptions{}); got == "" {
		t.Error("a file gets a forbidden name")
	}
	target, err := r.Target("a", roots.TargetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	_, err = target.Contents(t.Context(), nil)
	refused("look through", "a", err)
}
