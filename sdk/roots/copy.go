package roots

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/toolhost/toolhost/sdk/tool"
)

// CopyTo copies the file or directory to dest, which may belong to other Roots. Links
// in a directory are copied as links. Both targets must be locked. The copy appears at
// dest when it is complete and durable. Modes are kept, owners are not.
func (t *Target) CopyTo(ctx context.Context, dest *Target, opts MoveOptions) error {
	opts.Copy = true
	if err := t.Movable(ctx, dest, opts); err != nil {
		return err
	}
	return copier{from: t.roots}.copyTo(ctx, t, dest)
}

type copier struct {
	// preserve keeps owners and times as well.
	preserve bool
	// from, if not nil, refuses secrets under another name.
	from *Roots
}

func (c copier) copyTo(ctx context.Context, from, to *Target) error {
	switch {
	case from.info.IsDir():
		return c.placeTree(ctx, from, to)
	case from.info.Mode().IsRegular():
		err := to.replace(from.info.Mode().Perm(), func(f *os.File) error {
			source, err := from.Open()
			if err != nil {
				return err
			}
			defer source.Close()
			return copyBytes(ctx, f, source)
		})
		if err == nil && c.preserve {
			preserve(to.dir, to.base, from.info)
		}
		return err
	default:
		return c.placeOther(from, to)
	}
}

// placeTree copies a directory under a temporary name and then renames it.
func (c copier) placeTree(ctx context.Context, from, to *Target) (err error) {
	above, err := to.makeParents()
	if err != nil {
		return err
	}
	defer func() { above.end(err) }()
	to.roots.writers.sweep(to.dir)
	dir, err := to.directory()
	if err != nil {
		return err
	}
	name, made, held, err := newTemporaryDirectory(to.dir)
	if err != nil {
		return to.explain(err)
	}
	defer held.Close()
	defer closeRead(made)
	defer func() {
		if err != nil {
			_ = to.dir.RemoveAll(name) // what is left over is swept by a later process
		}
	}()
	if err := c.fill(ctx, from, from.at, from.dir, from.base, made); err != nil {
		return from.explainTree(err)
	}
	if err := c.finish(to.dir, name, from.info); err != nil {
		return to.explain(err)
	}
	if err := syncAll(dir); err != nil {
		return to.explain(err)
	}
	if err := to.rename(dir, name, dir); err != nil {
		return to.explain(err)
	}
	return to.confirm(dir)
}

// fill copies what is in a directory, which is the source or below it, to made. What is
// forbidden may have come to be since the source was looked at.
func (c copier) fill(ctx context.Context, source *Target, at place, from *os.Root, name string, made *os.Root) error {
	inner, entries, err := list(ctx, from, name)
	if err != nil {
		return err
	}
	defer closeRead(inner)
	for _, e := range entries {
		entry := place{at.folder, path.Join(at.rel, e.Name())}
		if source.roots.forbids(entry) {
			return source.holdsForbidden()
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if err := c.copyEntry(ctx, source, entry, inner, made, info); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies one directory with everything in it.
func (c copier) copyTree(ctx context.Context, source *Target, at place, from, to *os.Root, info fs.FileInfo) error {
	name := path.Base(at.rel)
	if err := to.Mkdir(name, 0o700); err != nil {
		return err
	}
	made, _, err := enter(to, name)
	if err != nil {
		return err
	}
	defer closeRead(made)
	if err := c.fill(ctx, source, at, from, name, made); err != nil {
		return err
	}
	return c.finish(to, name, info)
}

// finish gives a directory that was filled its mode.
func (c copier) finish(dir *os.Root, name string, info fs.FileInfo) error {
	if c.preserve {
		preserve(dir, name, info)
		return nil
	}
	return setMode(dir, name, info.Mode().Perm())
}

func (c copier) copyEntry(ctx context.Context, source *Target, at place, from, to *os.Root, info fs.FileInfo) error {
	name := path.Base(at.rel)
	switch {
	case info.IsDir():
		return c.copyTree(ctx, source, at, from, to, info)
	case info.Mode().IsRegular():
		return c.copyFile(ctx, from, name, to, info)
	default:
		return c.copyOther(from, name, to, name, info)
	}
}

// copyOther copies what is neither a file nor a directory.
func (c copier) copyOther(from *os.Root, name string, to *os.Root, newName string, info fs.FileInfo) error {
	if c.preserve && canMake(info.Mode()) {
		err := makeLike(to, newName, info)
		if err == nil {
			preserve(to, newName, info)
		}
		return err
	}
	if info.Mode().Type() != fs.ModeSymlink {
		return tool.Errorf(tool.Failed, "Failed to write file: %s is a %s, which cannot be copied", tool.VisibleName(name), Kind(info.Mode()))
	}
	target, err := from.Readlink(name)
	if err != nil {
		return err
	}
	return to.Symlink(target, newName)
}

func (c copier) copyFile(ctx context.Context, from *os.Root, name string, to *os.Root, info fs.FileInfo) error {
	source, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	if opened, err := source.Stat(); err != nil || !os.SameFile(info, opened) {
		return errors.Join(errReplaced, err)
	}
	if c.from != nil {
		if err := c.from.unlinkedFile(name, source, false); err != nil {
			return err
		}
	}
	f, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	err = errors.Join(copyBytes(ctx, f, source), f.Close())
	if err == nil && c.preserve {
		preserve(to, name, info)
	}
	return err
}

// preserve gives a copy the owner, mode and time of what it was made of, as far
// as that may be done.
func preserve(dir *os.Root, name string, info fs.FileInfo) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = dir.Lchown(name, int(stat.Uid), int(stat.Gid))
	}
	_ = setMode(dir, name, info.Mode().Perm())
	_ = dir.Chtimes(name, info.ModTime(), info.ModTime())
}

// placeOther copies what is neither a file nor a directory.
func (c copier) placeOther(from, to *Target) (err error) {
	made, err := to.makeParents()
	if err != nil {
		return err
	}
	defer func() { made.end(err) }()
	dir, err := to.directory()
	if err != nil {
		return err
	}
	name := temporaryName()
	if err := c.copyOther(from.dir, from.base, to.dir, name, from.info); err != nil {
		return to.explain(err)
	}
	if err := to.rename(dir, name, dir); err != nil {
		_ = to.dir.Remove(name) // it leads where the source leads
		return to.explain(err)
	}
	return to.confirm(dir)
}
