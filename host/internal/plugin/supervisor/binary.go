package supervisor

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

// fileID tells whether a file is still the one that was looked at. Every
// change of content, mode or owner changes it.
type fileID struct {
	Dev, Ino     uint64
	Size         int64
	Mode, UID    uint32
	Mtime, Ctime int64 // nanoseconds
}

// lookAt returns the identity of the file at path, or the zero one.
func lookAt(path string) fileID {
	info, err := os.Stat(path)
	if err != nil {
		return fileID{}
	}
	return identify(info)
}

// binary is a plugin's program: opened once, hashed and executed by the same
// descriptor, so that what was checked is what runs.
type binary struct {
	file   *os.File
	id     fileID
	digest string // hex SHA-256
}

// openBinary opens and checks the program of a plugin. The caller closes its
// file. Each mistake says what to do about it.
func openBinary(p Plugin, hashes *hashCache) (_ *binary, err error) {
	if err := checkPlace(p.Path); err != nil {
		return nil, err
	}
	// Non-blocking: a FIFO in the place of the program must not stop the host.
	f, err := os.OpenFile(p.Path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, refuse("its program does not exist", "there is no %s: build it, or correct path in its plugin block, or plugin_dir%s", p.Path, besides(p.Path))
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
	if err := checkMode(p.Path, info); err != nil {
		return nil, err
	}
	b := &binary{file: f, id: identify(info)}
	if b.digest, err = hashes.digest(f, b.id); err != nil {
		return nil, refuse("its program cannot be read", "read %s: %w", p.Path, err)
	}
	if p.SHA256 != "" && !strings.EqualFold(p.SHA256, b.digest) {
		return nil, refuse("its program is not the one that was pinned",
			"%s has sha256 %s, expected %s: put the pinned program back, or correct sha256 in its plugin block", p.Path, b.digest, p.SHA256)
	}
	return b, nil
}

// maxBesides bounds the programs that [besides] names: among more, none is found quickly.
const maxBesides = 10

// besides says which programs there are beside one that is missing: one of them may be
// meant.
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
	return "; beside it there are " + strings.Join(names, ", ")
}

// checkPlace refuses a program that others could exchange: one behind a
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

// maxProgram bounds what is hashed at a start, in bytes.
const maxProgram = 2 << 30

// hashSettled is how old a file's last change must be for its digest to be
// kept: two changes within one tick of the file system's clock look alike.
const hashSettled = 2 * time.Second

// settled reports whether the file is as old.
func (id fileID) settled() bool { return time.Since(time.Unix(0, id.Ctime)) > hashSettled }

// hashCache remembers digests by file identity, since reading a program of 12
// MiB costs 12 ms at each start.
type hashCache struct {
	mu   sync.Mutex // guards hash
	hash map[fileID]string
}

func (c *hashCache) digest(f *os.File, id fileID) (string, error) {
	c.mu.Lock()
	digest, ok := c.hash[id]
	c.mu.Unlock()
	if ok {
		return digest, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, id.Size)); err != nil {
		return "", err
	}
	digest = hex.EncodeToString(h.Sum(nil))
	if id.settled() {
		c.put(id, digest)
	}
	return digest, nil
}

// put remembers a digest. It forgets the others when there are too many, which
// takes a thousand new programs.
func (c *hashCache) put(id fileID, digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hash == nil || len(c.hash) >= 1024 {
		c.hash = make(map[fileID]string)
	}
	c.hash[id] = digest
}

// refusedError is why a plugin is not started: something that stays wrong until
// somebody mends it.
type refusedError struct {
	// brief is for callers: no path of the host is in it. It is a whole clause.
	brief string
	// err is the whole, for the operator.
	err error
	// digest is that of the binary if it takes a start to see what is wrong;
	// "" if looking at the file is enough.
	digest string
}

func refuse(brief, format string, args ...any) *refusedError {
	return &refusedError{brief: brief, err: fmt.Errorf(format, args...)}
}

// wrongSettings is the brief of a refusal that the configuration causes.
const wrongSettings = "its settings are wrong"

// CheckBinary looks at the program of a plugin as a start does, and starts
// nothing. The error says to an operator what is wrong and what to do.
func CheckBinary(p Plugin) error {
	program, err := openBinary(p, &hashCache{})
	if err != nil {
		return err
	}
	return program.file.Close()
}

func (r *refusedError) Error() string { return r.err.Error() }

func (r *refusedError) Unwrap() error { return r.err }
