package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLockIsHeldOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	holder := hold(t, dir)

	_, err := Lock(dir)
	held, ok := errors.AsType[*HeldError](err)
	if !ok || held.PID != holder.Process.Pid || held.Dir != dir {
		t.Fatalf("Lock of a held directory = %v, want a HeldError with process %d", err, holder.Process.Pid)
	}

	// The system frees the lock of a process that is killed.
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // killed
	lock, err := Lock(dir)
	if err != nil {
		t.Fatalf("Lock after the holder was killed: %v", err)
	}
	if got := readPID(lock.file); got != os.Getpid() {
		t.Errorf("the lock names process %d, want %d", got, os.Getpid())
	}
	if _, err := Lock(dir); !errors.As(err, new(*HeldError)) {
		t.Errorf("second Lock of one process = %v, want a HeldError", err)
	}
	for range 2 {
		if err := lock.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for name, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, lockName): 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %v, want %v", name, got, want)
		}
	}
}

func TestLockNamesNoProcess(t *testing.T) {
	for _, text := range []string{"", "x", "-5", strings.Repeat("9", 100)} {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if got := readPID(f); got != 0 {
			t.Errorf("readPID of %q = %d, want 0", text, got)
		}
	}
}

func TestLockRefusesDirectories(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(path string) error
		want string
	}{
		{"others may enter", func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o755)) }, "chmod 700"},
		{"a file", func(path string) error { return os.WriteFile(path, nil, 0o600) }, "not a directory"},
		{"the lock is a link", func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Symlink("elsewhere", filepath.Join(path, lockName)))
		}, "lock the state directory"},
		{"of another user", func(path string) error { return errors.Join(os.Mkdir(path, 0o700), chownAway(path)) }, "belongs to user"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state")
			if err := tt.make(path); errors.Is(err, errNotRoot) {
				path = "/" // which belongs to root
			} else if err != nil {
				t.Fatal(err)
			}
			lock, err := Lock(path)
			if err == nil {
				lock.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Lock = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

var errNotRoot = errors.New("only root can give a directory away")

func chownAway(path string) error {
	if os.Geteuid() != 0 {
		return errNotRoot
	}
	return os.Chown(path, 12345, -1)
}
