package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/internal/links"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxFile bounds a lock file, in bytes.
const maxFile = 16 * tool.MiB

// File is the lock file of a configuration.
//
// Sandboxes keep plugins from a file that exists when they start. Where a plugin may write to its
// directory, it could still make a missing file, or change one that was replaced meanwhile. There
// the state directory keeps a copy while a host runs, and only the copy counts: see [File.Guard].
type File struct {
	// Path is its absolute path. If it is a symbolic link, the target is read and replaced.
	Path string
	// StateDir is the state directory of the configuration's host. It must exist for every method but
	// [File.Load].
	StateDir string
}

// Content is what a lock file holds.
type Content struct {
	Lock
	// Foreign reports that the file differs from the copy: it was changed or made while plugins could
	// do so, and not by [File.Update]. The Lock is that of the copy. Digest is that of the text that
	// is not used.
	Foreign bool
	Digest  string
}

// Load reads the file. Without a file it returns an empty lock. The error is for an operator, and
// names the file and the place in it.
func (f File) Load() (Content, error) {
	text, err := read(f.Path)
	if err != nil {
		return Content{}, err
	}
	if kept, guarded, err := f.kept(); err != nil {
		return Content{}, err
	} else if guarded && !bytes.Equal(kept, text) {
		l, err := f.parse(kept)
		return Content{Lock: l, Foreign: true, Digest: digest.Of(text)}, err
	}
	l, err := f.parse(text)
	return Content{Lock: l, Digest: digest.Of(text)}, err
}

// parse reads the text of the file; no text is no file.
func (f File) parse(text []byte) (Lock, error) {
	if len(text) == 0 {
		return Lock{}, nil
	}
	l, err := parse(text)
	if err != nil {
		return Lock{}, fmt.Errorf("%s: %w", f.Path, err)
	}
	return l, nil
}

// copyName is the name of the copy in the state directory. It is empty if there is no file.
const copyName = "lock-file-copy"

func (f File) copyPath() string { return filepath.Join(f.StateDir, copyName) }

// kept returns the copy, and whether there is one.
func (f File) kept() (text []byte, guarded bool, err error) {
	if _, err := os.Lstat(f.copyPath()); f.StateDir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	text, err = read(f.copyPath())
	return text, true, err
}

// Guard makes the copy, before plugins start that may write to the directory of the file. A copy of
// a host that was killed stays.
func (f File) Guard() error {
	_, guarded, err := f.kept()
	if err != nil || guarded {
		return err
	}
	return f.keep()
}

// Release removes the copy, after these plugins have ended, unless the file differs from it.
func (f File) Release() error {
	now, err := f.Load()
	if err != nil || now.Foreign {
		return err
	}
	if err := os.Remove(f.copyPath()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Trust makes a file count that differs from the copy: a person has checked the content with that
// digest. If the file has another one by now, Trust does nothing.
func (f File) Trust(of string) error {
	now, err := f.Load()
	if err != nil || !now.Foreign || now.Digest != of {
		return err
	}
	return f.keep()
}

// keep copies the file.
func (f File) keep() error {
	text, err := read(f.Path)
	if err != nil {
		return err
	}
	if err := replace(f.copyPath(), text); err != nil {
		return fmt.Errorf("copy the lock file: %w", err)
	}
	return nil
}

// read returns the text of a file, or none if there is none.
func read(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the lock file: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(file, int64(maxFile)+1))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the lock file %s: %w", path, err)
	case len(text) > int(maxFile):
		return nil, fmt.Errorf("read the lock file %s: it is larger than %v", path, maxFile)
	}
	return text, nil
}

// writerName is the file in the state directory that a writer locks. No plugin can hold it.
const writerName = "lock-file-writer"

// maxWait bounds how long a writer waits for another one.
const maxWait = 5 * time.Second

// Update reads the file again, lets change change the lock, and replaces the file, unless change
// fails. Writers wait for each other. The file keeps its mode; a new one gets 0600.
func (f File) Update(ctx context.Context, change func(*Lock) error) (Content, error) {
	release, err := f.lockWriter(ctx)
	if err != nil {
		return Content{}, err
	}
	defer release()
	now, err := f.Load()
	if err != nil {
		return Content{}, err
	}
	l := now.Clone()
	if err := change(&l); err != nil {
		return Content{}, err
	}
	text, err := l.format()
	if err == nil {
		_, err = parse(text) // otherwise the next host could not start
	}
	if err == nil && len(text) > int(maxFile) {
		err = fmt.Errorf("it would be larger than %v", maxFile)
	}
	if err == nil {
		err = replace(links.Resolve(f.Path), text)
	}
	if err != nil {
		return Content{}, fmt.Errorf("write the lock file %s: %w", f.Path, err)
	}
	if _, guarded, err := f.kept(); err != nil || guarded {
		if err := replace(f.copyPath(), text); err != nil { // not from the file: a plugin may be faster
			return Content{}, fmt.Errorf("copy the lock file: %w", err)
		}
	}
	return Content{Lock: l, Digest: digest.Of(text)}, nil
}

// lockWriter waits until no other process writes the file.
func (f File) lockWriter(ctx context.Context) (release func(), err error) {
	file, err := os.OpenFile(filepath.Join(f.StateDir, writerName), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the lock file: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxWait, errors.New("another process writes it"))
	defer cancel()
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil // which releases it
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock the lock file: %w", err), file.Close())
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock the lock file %s: %w", f.Path, context.Cause(ctx)), file.Close())
		}
	}
}

// replace replaces a file as a whole: after a crash it is the old one or the new one.
func replace(path string, text []byte) error {
	temp, err := write(path, text)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil // the file is replaced; only its safety in a power failure is not known
	}
	defer func() { _ = directory.Close() }()
	return directory.Sync()
}

// write writes the text of a file to a new one beside it, with the mode and the owner of the file.
func write(path string, text []byte) (temp string, err error) {
	mode, owner, group := fs.FileMode(0o600), os.Geteuid(), 0
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
		owner, group = ownersOf(info)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".lock-*")
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil && owner != os.Geteuid() { // root writes the file of a user
		err = file.Chown(owner, group)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// ownersOf returns the user and the group of a file.
func ownersOf(info fs.FileInfo) (uid, gid int) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return os.Geteuid(), os.Getegid()
	}
	return int(stat.Uid), int(stat.Gid)
}
