package supervisor

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// maxRunDir is the longest run directory: the address of a unix socket
	// takes 107 bytes, and go-plugin appends up to 38.
	maxRunDir = 107 - 38
	// runDirID is the length of the name of one host's directory.
	runDirID = 8
	lockName = "lock"
)

// runDir is this host's own directory for sockets and scratch files. Its lock
// is held as long as the host lives: a directory whose lock is free belongs to
// a host that is gone.
type runDir struct {
	path string
	lock *os.File
}

// sharedDir is where every user may make files. It is not os.TempDir: $TMPDIR is
// often too long for a socket's address.
const sharedDir = "/tmp"

// ownRunParent makes the usual parent of run directories, and returns it. If
// another user has taken its name, it is one in shared with the usual name of
// [sharedDir] and a random ending, which later hosts use too.
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

// foreign reports whether a path is another user's.
func foreign(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && identify(info).UID != uint32(os.Geteuid())
}

// sharedRunParent is /tmp/toolhost-UID.
func sharedRunParent() string {
	return filepath.Join(sharedDir, "toolhost-"+strconv.Itoa(os.Geteuid()))
}

// defaultRunParent is $XDG_RUNTIME_DIR/toolhost, or [sharedRunParent] if that
// is not this user's, as after su, or not usable for a socket.
func defaultRunParent() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		parent := filepath.Join(dir, "toolhost")
		info, err := os.Stat(dir) //nolint:gosec // the environment is the operator's
		if err == nil && info.IsDir() && int(identify(info).UID) == os.Geteuid() && len(parent)+1+runDirID <= maxRunDir {
			return parent
		}
	}
	return sharedRunParent()
}

// newRunDir removes what dead hosts left below parent, and makes a directory
// for this one.
func newRunDir(parent string) (*runDir, error) {
	if len(parent)+1+runDirID > maxRunDir {
		return nil, fmt.Errorf("run directory %s is too long for a socket's address: at most %d bytes", parent, maxRunDir-1-runDirID)
	}
	if err := ownDir(parent); err != nil {
		return nil, err
	}
	if err := sweep(parent); err != nil {
		return nil, err
	}
	// Another host may sweep the directory away before its lock is held; then
	// the next attempt has a new name.
	for range 10 {
		var id [runDirID / 2]byte
		_, _ = rand.Read(id[:]) // never fails
		d := &runDir{path: filepath.Join(parent, hex.EncodeToString(id[:]))}
		if err := os.Mkdir(d.path, 0o700); err != nil {
			if errors.Is(err, os.ErrExist) {
				continue
			}
			return nil, fmt.Errorf("make a run directory: %w", err)
		}
		if d.lock = lockDir(d.path); d.lock != nil {
			return d, nil
		}
	}
	return nil, fmt.Errorf("run directory %s: no lock could be had", parent)
}

// Close removes the directory and all that is in it.
func (d *runDir) Close() error {
	err := remove(d.path)
	return errors.Join(err, d.lock.Close())
}

// remove removes a run directory. If another host makes a lock in it between
// the removal of the old one and that of the directory, the directory is that
// host's from then on.
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
	switch id := identify(info); {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case id.UID != uint32(os.Geteuid()):
		return fmt.Errorf("%s belongs to user %d, expected %d: remove it or choose another directory", dir, id.UID, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s can be entered by others (mode %v): chmod 700 %s", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// sweep removes the directories of hosts that are gone.
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
		// Before the directory: it tells which processes are meant.
		killOrphans(dir)
		if err := remove(dir); err != nil {
			errs = append(errs, fmt.Errorf("remove the directory of a dead host: %w", err))
		}
		_ = lock.Close() // nobody looks for it any more
	}
	return errors.Join(errs...)
}

// lockDir returns the lock of dir, or nil if somebody else has it or removed
// the directory.
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
