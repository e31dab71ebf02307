package roots

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/tool"
)

// parents are directories that a change has created.
type parents struct {
	dir   *os.Root // where they were created; nil if there are none
	names []string // relative to dir, outermost first
}

// makeParents creates the missing directories above the place, durably.
func (t *Target) makeParents() (made parents, err error) {
	if len(t.missing) == 0 {
		return parents{}, nil
	}
	if !t.opts.Parents {
		return parents{}, t.roots.explain(t.parent(), fs.ErrNotExist)
	}
	if made.dir, err = t.dir.OpenRoot("."); err != nil {
		return parents{}, t.explain(err)
	}
	defer func() {
		if err != nil {
			made.end(err)
			made = parents{}
		}
	}()
	name := ""
	for len(t.missing) > 0 {
		name = path.Join(name, t.missing[0])
		if err := t.mkdir(t.missing[0]); err == nil {
			made.names = append(made.names, name)
		} else if !errors.Is(err, fs.ErrExist) {
			return made, t.explain(err)
		}
		dir, err := t.directory()
		if err != nil {
			return made, err
		}
		if err := syncDirectory(dir); err != nil {
			return made, t.explain(err)
		}
		next, err := t.enter(t.missing[0])
		if err != nil {
			return made, t.explain(err)
		}
		t.moveTo(next)
	}
	return made, nil
}

// mkdir creates a directory with the permissions of its parent.
func (t *Target) mkdir(name string) error {
	mode := t.inherited(fs.ModePerm)
	if err := t.dir.Mkdir(name, mode); err != nil {
		return err
	}
	err := setMode(t.dir, name, mode)
	if err != nil {
		_ = removeEmpty(t.dir, name) // another program may already use it
	}
	return err
}

// setMode sets a mode through a descriptor if possible: a sandbox refuses names whose owner it
// cannot determine.
func setMode(dir *os.Root, name string, mode fs.FileMode) error {
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return dir.Chmod(name, mode) // the file may be unreadable
	}
	return errors.Join(f.Chmod(mode), f.Close())
}

// inherited returns the part of a mode that the parent directory has as well, without write
// permission for others. Those who can use the directory can use a new file in it. The
// process's umask does not count, since a host gives its plugins a strict one.
func (t *Target) inherited(mode fs.FileMode) fs.FileMode {
	const everybody fs.FileMode = 0o002
	info, err := t.dir.Stat(".")
	if err != nil {
		return mode & 0o700
	}
	return mode & info.Mode().Perm() &^ everybody
}

// end removes the directories again if they are empty, after the change that needed them has
// failed.
func (p *parents) end(failure error) {
	if p.dir == nil {
		return
	}
	for i := len(p.names) - 1; failure != nil && i >= 0; i-- {
		_ = removeEmpty(p.dir, p.names[i]) // another program may already use it
	}
	closeRead(p.dir)
}

// removeEmpty removes an empty directory. It does not remove a file or link in its place.
func removeEmpty(dir *os.Root, name string) error {
	above, err := dir.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer above.Close()
	return unix.Unlinkat(int(above.Fd()), path.Base(name), unix.AT_REMOVEDIR)
}

// MakeDirectory creates a directory at the place and, with [TargetOptions.Parents], the
// missing directories above it. made is false if the directory already exists. A file of
// another kind at the place is an error.
func (t *Target) MakeDirectory() (made bool, err error) {
	if t.info != nil {
		if !t.info.IsDir() {
			return false, tool.Errorf(tool.Failed, "Failed to write file: it is a %s, not a directory", Kind(t.info.Mode()))
		}
		return false, nil
	}
	if err := t.Writable(); err != nil {
		return false, err
	}
	above, err := t.makeParents()
	if err != nil {
		return false, err
	}
	defer func() { above.end(err) }()
	dir, err := t.directory()
	if err != nil {
		return false, err
	}
	if err := t.mkdir(t.base); err != nil {
		return false, t.explain(err)
	}
	return true, t.confirm(dir)
}
