package filetree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/plugins/fs/internal/gitignore"
	"github.com/toolhost/toolhost/sdk/roots"
)

func openRoots(t *testing.T, dirs ...string) *roots.Roots {
	t.Helper()
	r, err := roots.Open(dirs, roots.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// walked returns the results of a walk, with errors in brackets.
func walked(ctx context.Context, r *roots.Roots, name string, opts filetree.Options) []string {
	tr, err := filetree.Open(r, name, opts)
	if err != nil {
		return []string{err.Error()}
	}
	defer tr.Close()
	var got []string
	for e, err := range tr.Walk(ctx) {
		if err != nil {
			got = append(got, fmt.Sprintf("%s [%v]", e.Path(), err))
		} else {
			got = append(got, fmt.Sprintf("%s %s", e.Path(), roots.Kind(e.Type)))
		}
	}
	return got
}

// visited returns what Each finds, sorted.
func visited(ctx context.Context, r *roots.Roots, name string, opts filetree.Options) []string {
	tr, err := filetree.Open(r, name, opts)
	if err != nil {
		return []string{err.Error()}
	}
	defer tr.Close()
	var mu sync.Mutex
	var got []string
	visit := func(e filetree.Entry, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			got = append(got, fmt.Sprintf("%s [%v]", e.Path(), err))
		} else {
			got = append(got, fmt.Sprintf("%s %s", e.Path(), roots.Kind(e.Type)))
		}
	}
	if err := tr.Each(ctx, []filetree.Visit{visit, visit, visit}); err != nil {
		got = append(got, fmt.Sprintf(" [%v]", err))
	}
	slices.SortFunc(got, filetree.Compare)
	return got
}

func TestWalk(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{
		"b.txt": "", "a/z.txt": "", "a/deep/er/x.txt": "", "a.txt": "", ".ssh/key": "", "loop": "-> .", "out": "-> /etc",
	})
	other := filetest.Tree(t, map[string]string{"o.txt": ""})
	r := openRoots(t, dir, other)
	for _, tt := range []struct {
		name string
		path string
		opts filetree.Options
		want []string
	}{
		{"everything", ".", filetree.Options{}, []string{
			".ssh directory", "a directory", "a/deep directory", "a/deep/er directory", "a/deep/er/x.txt file", "a/z.txt file", "a.txt file", "b.txt file", "loop symlink", "out symlink",
		}},
		{"one level", ".", filetree.Options{Depth: 1}, []string{".ssh directory", "a directory", "a.txt file", "b.txt file", "loop symlink", "out symlink"}},
		{"two levels", "a", filetree.Options{Depth: 2}, []string{"a/deep directory", "a/deep/er directory", "a/z.txt file"}},
		{"skipping", ".", filetree.Options{Skip: func(e filetree.Entry) bool { return e.Rel() == "a/deep" || e.Rel() == e.Name && !e.IsDir() }}, []string{".ssh directory", "a directory", "a/z.txt file"}},
		{"through a link", "loop/a/deep", filetree.Options{}, []string{"a/deep/er directory", "a/deep/er/x.txt file"}},
		{"another folder", other, filetree.Options{}, []string{other + "/o.txt file"}},
		{"a file", "b.txt", filetree.Options{}, []string{"failed: Not a directory: b.txt"}},
		{"missing", "none", filetree.Options{}, []string{"not_found: File not found: none"}},
		{"a secret", ".ssh", filetree.Options{}, []string{"permission_denied: Path not allowed by security policy: .ssh"}},
		{"outside", "out", filetree.Options{}, []string{"permission_denied: Path not allowed by security policy: out"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := walked(t.Context(), r, tt.path, tt.opts)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Walk(%q) (-want +got):\n%s", tt.path, diff)
			}
			files := slices.DeleteFunc(got, func(s string) bool { return strings.HasSuffix(s, " directory") })
			if diff := cmp.Diff(files, visited(t.Context(), r, tt.path, tt.opts)); diff != "" {
				t.Errorf("Each(%q) (-Walk +Each):\n%s", tt.path, diff)
			}
		})
	}
}

