package hosts

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
	"time"
)

const (
	// originFile is the name of the file in a state directory that says which configuration it
	// belongs to.
	originFile = "configuration.json"
	// maxOrigin bounds such a file.
	maxOrigin = 64 << 10
	// maxSiblings bounds the state directories that are examined.
	maxSiblings = 4096
)

// Origin identifies the configuration of a state directory.
type Origin struct {
	// Path is the absolute path of the file or directory.
	Path string `json:"path"`
	// Contents is the digest of the contents of its files.
	Contents string `json:"contents"`
	// Device and Inode identify the file or directory while it exists, also after it was moved
	// within its file system.
	Device uint64 `json:"device,omitempty"`
	Inode  uint64 `json:"inode,omitempty"`
}

// OriginOf returns the origin of a configuration.
func OriginOf(path, contents string) Origin {
	o := Origin{Path: path, Contents: contents}
	if info, err := os.Stat(path); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			o.Device, o.Inode = uint64(stat.Dev), stat.Ino //nolint:unconvert // the type of Dev differs between systems
		}
	}
	return o
}

// Save records the configuration that a state directory belongs to. The caller holds the
// directory's lock.
func (o Origin) Save(stateDir string) error {
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("record the configuration of the state: %w", err)
	}
	path := filepath.Join(stateDir, originFile)
	if former, err := os.ReadFile(path); err == nil && bytes.Equal(former, text) {
		return nil
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("record the configuration of the state: %w", err)
	}
	return nil
}

// ReadOrigin returns the configuration that a state directory belongs to. Those of earlier
// versions do not say.
func ReadOrigin(stateDir string) (o Origin, err error) {
	f, err := os.OpenFile(filepath.Join(stateDir, originFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return o, err
	}
	defer func() { _ = f.Close() }()                                   // nothing was written
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // another account may have put a FIFO there
		return o, errors.Join(err, fs.ErrInvalid)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxOrigin))
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(text, &o)
}

// Left is a state directory whose configuration is no longer where it was.
type Left struct {
	StateDir string
	// Path is where the configuration was.
	Path string
}

// MovedFrom returns the state directory beside stateDir that belonged to the configuration o
// before it was moved: its configuration no longer exists and was the same file, or had the same
// contents. If there are several, it returns the newest. database is the name of the file
// without which a state directory has no state.
func MovedFrom(o Origin, stateDir, database string) (left Left, found bool) {
	parent := filepath.Dir(stateDir)
	dir, err := os.Open(parent)
	if err != nil {
		return left, false
	}
	defer func() { _ = dir.Close() }() // nothing was written
	entries, _ := dir.ReadDir(maxSiblings)
	var last time.Time
	for _, entry := range entries {
		sibling := filepath.Join(parent, entry.Name())
		if !entry.IsDir() || sibling == stateDir {
			continue
		}
		used, err := os.Stat(filepath.Join(sibling, database))
		if err != nil || found && !used.ModTime().After(last) {
			continue
		}
		of, err := ReadOrigin(sibling)
		if err != nil || !o.movedFrom(of) {
			continue
		}
		left, last, found = Left{StateDir: sibling, Path: of.Path}, used.ModTime(), true
	}
	return left, found
}

// movedFrom reports whether o is a former configuration that was moved.
func (o Origin) movedFrom(former Origin) bool {
	if _, err := os.Lstat(former.Path); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	sameFile := o.Inode != 0 && o.Inode == former.Inode && o.Device == former.Device
	return sameFile || o.Contents != "" && o.Contents == former.Contents
}
