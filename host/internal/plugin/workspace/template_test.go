package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTemplateIsBounded: a template that is too large is refused, and one that just fits is not.
func TestTemplateIsBounded(t *testing.T) {
	t.Parallel()
	template := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(template, name), []byte("123"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		entries int
		bytes   int64
		want    string // of the error
	}{
		{0, 0, ""},
		{maxEntries - 2, maxBytes - 6, ""},
		{maxEntries - 1, 0, "it has more than 10000 entries"},
		{0, maxBytes - 5, "it has more than 1 GiB"},
	} {
		c := &templateCopy{ctx: t.Context(), from: root(t, template), to: root(t, t.TempDir()), entries: tt.entries, bytes: tt.bytes}
		if err := c.run(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("after %d entries and %d bytes: %v, want %q", tt.entries, tt.bytes, err, tt.want)
		}
	}
}

// TestBusy: only who works on the same path waits, until its context ends.
func TestBusy(t *testing.T) {
	t.Parallel()
	b := busy{dirs: map[string]chan struct{}{}}
	for _, path := range []string{"/a", "/b"} {
		if err := b.begin(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if err := b.begin(ctx, "/a"); !errors.Is(err, late) {
		t.Errorf("begin() = %v, want %v", err, late)
	}
	b.end("/a")
	if err := b.begin(t.Context(), "/a"); err != nil {
		t.Error(err)
	}
	b.end("/a")
	b.end("/b")
	if len(b.dirs) != 0 {
		t.Errorf("left: %v", b.dirs)
	}
}

func root(t *testing.T, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}
