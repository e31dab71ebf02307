package process

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// shortDir is a temporary directory that is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "th") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestRunDirOfDeadHostIsSwept(t *testing.T) {
	parent := shortDir(t)
	dead, err := newRunDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dead.Path, "plugin-dir1"), 0o700); err != nil {
		t.Fatal(err)
	}
	living, err := newRunDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	others := filepath.Join(parent, "others")
	if err := os.Mkdir(others, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead.Path); err != nil {
		t.Fatalf("the directory of a host that lives was swept: %v", err)
	}
	dead.lock.Close() // as the kernel does for a host that was killed

	next, err := newRunDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead.Path); !os.IsNotExist(err) {
		t.Errorf("the directory of a dead host is still there: %v", err)
	}
	for _, dir := range []string{living.Path, next.Path, others} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("swept away: %v", err)
		}
	}
	for _, d := range []*RunDir{living, next} {
		if err := d.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if _, err := os.Stat(d.Path); !os.IsNotExist(err) {
			t.Errorf("%s is still there after Close: %v", d.Path, err)
		}
	}
}

// TestRunDirsBegunAtOnce starts and stops hosts that sweep each other's
// directories while these are made and removed.
func TestRunDirsBegunAtOnce(t *testing.T) {
	parent := shortDir(t)
	var hosts sync.WaitGroup
	for range 4 {
		hosts.Go(func() {
			for range 200 {
				d, err := newRunDir(parent)
				if err != nil {
					t.Errorf("newRunDir() = %v", err)
					return
				}
				if _, err := os.Stat(filepath.Join(d.Path, lockName)); err != nil {
					t.Errorf("a host that lives was swept: %v", err)
				}
				if err := d.Close(); err != nil {
					t.Errorf("Close() = %v", err)
				}
			}
		})
	}
	hosts.Wait()
}

func TestRunDirRefused(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		parent     func(t *testing.T) string
	}{
		{"too long for a socket", "too long for a socket's address: at most 60 bytes", func(t *testing.T) string {
			t.Helper()
			return filepath.Join(shortDir(t), strings.Repeat("x", 60))
		}},
		{"open to others", "chmod 700", func(t *testing.T) string {
			t.Helper()
			dir := shortDir(t)
			if err := os.Chmod(dir, 0o750); err != nil {
				t.Fatal(err)
			}
			return dir
		}},
		{"a link", "is not a directory", func(t *testing.T) string {
			t.Helper()
			link := filepath.Join(shortDir(t), "link")
			if err := os.Symlink(shortDir(t), link); err != nil {
				t.Fatal(err)
			}
			return link
		}},
		{"a file", "not a directory", func(t *testing.T) string {
			t.Helper()
			file := filepath.Join(shortDir(t), "file")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return file
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := newRunDir(tt.parent(t))
			if err == nil {
				d.Close()
				t.Fatal("newRunDir() = nil, want an error")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("newRunDir() = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestDefaultRunParent(t *testing.T) {
	own := shortDir(t)
	t.Setenv("XDG_RUNTIME_DIR", own)
	if got, want := defaultRunParent(), filepath.Join(own, "toolhost"); got != want {
		t.Errorf("defaultRunParent() = %q, want %q", got, want)
	}
	others := "/"
	if os.Geteuid() == 0 {
		others = shortDir(t)
		if err := os.Chown(others, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", "relative", filepath.Join(own, "missing"), others, filepath.Join(own, strings.Repeat("x", 60))} {
		t.Setenv("XDG_RUNTIME_DIR", bad)
		if got := defaultRunParent(); !strings.HasPrefix(got, "/tmp/toolhost-") {
			t.Errorf("with $XDG_RUNTIME_DIR %q: defaultRunParent() = %q, want one below /tmp", bad, got)
		}
	}
}

// Another user can take the name of the run directory's parent, but cannot keep a host from
// starting.
func TestRunParentTakenByAnotherUser(t *testing.T) {
	shared := shortDir(t)
	var taken []string
	for _, place := range []func(path string) error{
		func(path string) error { return os.Mkdir(path, 0o777) },
		func(path string) error { return os.WriteFile(path, nil, 0o666) },
		func(path string) error { return os.Symlink("/nowhere", path) },
	} {
		path := "/usr" // another user's, unless this is root
		if os.Geteuid() == 0 {
			path = filepath.Join(shared, filepath.Base(sharedRunParent())+strings.Repeat("-x", len(taken)))
			if err := errors.Join(place(path), os.Lchown(path, 65534, 65534)); err != nil {
				t.Fatal(err)
			}
		}
		taken = append(taken, path)
	}
	var parents []string
	for _, usual := range taken {
		if _, err := newRunDir(usual); err == nil { // the control
			t.Errorf("a run directory is made in %s of another user", usual)
		}
		parent, err := ownRunParent(usual, shared)
		if err != nil {
			t.Fatalf("ownRunParent(%s): %v", usual, err)
		}
		if filepath.Dir(parent) != shared || slices.Contains(taken, parent) {
			t.Errorf("ownRunParent(%s) = %s, want another one in %s", usual, parent, shared)
		}
		d, err := newRunDir(parent)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		parents = append(parents, parent)
	}
	if len(slices.Compact(parents)) != 1 {
		t.Errorf("the hosts use %q, want one, so that each removes what dead ones left", parents)
	}
	// Mistakes in the user's own directory are reported, not worked around.
	own := filepath.Join(shared, "own")
	if err := errors.Join(os.Mkdir(own, 0o700), os.Chmod(own, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := ownRunParent(own, shared); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("ownRunParent of an open directory: %v, want chmod 700", err)
	}
}