// A directory that has been removed, or replaced by a link that leads outside, before the walk
// reaches it is reported; the walk continues.
func TestWalkChanges(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a/x": "", "b/x": "", "c/x": ""})
	tr, err := filetree.Open(openRoots(t, dir), ".", filetree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	var got []string
	for e, err := range tr.Walk(t.Context()) {
		got = append(got, fmt.Sprint(e.Path(), " ", err))
		if e.Path() == "a" && err == nil {
			if err := errors.Join(os.RemoveAll(dir+"/a"), os.RemoveAll(dir+"/b"), os.Symlink("/etc", dir+"/b")); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{
		"a <nil>", "a not_found: File not found: a",
		"b <nil>", "b failed: Not a directory: b",
		"c <nil>", "c/x <nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Walk (-want +got):\n%s", diff)
	}
}

func TestEnds(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a/x": "", "b/x": ""})
	r := openRoots(t, dir)
	tr, err := filetree.Open(r, ".", filetree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for _, err := range tr.Walk(ctx) {
		if last = err; err == nil {
			cancel(cause)
		}
	}
	if !errors.Is(last, cause) {
		t.Errorf("Walk ended with %v, want the cause of the context's end", last)
	}
	err = tr.Each(ctx, []filetree.Visit{func(e filetree.Entry, err error) { t.Errorf("%s is visited, %v", e.Path(), err) }})
	if !errors.Is(err, cause) {
		t.Errorf("Each = %v, want the cause of the context's end", err)
	}
	for range tr.Walk(t.Context()) {
		break // a walk that is left early must not continue
	}
}

func TestDepthIsBounded(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 300)), 0o755); err != nil {
		t.Fatal(err)
	}
	r := openRoots(t, dir)
	got := walked(t.Context(), r, ".", filetree.Options{})
	if len(got) != 257 || !strings.Contains(got[256], "resource_exhausted: Directory is nested deeper than 256 levels") {
		t.Errorf("Walk yields %d entries, the last %.300q, want 256 and an error", len(got), got[len(got)-1])
	}
	if all := visited(t.Context(), r, ".", filetree.Options{}); len(all) != 1 || !strings.Contains(all[0], "resource_exhausted") {
		t.Errorf("Each finds %q, want an error", all)
	}
}

// descriptors counts the open files of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0 // this system does not tell
	}
	return len(entries)
}

func TestGitignore(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{
		".gitignore":             "*.log\n/top/\nbuild\n",
		".git/info/exclude":      "*.tmp\n",
		"a.log":                  "",
		"a.tmp":                  "",
		"a.txt":                  "",
		"top/x":                  "",
		"sub/.gitignore":         "!keep.log\n/own\n",
		"sub/keep.log":           "",
		"sub/other.log":          "",
		"sub/own":                "",
		"sub/deep/own":           "",
		"sub/top/x":              "",
		"sub/build/.gitignore":   "!*",
		"sub/build/x":            "",
		"nested/.git/HEAD":       "",
		"nested/.gitignore":      "*.txt",
		"nested/a.log":           "",
		"nested/a.txt":           "",
		"worktree/.git":          "gitdir: elsewhere",
		"worktree/a.log":         "",
		"linked/.gitignore":      "-> ../.gitignore",
		"linked/own":             "",
		"directory/.gitignore/x": "",
	})
	r := openRoots(t, dir)
	skip := func(e filetree.Entry) bool { return e.Name == ".git" || e.Name == ".gitignore" }
	for _, tt := range []struct {
		path string
		want []string
	}{
		{".", []string{
			"a.txt file", "directory directory", "linked directory", "linked/own file", "nested directory", "nested/a.log file", "sub directory", "sub/deep directory", "sub/deep/own file",
			"sub/keep.log file", "sub/top directory", "sub/top/x file", "worktree directory", "worktree/a.log file",
		}},
		{"sub", []string{"sub/deep directory", "sub/deep/own file", "sub/keep.log file", "sub/top directory", "sub/top/x file"}},
		{"nested", []string{"nested/a.log file"}},
		{"top", []string{"top/x file"}}, // it was named
	} {
		if diff := cmp.Diff(tt.want, walked(t.Context(), r, tt.path, filetree.Options{Gitignore: true, Skip: skip})); diff != "" {
			t.Errorf("Walk(%s) (-want +got):\n%s", tt.path, diff)
		}
	}
	if got := walked(t.Context(), r, "sub/build", filetree.Options{}); len(got) != 2 {
		t.Errorf("without rules: %q, want two files", got)
	}
}

// Excess rules are reported, and the others apply.
func TestTooManyRules(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{
		".gitignore": "*.log\n", "a/.gitignore": strings.Repeat("x\n", gitignore.MaxPatterns+1), "a/x": "", "a/b/y.log": "", "a/b/y": "",
	})
	const said = "[resource_exhausted: a/.gitignore is not used: it has more than 100000 patterns]"
	r := openRoots(t, dir)
	for path, want := range map[string][]string{
		".":   {".gitignore file", "a directory", "a " + said, "a/.gitignore file", "a/b directory", "a/b/y file", "a/x file"},
		"a/b": {"a/b " + said, "a/b/y file"},
	} {
		if diff := cmp.Diff(want, walked(t.Context(), r, path, filetree.Options{Gitignore: true})); diff != "" {
			t.Errorf("Walk(%s) (-want +got):\n%s", path, diff)
		}
		files := slices.DeleteFunc(want, func(s string) bool { return strings.HasSuffix(s, " directory") })
		slices.SortFunc(files, filetree.Compare)
		if diff := cmp.Diff(files, visited(t.Context(), r, path, filetree.Options{Gitignore: true})); diff != "" {
			t.Errorf("Each(%s) (-want +got):\n%s", path, diff)
		}
	}
}

func TestCompare(t *testing.T) {
	want := []string{"", "a", "a/b", "a/b/c", "a/b.c", "a!", "a.txt", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, filetree.Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sorted (-want +got):\n%s", diff)
	}
}
