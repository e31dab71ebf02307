package roots

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// temporaryPattern matches names of temporary files, and no others.
var temporaryPattern = regexp.MustCompile(`^\.toolhost-[A-Z2-7]{26}\.tmp$`)

// Temporary reports whether name is that of a temporary file or directory of this package. A
// later process removes those that a killed process left behind.
func Temporary(name string) bool {
	return strings.HasPrefix(name, ".toolhost-") && temporaryPattern.MatchString(name)
}

// temporaryName returns a random name.
func temporaryName() string { return ".toolhost-" + rand.Text() + ".tmp" }

// temporary is a new file that will take the place of another.
type temporary struct {
	*os.File
	dir  *os.Root
	name string
}

// maxClaims is how often a temporary file is created again after a sweep removed it.
const maxClaims = 100

// newTemporary makes a file in dir.
func newTemporary(dir *os.Root, mode fs.FileMode) (*temporary, error) {
	for range maxClaims {
		name := temporaryName()
		f, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return nil, err
		}
		t := &temporary{f, dir, name}
		if claim(dir, name, f) {
			return t, nil
		}
		t.discard()
	}
	return nil, unix.EBUSY
}

// newTemporaryDirectory creates a directory in dir. The caller closes made. It also closes
// held, which has the lock, once the directory is renamed or removed.
func newTemporaryDirectory(dir *os.Root) (name string, made *os.Root, held *os.File, err error) {
	for range maxClaims {
		name = temporaryName()
		if err := dir.Mkdir(name, 0o700); err != nil {
			return "", nil, nil, err
		}
		made, _, err = enter(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a sweep was faster
		}
		if err != nil {
			break
		}
		if held, err = openSelf(made); err != nil {
			closeRead(made)
			break
		}
		if claim(dir, name, held) {
			return name, made, held, nil
		}
		_ = held.Close() // opened for reading only
		closeRead(made)
		err = unix.EBUSY
	}
	_ = dir.Remove(name) // it is empty
	return "", nil, nil, err
}

// claim locks a new file or directory so that no sweep removes it while the process lives. It
// returns false if a sweep came first. On file systems without locks, only the age protects
// it.
func claim(dir *os.Root, name string, f *os.File) (ok bool) {
	if lock(f) != nil {
		return false
	}
	made, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := dir.Lstat(name)
	return err == nil && os.SameFile(made, there)
}

// discard removes the file unless it was renamed.
func (t *temporary) discard() {
	if t.name != "" {
		// A later process sweeps the rest.
		_ = t.dir.Remove(t.name)
	}
	_ = t.Close()
}

// lock marks an open file or directory as in use. If it already is, that is an error.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	return nil
}

// sweep removes the temporary files and directories in dir that are not in use and last
// changed before started.
func sweep(dir *os.Root, started time.Time) {
	list, err := dir.Open(".")
	if err != nil {
		return
	}
	defer list.Close()
	for {
		// Stop at an error, too: a later process tries again.
		names, err := list.Readdirnames(readBatch)
		if err != nil || len(names) == 0 {
			return
		}
		for _, name := range names {
			if Temporary(name) {
				sweepOne(dir, name, started)
			}
		}
	}
}

func sweepOne(dir *os.Root, name string, started time.Time) {
	info, err := dir.Lstat(name)
	if err != nil || !info.ModTime().Before(started) || !info.IsDir() && !info.Mode().IsRegular() {
		return
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) || lock(f) != nil {
		return
	}
	if info.IsDir() {
		_ = dir.RemoveAll(name)
	} else {
		_ = dir.Remove(name)
	}
}
