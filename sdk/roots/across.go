package roots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/toolhost/toolhost/sdk/tool"
)

// moveAcross moves to another mount: it copies the source, renames it in one step, and
// then removes it. If the source changed after the copy, moveAcross renames it back and
// removes the copy.
func (t *Target) moveAcross(ctx context.Context, dest *Target) error {
	before, err := t.Contents(ctx, nil)
	if err != nil {
		return err
	}
	if err := (copier{preserve: true}).copyTo(ctx, t, dest); err != nil {
		return err
	}
	aside, err := t.setAside()
	if err != nil {
		return dest.withdraw(t, err)
	}
	defer aside.end()
	after, err := aside.Contents(ctx, nil)
	if err == nil && !bytes.Equal(before.Digest, after.Digest) {
		err = t.replaced()
	}
	if err == nil {
		return aside.remove(t)
	}
	if backErr := aside.putBack(t.base); backErr != nil {
		return t.stays(backErr)
	}
	return dest.withdraw(t, err)
}

// withdraw removes the copy of a source that could not be removed, and returns why that
// failed. A copy that replaced another file stays.
func (t *Target) withdraw(source *Target, err error) error {
	if t.info != nil || t.dir.RemoveAll(t.base) != nil {
		return source.stays(err)
	}
	return source.explain(err)
}

// stays returns the error for a source that was copied but could not be removed.
func (t *Target) stays(err error) error {
	what := tool.VisibleName(t.String()) + " is at its new place as a copy, but could not be removed from where it was"
	err = t.explain(err)
	known, ok := errors.AsType[*tool.Error](err)
	if !ok { // the call has ended
		return fmt.Errorf("%s: %w", what, err)
	}
	told := *known
	told.Message = what + ": " + known.Message
	return &told
}

// aside is a file or directory under a temporary name.
type aside struct {
	Target
	in   *os.File // the directory of the place; the place closes it
	held *os.File // locked, so that no sweep removes it; nil for what sweeps never remove
}

// setAside renames the file or directory to a temporary name, if it is unchanged.
func (t *Target) setAside() (*aside, error) {
	dir, err := t.directory()
	if err != nil {
		return nil, err
	}
	a := &aside{Target: *t, in: dir}
	a.base = temporaryName()
	if t.info.IsDir() || t.info.Mode().IsRegular() {
		if a.held, err = t.dir.OpenFile(t.base, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0); err != nil {
			return nil, err
		}
		_ = lock(a.held) // another lock protects it from sweeps as well
	}
	defer lockDirectory(dir)()
	if err = t.unchanged(); err == nil {
		err = renameNew(int(dir.Fd()), t.base, int(dir.Fd()), a.base)
	}
	if err != nil {
		a.end()
		return nil, err
	}
	return a, nil
}

// end releases the lock.
func (a *aside) end() {
	if a.held != nil {
		_ = a.held.Close() // opened for reading only
	}
}

// putBack restores the name, or a similar one if that is taken.
func (a *aside) putBack(base string) error {
	dir := int(a.in.Fd())
	err := renameNew(dir, a.base, dir, base)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	name := base + ".changed"
	if err := renameNew(dir, a.base, dir, name); err != nil {
		return err
	}
	return tool.Errorf(tool.Conflict, "another file has its name now, and its changed content is at %s", tool.VisibleName(name))
}

// remove removes the original of a copy.
func (a *aside) remove(source *Target) error {
	err := a.dir.RemoveAll(a.base)
	if err != nil {
		err = a.dir.RemoveAll(a.base) // a later process sweeps the rest
	}
	if err != nil {
		return source.stays(err)
	}
	return source.confirm(a.in)
}

// renames reports whether a rename can move the place to dest, because both are on one mount.
func (t *Target) renames(dest *Target) (bool, error) {
	from, err := t.directory()
	if err != nil {
		return false, err
	}
	to, err := dest.directory()
	if err != nil {
		return false, err
	}
	mountFrom, errFrom := mountOf(from)
	mountTo, errTo := mountOf(to)
	return errFrom == nil && errTo == nil && mountFrom == mountTo, nil
}

// copyable says why a file or directory cannot be copied, or why it cannot be removed
// after a copy to another mount.
func copyable(dir *os.Root, name string, at place, info fs.FileInfo, removed bool) error {
	switch mode := info.Mode(); {
	case mode.IsRegular(), mode.Type() == fs.ModeSymlink, mode.IsDir() && !removed:
		return nil
	case mode.IsDir():
		return removableIn(dir, name, at)
	default:
		return notCopied(at.String(), mode)
	}
}

// removableIn says why the content of a directory cannot be removed.
func removableIn(dir *os.Root, name string, at place) error {
	inner, _, err := enter(dir, name)
	if err != nil {
		return err
	}
	defer closeRead(inner)
	self, err := openSelf(inner)
	if err != nil {
		return err
	}
	defer self.Close()
	if errno, ok := errors.AsType[syscall.Errno](mayWrite(self, ".")); ok {
		return tool.Errorf(tool.Failed, "Failed to write file: %s: %s", tool.VisibleName(at.String()), errno.Error()).
			WithHint("the content of this directory cannot be removed; ask the user to change its permissions").WithCause(errno)
	}
	return nil
}
