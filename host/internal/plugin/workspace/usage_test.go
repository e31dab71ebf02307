package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/tool"
)

// fill writes a file of a size that is really on the disk.
func fill(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// about reports whether a size is that of some files and directories of a few blocks.
func about(size tool.ByteSize, files int) bool {
	return size >= tool.ByteSize(files) && size < tool.ByteSize(files)+tool.MiB
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	for _, sub := range []string{"a/b/c", "d"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, filepath.Join(dir, "a/b/c/file"), 3<<20)
	fill(t, filepath.Join(dir, "d/file"), 2<<20)
	fill(t, filepath.Join(outside, "file"), 8<<20)
	for name, target := range map[string]string{"out": outside, "up": "..", "self": "."} {
		if err := os.Symlink(target, filepath.Join(dir, "d", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "d", "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "d/file"), 1<<40); err != nil { // a hole takes no space
		t.Logf("no sparse files here: %v", err)
	}
	got, err := measure(t.Context(), dir, maxLooked)
	if err != nil || got.AtLeast || !about(got.Size, 5<<20) {
		t.Errorf("measure() = %+v, %v, want 5 MiB and some directories", got, err)
	}
	for _, name := range []string{"none", "d/file"} {
		if got, err := measure(t.Context(), filepath.Join(dir, name), maxLooked); err == nil {
			t.Errorf("measure() of %s = %+v, want an error", name, got)
		}
	}
	for n := range 20 {
		fill(t, filepath.Join(dir, fmt.Sprint("small", n)), 1)
	}
	if got, err := measure(t.Context(), dir, 10); err != nil || !got.AtLeast {
		t.Errorf("measure() of more entries than it may look at = %+v, %v, want a part", got, err)
	}
}

// TestUsage: what a workspace holds is known after a while, and measured again, but not at once.
func TestUsage(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dirs := Dirs{Parent: parent}
	if err := os.Mkdir(filepath.Join(parent, "ada"), 0o700); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(parent, "ada", "file"), 3<<20)
	u := NewUsage(t.Context(), dirs)
	known := func() Holding {
		for tick, end := time.Tick(5*time.Millisecond), time.After(time.Minute); ; {
			if h := u.Of("ada"); !h.At.IsZero() {
				return h
			}
			select {
			case <-tick:
			case <-end:
				t.Fatal("the workspace was not measured within a minute")
			}
		}
	}
	first := known()
	if !about(first.Size, 3<<20) {
		t.Errorf("the workspace holds %v, want 3 MiB", first.Size)
	}
	fill(t, filepath.Join(parent, "ada", "more"), 3<<20)
	if again := u.Of("ada"); again != first {
		t.Errorf("measured again at once: %+v after %+v", again, first)
	}
	u.mu.Lock()
	u.users["ada"].next = time.Time{}
	u.mu.Unlock()
	for h := u.Of("ada"); h == first; h = known() {
	}
	if later := known(); !about(later.Size, 6<<20) || !later.At.After(first.At) {
		t.Errorf("the workspace holds %v later, want 6 MiB", later.Size)
	}
	if h := u.Of("../ada"); h != (Holding{}) {
		t.Errorf("a user without a workspace holds %+v", h)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	u.mu.Lock()
	u.users["ada"].next = time.Time{}
	u.mu.Unlock()
	u.Of("ada") // it begins nothing
	u.tasks.Wait()
}

// TestManyWorkspaces: no more of them are remembered than may be.
func TestManyWorkspaces(t *testing.T) {
	t.Parallel()
	u := NewUsage(t.Context(), Dirs{Parent: t.TempDir()})
	u.end() // nothing is measured
	for n := range maxMeasured + 10 {
		u.Of(fmt.Sprint("user", n))
	}
	if len(u.users) != maxMeasured {
		t.Errorf("%d workspaces are remembered, want %d", len(u.users), maxMeasured)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
}
