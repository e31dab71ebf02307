package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
)

// TestNamesOfUsers: a user's name becomes one name of a directory as it is, or none.
func TestNamesOfUsers(t *testing.T) {
	t.Parallel()
	dirs := workspace.Dirs{Parent: "/srv", Prefix: "of-", Suffix: ".d"}
	for _, user := range []string{"ada", "Ada", "ada@example.org", "a", "7", "_ada", "a..b", "x+y-z", strings.Repeat("a", 120)} {
		if dir, err := dirs.Of(user); err != nil || dir != "/srv/of-"+user+".d" {
			t.Errorf("Of(%q) = %s, %v", user, dir, err)
		}
	}
	for _, user := range []string{
		"", ".", "..", ".ada", "-ada", "a/b", "/", "../ada", "a/../../etc", "a\x00b", "a\nb", "a b", "ada ", "ad\u0430", "e\u0301", "é",
		"%2e%2e", `a\b`, "a:b", "~", "$HOME", "${caller.user}", strings.Repeat("a", 124), strings.Repeat("a", 10<<10),
	} {
		if dir, err := dirs.Of(user); err == nil || len(err.Error()) > 400 {
			t.Errorf("Of(%.40q) = %s, %v", user, dir, err)
		}
	}
	for _, user := range []string{"", "../ada"} {
		if dir, err := (workspace.Dirs{Shared: "/w"}).Of(user); dir != "/w" || err != nil {
			t.Errorf("Of(%q) = %s, %v with one workspace for all", user, dir, err)
		}
	}
}

// TestMake makes the directory of a user once, whole.
func TestMake(t *testing.T) {
	t.Parallel()
	top, skeleton := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(skeleton, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(skeleton, "docs", "README"), []byte("welcome"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("docs/README", filepath.Join(skeleton, "README")); err != nil {
		t.Fatal(err)
	}
	dirs := workspace.Dirs{Parent: top, Template: skeleton}
	var mu sync.Mutex
	given := 0
	give := func(dir string) error {
		mu.Lock()
		defer mu.Unlock()
		given++
		if _, err := os.Stat(filepath.Join(dir, "docs", "README")); err != nil || filepath.Base(dir) == "ada" {
			t.Errorf("%s is given before it is whole, or after it can be seen: %v", dir, err)
		}
		return nil
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if dir, err := dirs.Make("ada", give); err != nil || dir != filepath.Join(top, "ada") {
				t.Errorf("Make() = %s, %v", dir, err)
			}
		})
	}
	all.Wait()
	if given != 1 {
		t.Errorf("the directory was given away %d times", given)
	}
	text, err := os.ReadFile(filepath.Join(top, "ada", "README"))
	if err != nil || string(text) != "welcome" {
		t.Errorf("the template = %q, %v", text, err)
	}
	if info, err := os.Stat(filepath.Join(top, "ada")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v, %v", info.Mode(), err)
	}
	if err := os.Remove(filepath.Join(top, "ada", "README")); err != nil {
		t.Fatal(err)
	}
	if _, err := dirs.Make("ada", give); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(top, "ada", "README")); err == nil {
		t.Error("a user's file comes back")
	}
}

// TestMakeFails: what cannot be made leaves nothing.
func TestMakeFails(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	if err := os.Symlink("/etc", filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space")
	for _, tt := range []struct {
		name, user string
		dirs       workspace.Dirs
		give       func(string) error
	}{
		{"a link", "link", workspace.Dirs{Parent: top}, nil},
		{"a file", "file", workspace.Dirs{Parent: top}, nil},
		{"no parent", "ada", workspace.Dirs{Parent: filepath.Join(top, "gone")}, nil},
		{"no template", "ada", workspace.Dirs{Parent: top, Template: filepath.Join(top, "gone")}, nil},
		{"no owner", "ada", workspace.Dirs{Parent: top}, func(string) error { return full }},
		{"a wrong name", "..", workspace.Dirs{Parent: top}, nil},
	} {
		if dir, err := tt.dirs.Make(tt.user, tt.give); err == nil {
			t.Errorf("%s: Make() = %s", tt.name, dir)
		}
	}
	entries, err := os.ReadDir(top)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || !slices.Equal(names, []string{"file", "link"}) {
		t.Errorf("left: %v, %v", names, err)
	}
}
