// Package clientfile knows the MCP clients and edits their configuration files: it sets the entry
// of one server and keeps everything else, byte by byte, with its comments. It never writes a
// file that it cannot read back, or whose other settings would change.
package clientfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// MaxSize bounds the size of a client's file, in bytes. Claude Code keeps much else in its own.
const MaxSize = 8 << 20

// maxBackups bounds how many backups of one file are kept beside it.
const maxBackups = 1000

// ErrChanged means that a file changed after its change was computed.
var ErrChanged = errors.New("the file changed meanwhile, so nothing was written")

// Edit computes the new content of a file from the old one. Missing files have no content.
type Edit func(old []byte) ([]byte, error)

// Change is a change of one file, which [Change.Write] applies.
type Change struct {
	Path     string // as it was given
	target   string // where Path leads through symbolic links
	old, new []byte
	exists   bool
	wide     bool // others than the owner may read the file, and must not
	mode     fs.FileMode
	uid, gid int // of the file that exists
}

// Plan computes what an edit changes in the file at a path. A file that does not exist is
// created with mode. Plan writes nothing.
func Plan(path string, mode fs.FileMode, edit Edit) (*Change, error) {
	c := &Change{Path: path, mode: mode}
	var err error
	if c.target, err = follow(path); err != nil {
		return nil, err
	}
	if err := c.read(); err != nil {
		return nil, err
	}
	if c.new, err = edit(c.old); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(c.new) > MaxSize {
		return nil, fmt.Errorf("%s would have %d bytes, expected at most %d", path, len(c.new), MaxSize)
	}
	return c, nil
}

// follow returns where a path leads. A link to a file that does not exist is refused.
func follow(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", fmt.Errorf("%s is a symbolic link to a file that does not exist: create that file or remove the link", path)
		}
		return path, nil
	}
	return target, err
}

// read reads the file as it is now.
func (c *Change) read() error {
	f, err := os.OpenFile(c.target, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a FIFO would wait
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", c.Path)
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return err
	}
	if len(text) > MaxSize {
		return fmt.Errorf("%s has more than %d bytes", c.Path, MaxSize)
	}
	c.old, c.exists, c.mode = text, true, info.Mode().Perm()
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		c.uid, c.gid = int(stat.Uid), int(stat.Gid)
	}
	return nil
}

// others are the rights of accounts other than the owner's.
const others = 0o077

// Private takes the file from accounts other than its owner's, since it will hold a token. It
// reports whether they have it now.
func (c *Change) Private() (wide bool) {
	c.wide = c.exists && c.mode&others != 0
	c.mode &^= others
	return c.wide
}

// Needed reports whether the file differs from what it should be.
func (c *Change) Needed() bool { return !c.exists || c.wide || !bytes.Equal(c.old, c.new) }

// Old returns the content that the change is of, and New the one that it leads to. They must not be
// changed.
func (c *Change) Old() []byte { return c.old }

// New is described at [Change.Old].
func (c *Change) New() []byte { return c.new }

// Write replaces the file at once and returns the path of the backup of the old one, or "" if
// there was none. It returns [ErrChanged] if the file has changed since [Plan].
func (c *Change) Write() (backup string, err error) {
	if err := c.unchanged(); err != nil {
		return "", err
	}
	dir := filepath.Dir(c.target)
	if err := c.makeDir(dir); err != nil {
		return "", err
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(c.target)+".*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // after the rename, there is none
	if err := errors.Join(c.fill(temp, c.new, c.mode), temp.Close()); err != nil {
		return "", err
	}
	if c.exists {
		if backup, err = c.backUp(); err != nil {
			return "", err
		}
	}
	if err := c.unchanged(); err != nil { // the client may have written it meanwhile
		if backup != "" {
			err = errors.Join(err, os.Remove(backup))
		}
		return "", err
	}
	if err := os.Rename(temp.Name(), c.target); err != nil {
		return backup, err
	}
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // not every file system can; the file is written
		_ = d.Close()
	}
	return backup, nil
}

// unchanged returns [ErrChanged] if the file has changed since [Plan].
func (c *Change) unchanged() error {
	now := &Change{Path: c.Path, target: c.target}
	if err := now.read(); err != nil {
		return err
	}
	if now.exists != c.exists || !bytes.Equal(now.old, c.old) {
		return fmt.Errorf("%s: %w", c.Path, ErrChanged)
	}
	return nil
}

// makeDir makes the file's directory. If every account may read the file, they may enter a new
// directory, whatever the umask is.
func (c *Change) makeDir(dir string) error {
	_, missing := os.Stat(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil || missing == nil || c.mode&0o004 == 0 {
		return err
	}
	return os.Chmod(dir, 0o755) //nolint:gosec // every account reads the file
}

// backUp writes the old content beside the file, under a name that no file has. Only the owner
// reads it: the old entry may hold a token.
func (c *Change) backUp() (string, error) {
	for i := range maxBackups {
		name := c.target + ".bak"
		if i > 0 {
			name = fmt.Sprintf("%s.%d", name, i)
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		return name, errors.Join(c.fill(f, c.old, c.mode&^others), f.Close())
	}
	return "", fmt.Errorf("%s has %d backups: remove some", c.Path, maxBackups)
}

// fill writes a file with a mode and, where that is allowed, the owner of the old one.
func (c *Change) fill(f *os.File, text []byte, mode fs.FileMode) error {
	if _, err := f.Write(text); err != nil {
		return err
	}
	if c.exists {
		if err := f.Chown(c.uid, c.gid); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	return f.Sync()
}

// Only returns an edit that makes a value the whole content.
func Only(value any) Edit {
	return func([]byte) ([]byte, error) {
		text, err := encode(value, "", "  ")
		return append(text, '\n'), err
	}
}

// encode returns JSON for people.
func encode(value any, prefix, indent string) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, indent)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
