package process

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// maxRunDir is the length of the longest run directory, in bytes: the address of a
	// unix socket takes 107 bytes, and go-plugin appends up to 38.
	maxRunDir = 107 - 38
	// runDirID is the length of the name of a host's directory.
	runDirID = 8
	lockName = "lock"
)

// RunDir is a host's own directory for sockets and scratch files. The host holds its lock
// until it ends: a directory whose lock is free belongs to a dead host.
type RunDir struct {
	// Path is its absolute path.
	Path string

	lock *os.File
}

// OpenRunDir removes the directories that dead hosts left in parent, kills the remaining
// processes of their plugins, and makes a directory for this host. The default of parent is
// $XDG_RUNTIME_DIR/toolhost, or /tmp/toolhost-UID, or a directory with a random name in /tmp if
// another user has taken that name.
func OpenRunDir(parent string) (*RunDir, error) {
	if parent == "" {
		var err error
		if parent, err = ownRunParent(defaultRunParent(), sharedDir); err != nil {
			return nil, err
		}
	}
	return newRunDir(parent)
}

// sharedDir is the directory in which every user may make files. It is not
// os.TempDir: $TMPDIR is often too long for the address of a socket.
const sharedDir = "/tmp"

// ownRunParent makes the usual parent of run directories and returns it. If another
// user has taken its name, it makes one in shared whose name has a random ending.
// Later hosts find and use that directory.
func ownRunParent(usual, shared string) (string, error) {
	err := ownDir(usual)
	if err == nil || !foreign(usual) {
		return usual, err
	}
	name := filepath.Join(shared, filepath.Base(sharedRunParent())+"-")
	made, err := filepath.Glob(name + "*")
	if err != nil {
		return "", err
	}
	for _, dir := range made {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && !foreign(dir) && info.Mode().Perm() == 0o700 {
			return dir, nil
		}
	}
	return os.MkdirTemp(shared, filepath.Base(name)) // mode 0700
}

// foreign reports whether a path belongs to another user.
func foreign(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && owner(info) != os.Geteuid()
}

// owner returns the user id of a file's owner, or -1.
func owner(info os.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// sharedRunParent returns /tmp/toolhost-UID.
func sharedRunParent() string {
	return filepath.Join(sharedDir, "toolhost-"+strconv.Itoa(os.Geteuid()))
}

// defaultRunParent returns $XDG_RUNTIME_DIR/toolhost. It returns [sharedRunParent] if
// that directory belongs to another user, as after su, or is too long for a socket.
func defaultRunParent() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		parent := filepath.Join(dir, "toolhost")
		info, err := os.Stat(dir) //nolint:gosec // the environment is the operator's
		if err == nil && info.IsDir() && owner(info) == os.Geteuid() && len(parent)+1+runDirID <= maxRunDir {
			return parent
		}
	}
	return sharedRunParent()
}

// newRunDir removes the directories of dead hosts below parent, and makes one for
// this host.
func newRunDir(parent string) (*RunDir, error) {
	if len(parent)+1+runDirID > maxRunDir {
		return nil, fmt.Errorf("run directory %s is too long for a socket's address: at most %d bytes", parent, maxRunDir-1-runDirID)
	}
	if err := ownDir(parent); err != nil {
		return nil, err
	}
	if err := sweep(parent); err != nil {
		return nil, err
	}
	// Another host may remove the directory before its lock is held. Then the next
	// attempt uses a new name.
	for range 10 {
		var id [runDirID / 2]byte
		_, _ = rand.Read(id[:]) // never fails
		d := &RunDir{Path: filepath.Join(parent, hex.EncodeToString(id[:]))}
		if err := os.Mkdir(d.Path, 0o700); err != nil {
			if errors.Is(err, os.ErrExist) {
				continue
			}
			return nil, fmt.Errorf("make a run directory: %w", err)
		}
		if d.lock = lockDir(d.Path); d.lock != nil {
			return d, nil
		}
	}
	return nil, fmt.Errorf("run directory %s: no lock could be had", parent)
}

// Close removes the directory and everything in it.
func (d *RunDir) Close() error {
	err := remove(d.Path)
	return errors.Join(err, d.lock.Close())
}

// remove removes a run directory. If another host makes a lock in it after the old
// lock was removed, the directory now belongs to that host.
func remove(dir string) error {
	if err := os.RemoveAll(dir); !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	return nil
}

// ownDir makes sure that dir is a directory that only this user can enter.
func ownDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	switch uid := owner(info); {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case uid != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, expected %d: remove it or choose another directory", dir, uid, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s can be entered by others (mode %v): chmod 700 %s", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// sweep removes the directories of dead hosts.
func sweep(parent string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return fmt.Errorf("look for directories of dead hosts: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if _, err := hex.DecodeString(e.Name()); err != nil || len(e.Name()) != runDirID || !e.IsDir() {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		lock := lockDir(dir)
		if lock == nil {
			continue
		}
		// Before the directory is removed: its name marks the processes.
		killOrphans(dir)
		if err := remove(dir); err != nil {
			errs = append(errs, fmt.Errorf("remove the directory of a dead host: %w", err))
		}
		_ = lock.Close() // the file is gone
	}
	return errors.Join(errs...)
}

// lockDir returns the lock of dir, or nil if another host holds it or has removed the
// directory.
func lockDir(dir string) *os.File {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close() // it was not written
		return nil
	}
	// Between open and lock the file may have been removed with its directory.
	held, err := f.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(path); err == nil && os.SameFile(held, there) {
			return f
		}
	}
	_ = f.Close() // it was not written
	return nil
}
