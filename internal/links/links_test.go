package links_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/links"
)

func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"abs": filepath.Join(dir, "a"), "rel": "a/b", "up": "a/../a", "a/out": "../c", "dangling": "none/x", "chain": "rel",
		"loop": "loop", "ping": "pong", "pong": "ping", "self": ".", "dots": "a/b/../../d",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"": "", "a": "a", "none": "none", "none/deep/er": "none/deep/er", "abs/x": "a/x", "rel": "a/b", "up/b": "a/b", "a/out": "c", "a/out/x": "c/x",
		"dangling": "none/x", "dangling/y": "none/x/y", "chain/z": "a/b/z", "self/self/a": "a", "dots/x": "d/x", "loop": "loop", "ping": "ping", "loop/x": "loop/x",
		"a\x00b": "a\x00b",
	} {
		if got := strings.TrimPrefix(strings.TrimPrefix(links.Resolve(filepath.Join(dir, path)), dir), "/"); got != want {
			t.Errorf("Resolve(%q) = %q, want %q", path, got, want)
		}
	}
	for _, path := range []string{"/", "", "a/b"} {
		if got := links.Resolve(path); got != path {
			t.Errorf("Resolve(%q) = %q", path, got)
		}
	}
}
