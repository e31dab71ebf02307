package workspace_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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
	if err := os.WriteFile(filepath.Join(skeleton, "docs", "run"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(skeleton, "docs", "run"), 0o775); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	if err := os.Symlink("docs/README", filepath.Join(skeleton, "README")); err != nil {
		t.Fatal(err)
	}
	dirs := workspace.Dirs{Parent: top, Template: skeleton}
	var mu sync.Mutex
	given := 0
	give := func(dir *os.Root) error {
		mu.Lock()
		defer mu.Unlock()
		given++
		if _, err := dir.Stat("docs/README"); err != nil {
			t.Errorf("it is given before it is whole: %v", err)
		}
		if _, err := os.Lstat(filepath.Join(top, "ada")); err == nil {
			t.Error("it can be seen before it is given")
		}
		return nil
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if dir, err := dirs.Make(t.Context(), "ada", give); err != nil || dir != filepath.Join(top, "ada") {
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
	for name, mode := range map[string]os.FileMode{"docs": 0o755, "docs/README": 0o600, "docs/run": 0o775} {
		if info, err := os.Stat(filepath.Join(top, "ada", name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s of the template: %v, %v, want mode %v", name, info, err, mode)
		}
	}
	if err := os.Remove(filepath.Join(top, "ada", "README")); err != nil {
		t.Fatal(err)
	}
	if _, err := dirs.Make(t.Context(), "ada", give); err != nil {
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
	odd := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(odd, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space")
	for _, tt := range []struct {
		name, user string
		dirs       workspace.Dirs
		give       func(*os.Root) error
	}{
		{"a link", "link", workspace.Dirs{Parent: top}, nil},
		{"a file", "file", workspace.Dirs{Parent: top}, nil},
		{"no parent", "ada", workspace.Dirs{Parent: filepath.Join(top, "gone")}, nil},
		{"no template", "ada", workspace.Dirs{Parent: top, Template: filepath.Join(top, "gone")}, nil},
		{"a template with a FIFO", "ada", workspace.Dirs{Parent: top, Template: odd}, nil},
		{"no owner", "ada", workspace.Dirs{Parent: top}, func(*os.Root) error { return full }},
		{"a wrong name", "..", workspace.Dirs{Parent: top}, nil},
	} {
		dir, err := tt.dirs.Make(t.Context(), tt.user, tt.give)
		if err == nil || errors.Is(err, workspace.ErrTemplate) != strings.Contains(tt.name, "template") {
			t.Errorf("%s: Make() = %s, %v", tt.name, dir, err)
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

// TestMakeWaitsForNobody: a user who has a directory does not wait until another's is made.
func TestMakeWaitsForNobody(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	if err := os.Mkdir(filepath.Join(top, "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	dirs := workspace.Dirs{Parent: top}
	give := func(*os.Root) error {
		dir, err := dirs.Make(t.Context(), "old", nil)
		if err != nil || dir != filepath.Join(top, "old") {
			t.Errorf("Make() = %s, %v", dir, err)
		}
		return nil
	}
	if _, err := dirs.Make(t.Context(), "new", give); err != nil {
		t.Error(err)
	}
}

// TestMakeGivesOneAtATime: who chooses an owner sees the owners of all directories that were given
// away, under their names.
func TestMakeGivesOneAtATime(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	var choosing atomic.Int32
	give := func(dir *os.Root) error {
		if n := choosing.Add(1); n > 1 {
			t.Errorf("%d owners are chosen at the same time", n)
		}
		defer choosing.Add(-1)
		for range 1000 { // let the others come this far
			runtime.Gosched()
		}
		unnamed, err := filepath.Glob(filepath.Join(top, ".new-*", "given"))
		if err != nil || len(unnamed) > 0 {
			t.Errorf("without a name: %v, %v", unnamed, err)
		}
		return dir.WriteFile("given", nil, 0o600)
	}
	var all sync.WaitGroup
	for _, user := range []string{"ada", "bob", "cyd", "dan", "eve", "fay"} {
		all.Go(func() {
			if _, err := (workspace.Dirs{Parent: top}).Make(t.Context(), user, give); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestMakeStops: a copy ends with its context, and leaves nothing.
func TestMakeStops(t *testing.T) {
	t.Parallel()
	top, stopped := t.TempDir(), errors.New("the host stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if dir, err := (workspace.Dirs{Parent: top, Template: t.TempDir()}).Make(ctx, "ada", nil); !errors.Is(err, stopped) {
		t.Errorf("Make() = %s, %v, want %v", dir, err, stopped)
	}
	if entries, err := os.ReadDir(top); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// TestMakeFollowsNoExchange: who exchanges a directory that is being made does not choose what is
// given away.
func TestMakeFollowsNoExchange(t *testing.T) {
	t.Parallel()
	top, victim := t.TempDir(), t.TempDir()
	give := func(dir *os.Root) error {
		entries, err := os.ReadDir(top)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%v, %v, want one directory", entries, err)
		}
		unfinished := filepath.Join(top, entries[0].Name())
		if err := os.Rename(unfinished, filepath.Join(top, "moved")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(victim, unfinished); err != nil {
			t.Fatal(err)
		}
		return dir.WriteFile("given", nil, 0o600)
	}
	_, _ = workspace.Dirs{Parent: top}.Make(t.Context(), "ada", give) // whatever becomes of it
	if _, err := os.Stat(filepath.Join(top, "moved", "given")); err != nil {
		t.Errorf("the directory was not given away: %v", err)
	}
	if entries, err := os.ReadDir(victim); err != nil || len(entries) != 0 {
		t.Errorf("another directory was given away: %v, %v", entries, err)
	}
}

// TestMakeTidies removes what killed hosts have left, and nothing else.
func TestMakeTidies(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	name, young := ".new-"+rand.Text(), ".new-"+rand.Text()
	for name, age := range map[string]time.Duration{name: 2 * time.Hour, young: 0, ".new-plans": 2 * time.Hour, "bob": 2 * time.Hour} {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Join(path, "docs"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	dirs := workspace.Dirs{Parent: top}
	if _, err := dirs.Make(t.Context(), "ada", nil); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(top)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{young, ".new-plans", "ada", "bob"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("there are %v, %v, want %v", names, err, want)
	}
}
