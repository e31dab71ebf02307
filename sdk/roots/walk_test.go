package roots_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// walked returns what a walk yields, errors in brackets.
func walked(ctx context.Context, r *roots.Roots, name string, opts roots.WalkOptions) []string {
	var got []string
	for e, err := range r.Walk(ctx, name, opts) {
		switch {
		case err != nil:
			got = append(got, fmt.Sprintf("%s [%v]", e.Path, err))
		default:
			got = append(got, fmt.Sprintf("%s %s", e.Path, roots.Kind(e.Info.Mode())))
		}
	}
	return got
}

func TestWalk(t *testing.T) {
	dir := tree(t, map[string]string{
		"b.txt": "", "a/z.txt": "", "a/deep/er/x.txt": "", "a.txt": "", ".ssh/key": "", "loop": "-> .", "out": "-> /etc",
	})
	other := tree(t, map[string]string{"o.txt": ""})
	r := open(t, dir, other)
	for _, tt := range []struct {
		name string
		path string
		opts roots.WalkOptions
		want []string
	}{
		{"everything", ".", roots.WalkOptions{}, []string{
			".ssh directory", "a directory", "a/deep directory", "a/deep/er directory", "a/deep/er/x.txt file", "a/z.txt file", "a.txt file", "b.txt file", "loop symlink", "out symlink",
		}},
		{"one level", ".", roots.WalkOptions{Depth: 1}, []string{".ssh directory", "a directory", "a.txt file", "b.txt file", "loop symlink", "out symlink"}},
		{"two levels", "a", roots.WalkOptions{Depth: 2}, []string{"a/deep directory", "a/deep/er directory", "a/z.txt file"}},
		{"skipping", ".", roots.WalkOptions{Skip: func(e roots.Entry) bool { return e.Rel == "a/deep" || e.Depth == 1 && !e.Info.IsDir() }}, []string{".ssh directory", "a directory", "a/z.txt file"}},
		{"through a link", "loop/a/deep", roots.WalkOptions{}, []string{"a/deep/er directory", "a/deep/er/x.txt file"}},
		{"another folder", other, roots.WalkOptions{}, []string{other + "/o.txt file"}},
		{"a file", "b.txt", roots.WalkOptions{}, []string{" [failed: Not a directory: b.txt]"}},
		{"missing", "none", roots.WalkOptions{}, []string{" [not_found: File not found: none]"}},
		{"a secret", ".ssh", roots.WalkOptions{}, []string{" [permission_denied: Path not allowed by security policy: .ssh]"}},
		{"outside", "out", roots.WalkOptions{}, []string{" [permission_denied: Path not allowed by security policy: out]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, walked(t.Context(), r, tt.path, tt.opts)); diff != "" {
				t.Errorf("Walk(%q) (-want +got):\n%s", tt.path, diff)
			}
		})
	}
}

// A directory that is gone, or became a link that leads out, when the walk
// comes to it, is reported; the walk goes on.
func TestWalkChanges(t *testing.T) {
	dir := tree(t, map[string]string{"a/x": "", "b/x": "", "c/x": ""})
	r := open(t, dir)
	var got []string
	for e, err := range r.Walk(t.Context(), ".", roots.WalkOptions{}) {
		got = append(got, fmt.Sprint(e.Path, " ", err))
		if e.Path == "a" && err == nil {
			if err := errors.Join(os.RemoveAll(dir+"/a"), os.RemoveAll(dir+"/b"), os.Symlink("/etc", dir+"/b")); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{
		"a <nil>", "a not_found: File not found: a",
		"b <nil>", "b permission_denied: Path not allowed by security policy: b",
		"c <nil>", "c/x <nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Walk (-want +got):\n%s", diff)
	}
}

func TestWalkEnds(t *testing.T) {
	dir := tree(t, map[string]string{"a/x": "", "b/x": ""})
	r := open(t, dir)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for _, err := range r.Walk(ctx, ".", roots.WalkOptions{}) {
		if last = err; err == nil {
			cancel(cause)
		}
	}
	if !errors.Is(last, cause) {
		t.Errorf("Walk ended with %v, want the cause of the context's end", last)
	}
	for range r.Walk(t.Context(), ".", roots.WalkOptions{}) {
		break // a walk that is left early must not go on
	}
}

func TestWalkDepthIsBounded(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 300)), 0o755); err != nil {
		t.Fatal(err)
	}
	got := walked(t.Context(), open(t, dir), ".", roots.WalkOptions{})
	if len(got) != 257 || !strings.Contains(got[256], "resource_exhausted: Directory is nested deeper than 256 levels") {
		t.Errorf("Walk yields %d entries, the last %.300q, want 256 and an error", len(got), got[len(got)-1])
	}
}

func TestEntry(t *testing.T) {
	dir := tree(t, map[string]string{"a/x.txt": "x", "a/.env": "SECRET", "a/link": "-> ../b"})
	r := open(t, dir)
	got := map[string]string{}
	for e, err := range r.Walk(t.Context(), "a", roots.WalkOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if target, err := e.Target(); err == nil {
			got[e.Rel] = "-> " + target
			continue
		}
		f, err := e.Open()
		if err != nil {
			got[e.Rel] = err.Error()
			continue
		}
		content, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		got[e.Rel] = string(content)
	}
	want := map[string]string{"x.txt": "x", ".env": "permission_denied: Path not allowed by security policy: a/.env", "link": "-> ../b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func ExampleRoots_Walk() {
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"main.go", "README.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			panic(err)
		}
	}
	r, err := roots.Open([]string{dir}, roots.Options{})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	for e, err := range r.Walk(context.Background(), ".", roots.WalkOptions{}) {
		fmt.Println(e.Path, err)
	}
	_, err = r.Open("../elsewhere")
	fmt.Println(tool.AsError(err).Message)
	// Output:
	// README.md <nil>
	// main.go <nil>
	// Path not allowed by security policy: ../elsewhere
}
