package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	lockName = "lock"
	// maxPID limits how much of a lock file is read.
	maxPID = 32
)

// HeldError reports that another process holds the state directory.
type HeldError struct {
	Dir string
	// PID is the process id; 0 if it is not known.
	PID int
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("state directory %s is used by another process", e.Dir)
	}
	return fmt.Sprintf("state directory %s is used by process %d", e.Dir, e.PID)
}

// DirLock is the lock of a state directory. The system releases it when the process ends.
type DirLock struct {
	file *os.File
}

// Lock locks the state directory for this process. It creates the directory with access for its
// owner only, and refuses one that others may enter or own. If another process holds the lock, the
// error is a [*HeldError]; Lock does not wait.
func Lock(dir string) (*DirLock, error) {
	if err := MakeDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600) //nolint:gosec // the path is the operator's
	if err != nil {
		return nil, fmt.Errorf("lock the state directory: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		held := &HeldError{Dir: dir, PID: readPID(f)}
		return nil, errors.Join(held, f.Close())
	}
	if err == nil {
		err = writePID(f)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the state directory %s: %w", dir, err), f.Close())
	}
	return &DirLock{file: f}, nil
}

// Close releases the lock. The file stays: removing it would let two processes lock two files of
// one name.
func (l *DirLock) Close() error {
	err := l.file.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// MakeDir creates the state directory with access for its owner only, and refuses one that others
// may enter or own. Only the holder of the lock may change its contents, except for a missing key,
// which any process may create.
func MakeDir(dir string) error {
	if err := ownDir(dir); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	return nil
}

// ownDir makes sure that only this user can enter the directory.
func ownDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:gosec // the path is the operator's
		return fmt.Errorf("%w; name one that this account can make, with state_dir in the configuration or with XDG_STATE_HOME", err)
	}
	info, err := os.Stat(dir) //nolint:gosec // the path is the operator's
	if err != nil {
		return err
	}
	owner := -1
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = int(st.Uid)
	}
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case owner != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, expected %d: choose another directory", dir, owner, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s can be entered by others (mode %v): chmod 700 %s", dir, info.Mode().Perm(), dir)
	}
	return nil
}

func writePID(f *os.File) error {
	text := strconv.Itoa(os.Getpid()) + "\n"
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(text)))
}

// readPID returns the id that the holder wrote, or 0.
func readPID(f *os.File) int {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxPID))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
