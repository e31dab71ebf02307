package process

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// RefusedError explains why a plugin does not start. The reason stays until
// it is corrected.
type RefusedError struct {
	// Brief is a whole clause for callers, without any path of the host.
	Brief string
	// Err is the full explanation for the operator.
	Err error
	// Digest is the digest of the program if only a start reveals the mistake; "" if the file
	// does.
	Digest string
}

func (r *RefusedError) Error() string { return r.Err.Error() }

func (r *RefusedError) Unwrap() error { return r.Err }

func refuse(brief, format string, args ...any) *RefusedError {
	return &RefusedError{Brief: brief, Err: fmt.Errorf(format, args...)}
}

// Program is the program of a plugin. It is opened once, and hashed and executed
// through the same descriptor: the program that was checked is the program that
// runs.
type Program struct {
	File   *os.File
	ID     FileID
	Digest string // hex SHA-256
}

// maxProgram bounds the size of a program, in bytes: it is hashed at a start.
const maxProgram = 2 << 30

// OpenProgram opens and checks the program at path. sha256 is the hex digest that
// it must have; "" accepts any. The caller closes the program. The error is a
// [*RefusedError] that says how to correct the mistake.
func OpenProgram(path, sha256 string, hashes *Hashes) (_ *Program, err error) {
	if err := checkPlace(path); err != nil {
		return nil, err
	}
	// Non-blocking: opening a FIFO must not block the host.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, refuse("its program does not exist", "there is no %s: build it, or correct path in its plugin block, or plugin_dir%s", path, besides(path))
		}
		return nil, refuse("its program cannot be read", "open program: %w", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close() // it was only read
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, refuse("its program cannot be read", "look at program: %w", err)
	}
	if err := checkMode(path, info); err != nil {
		return nil, err
	}
	p := &Program{File: f, ID: identify(info)}
	if p.Digest, err = hashes.digest(f, p.ID); err != nil {
		return nil, refuse("its program cannot be read", "read %s: %w", path, err)
	}
	if sha256 != "" && !strings.EqualFold(sha256, p.Digest) {
		return nil, refuse("its program is not the one that was pinned",
			"%s has sha256 %s, expected %s: put the pinned program back, or correct sha256 in its plugin block", path, p.Digest, sha256)
	}
	return p, nil
}

// CheckProgram checks a program that the host runs itself as it does those of plugins: no other
// user can change or exchange it. The program may be of any size. The error tells an operator the
// mistake and its remedy.
func CheckProgram(path string) error {
	if err := checkPlace(path); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return refuse("it does not exist", "there is no %s%s", path, besides(path))
	}
	if err != nil {
		return refuse("it cannot be read", "look at program: %w", err)
	}
	return checkMode(path, info)
}

// Close closes the program's file.
func (p *Program) Close() { _ = p.File.Close() } // it was only read

// maxBesides is the largest number of programs that [besides] lists.
const maxBesides = 20

// besides lists the programs next to a missing one, in case one of them was meant.
func besides(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return "" // there is no such directory: plugin_dir is wrong
	}
	var names []string
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 || len(names) > maxBesides {
		return ""
	}
	return "; its directory contains " + strings.Join(names, ", ")
}

// checkPlace refuses a program that other users could exchange: one behind a
// symbolic link, or in a directory that others can write.
func checkPlace(path string) error {
	if !filepath.IsAbs(path) {
		return refuse("its path is not absolute", "path %q is not absolute", path)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil //nolint:nilerr // opening it gives the better message
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return refuse("its program is a symbolic link", "%s is a symbolic link, which could be changed after the check: name the file itself, or copy it there", path)
	}
	dir := filepath.Dir(path)
	info, err = os.Stat(dir)
	if err != nil {
		return refuse("its program cannot be read", "look at the program's directory: %w", err)
	}
	if uid := identify(info).UID; uid != 0 && uid != uint32(os.Geteuid()) {
		return refuse("its program's directory belongs to another user", "%s belongs to user %d, who could exchange the program: expected root or %d", dir, uid, os.Geteuid())
	}
	if mode := info.Mode(); mode.Perm()&0o022 != 0 && mode&os.ModeSticky == 0 {
		return refuse("others can write to its program's directory", "%s can be written by others (mode %v), who could exchange the program: chmod go-w %s", dir, mode.Perm(), dir)
	}
	return nil
}

func checkMode(path string, info os.FileInfo) error {
	mode, id := info.Mode(), identify(info)
	switch {
	case info.IsDir():
		return refuse("its program is a directory", "%s is a directory: name the program in it", path)
	case !mode.IsRegular():
		return refuse("its program is not a file", "%s is not a regular file (mode %v)", path, mode)
	case info.Size() > maxProgram:
		return refuse("its file is too large for a program", "%s has %d bytes, more than %v: name the program itself", path, info.Size(), tool.ByteSize(maxProgram))
	case mode.Perm()&0o111 == 0:
		return refuse("its program is not executable", "%s is not executable (mode %v): chmod +x %s", path, mode.Perm(), path)
	case mode.Perm()&0o022 != 0:
		return refuse("others can write to its program", "%s can be written by others (mode %v): chmod go-w %s", path, mode.Perm(), path)
	case id.UID != 0 && id.UID != uint32(os.Geteuid()):
		return refuse("its program belongs to another user", "%s belongs to user %d, expected root or %d, the user of this host: chown it", path, id.UID, os.Geteuid())
	}
	return nil
}

// FileID identifies one state of a file. Every change of content, mode or owner
// changes it.
type FileID struct {
	Dev, Ino     uint64
	Size         int64
	Mode, UID    uint32
	Mtime, Ctime int64 // nanoseconds
}

// LookAt returns the identity of the file at path, or the zero FileID if there is
// none.
func LookAt(path string) FileID {
	info, err := os.Stat(path)
	if err != nil {
		return FileID{}
	}
	return identify(info)
}

// settleTime is how old the last change of a file must be before its digest is
// kept: two changes within one tick of the file system's clock look alike.
const settleTime = 2 * time.Second

// Settled reports whether the file has not changed for two seconds, so that
// another change would have another FileID.
func (id FileID) Settled() bool { return time.Since(time.Unix(0, id.Ctime)) > settleTime }

// Hashes remembers digests by file identity, because hashing a program of 12 MiB
// takes 12 ms. The zero value is ready. It is safe for concurrent use.
type Hashes struct {
	mu   sync.Mutex // guards hash
	hash map[FileID]string
}

func (h *Hashes) digest(f *os.File, id FileID) (string, error) {
	h.mu.Lock()
	digest, ok := h.hash[id]
	h.mu.Unlock()
	if ok {
		return digest, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, id.Size)); err != nil {
		return "", err
	}
	digest = hex.EncodeToString(sum.Sum(nil))
	if id.Settled() {
		h.Put(id, digest)
	}
	return digest, nil
}

// Put remembers the digest of a file.
func (h *Hashes) Put(id FileID, digest string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hash == nil {
		h.hash = make(map[FileID]string)
	}
	h.hash[id] = digest
}
