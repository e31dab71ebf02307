package roots

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// MoveOptions are the settings of [Target.MoveTo] and [Target.Movable].
type MoveOptions struct {
	// Overwrite allows replacing one regular file with another.
	Overwrite bool
	// Copy keeps the source.
	Copy bool
}

// Removable returns the reason why the file or directory cannot be removed or moved
// away, or nil: it or something below it is protected, or it is a folder itself.
// Removable changes nothing.
func (t *Target) Removable() error {
	protection := &t.roots.protection
	switch {
	case t.info == nil:
		return t.roots.explain(t.String(), fs.ErrNotExist)
	case t.opts.Read, t.roots.holds(t.at), protection.holds(t.at.abs()), t.info.IsDir() && protection.isAbove(t.info):
		return t.roots.protected(t.at)
	}
	dir, err := t.directory()
	if err != nil {
		return err
	}
	if err := mayWrite(dir, "."); err != nil {
		return t.explain(err)
	}
	return nil
}

// holds reports whether the place is a folder itself or contains one.
func (r *Roots) holds(at place) bool {
	for _, f := range r.folders {
		if below, same := beneath(at.abs(), f.real, false); below || same {
			return true
		}
	}
	return false
}

// MoveTo moves the file or directory to dest, or copies it with [MoveOptions.Copy]. dest
// may belong to other Roots. Links are moved or copied, not followed. Both targets must
// be locked.
//
// Within a mount, a move is a rename. Between mounts, it is a durable copy followed by the
// removal of the source. If only the removal fails, the copy stays and the error says so. A
// copy appears at dest when it is complete and durable. It keeps modes, not owners.
func (t *Target) MoveTo(ctx context.Context, dest *Target, opts MoveOptions) (err error) {
	if err := t.Movable(ctx, dest, opts); err != nil {
		return err
	}
	if opts.Copy {
		return copier{from: t.roots}.copyTo(ctx, t, dest)
	}
	made, err := dest.makeParents()
	if err != nil {
		return err
	}
	defer func() { made.end(err) }()
	from, err := t.directory()
	if err != nil {
		return err
	}
	to, err := dest.directory()
	if err != nil {
		return err
	}
	if err := t.unchanged(); err != nil {
		return t.explain(err)
	}
	unlock := lockDirectory(to)
	err = dest.rename(from, t.base, to)
	unlock()
	if errors.Is(err, syscall.EXDEV) {
		return t.moveAcross(ctx, dest)
	}
	if err != nil {
		return dest.explain(err)
	}
	return t.confirm(to, from)
}

// rename gives the file the target's name if the target is unchanged.
func (t *Target) rename(from *os.File, name string, to *os.File) error {
	if t.info == nil {
		err := renameNew(int(from.Fd()), name, int(to.Fd()), t.base)
		if errors.Is(err, syscall.EEXIST) {
			return t.replaced().WithCause(err)
		}
		return err
	}
	if err := t.unchanged(); err != nil {
		return err
	}
	return renameOver(int(from.Fd()), name, int(to.Fd()), t.base)
}

// Remove removes the file or directory and everything below it. It removes links and does not
// follow them.
func (t *Target) Remove() error {
	if err := t.Removable(); err != nil {
		return err
	}
	if err := t.unchanged(); err != nil {
		return t.explain(err)
	}
	if err := t.dir.RemoveAll(t.base); err != nil {
		return t.explain(err)
	}
	dir, err := t.directory()
	if err != nil {
		return err
	}
	return t.confirm(dir)
}
