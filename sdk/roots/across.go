package roots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/tool"
)

// moveAcross moves to another mount: it makes a copy, takes the source away in a
// single step, and then removes it. If somebody has changed the source since it
// was copied, it is put back, and the copy removed.
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

// withdraw removes the copy of a source that could not be taken away, and
// returns why. If it has taken the place of something else it stays.
func (t *Target) withdraw(source *Target, err error) error {
	if t.info != nil || t.dir.RemoveAll(t.base) != nil {
		return source.stays(err)
	}
	return source.explain(err)
}

// stays says that there is a copy of what is at the place, which itself could not
// be removed.
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

// aside is what was at a place, under a name of its own.
type aside struct {
	Target
	in   *os.File // the directory of the place, which closes it
	held *os.File // holds the lock that keeps a sweep away; nil for what is not swept
}

// setAside renames what is at the place, if it is still what it was.
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
		_ = lock(a.held) // whoever else has it locked keeps a sweep away as well
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
		_ = a.held.Close() // nothing was written to it
	}
}

// putBack gives it its name back, or one like it if that is taken.
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
	return tool.Errorf(tool.Conflict, "something else has taken its name, and what somebody has changed of it meanwhile is now called %s", tool.VisibleName(name))
}

// remove removes it, of which there is a copy elsewhere.
func (a *aside) remove(source *Target) error {
	err := a.dir.RemoveAll(a.base)
	if err != nil {
		err = a.dir.RemoveAll(a.base) // what is left is swept by a later process
	}
	if err != nil {
		return source.stays(err)
	}
	return source.confirm(a.in)
}

// crossing is a copy, or a move that has to be one.
type crossing struct {
	move bool
	// largest is how large a file may become here, by setrlimit(2).
	largest uint64
}

// crossing says how what is at the place gets to dest; nil means by a rename.
func (t *Target) crossing(dest *Target, opts MoveOptions) (*crossing, error) {
	if !opts.Copy {
		from, err := t.directory()
		if err != nil {
			return nil, err
		}
		to, err := dest.directory()
		if err != nil {
			return nil, err
		}
		if sameMount(from, to) {
			return nil, nil
		}
	}
	c := &crossing{move: !opts.Copy, largest: unix.RLIM_INFINITY}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err == nil {
		c.largest = limit.Cur
	}
	return c, nil
}

// sameMount reports whether a rename leads from one directory to the other.
func sameMount(a, b *os.File) bool {
	mountA, errA := mountOf(a)
	mountB, errB := mountOf(b)
	return errA == nil && errB == nil && mountA == mountB
}

// takes says why a file or directory cannot be copied, or not be removed
// afterwards.
func (c *crossing) takes(dir *os.Root, name string, at place, info fs.FileInfo) error {
	shown := tool.VisibleName(at.String())
	switch mode := info.Mode(); {
	case mode.IsRegular() && uint64(info.Size()) > c.largest:
		return tool.Errorf(tool.Failed, "Failed to write file: %s has %d bytes, and files of more than %d cannot be written here", shown, info.Size(), c.largest).
			WithHint("ask the user to do it, or to raise file_size in the plugin's limits")
	case mode.IsRegular(), mode.Type() == fs.ModeSymlink:
		return nil
	case mode.IsDir() && c.move:
		if err := removableIn(dir, name); err != nil {
			var errno syscall.Errno
			if !errors.As(err, &errno) {
				return err
			}
			return tool.Errorf(tool.Failed, "Failed to write file: %s: %s", shown, errno.Error()).
				WithHint("what is in this directory cannot be removed; ask the user to change its permissions").WithCause(err)
		}
		return nil
	case mode.IsDir(), c.move && canMake(mode):
		return nil
	default:
		return tool.Errorf(tool.Failed, "Failed to write file: %s is a %s, which cannot be copied", shown, Kind(mode))
	}
}

// removableIn says why what is in a directory cannot be removed.
func removableIn(dir *os.Root, name string) error {
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
	return mayWrite(self, ".")
}

// canMake reports whether files of this kind hold nothing, so that a new one is
// a copy.
func canMake(mode fs.FileMode) bool { return mode&(fs.ModeNamedPipe|fs.ModeSocket) != 0 }

// makeLike makes a file that holds nothing.
func makeLike(dir *os.Root, name string, info fs.FileInfo) error {
	kind := uint32(unix.S_IFIFO)
	if info.Mode()&fs.ModeSocket != 0 {
		kind = unix.S_IFSOCK
	}
	self, err := openSelf(dir)
	if err != nil {
		return err
	}
	defer self.Close()
	return mknodat(self, name, kind|uint32(info.Mode().Perm()))
}
