package roots

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/toolhost/toolhost/sdk/tool"
)

// copyStep is how much of a file is copied between checks of the context.
const copyStep = 64 << 20

// copier copies a file or a directory to another place.
type copier struct {
	// preserve keeps owners and times as well as modes.
	preserve bool
	// from, if not nil, refuses files that are secrets under another name.
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
		return placeLink(from, to)
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
			_ = to.dir.RemoveAll(name) // a later process sweeps the rest
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

// fill copies the entries of a directory to made. The directory is the source or below
// it. It checks again for forbidden files, which may have appeared since the plan.
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

func (c copier) copyEntry(ctx context.Context, source *Target, at place, from, to *os.Root, info fs.FileInfo) error {
	name := path.Base(at.rel)
	switch {
	case info.IsDir():
		return c.copyTree(ctx, source, at, from, to, info)
	case info.Mode().IsRegular():
		return c.copyFile(ctx, from, name, to, info)
	default:
		return copyLink(from, name, to, name, info)
	}
}

// copyTree copies one directory and everything below it.
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

// copyBytes copies all of a file to an empty file.
func copyBytes(ctx context.Context, to, from *os.File) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, copyStep); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// finish sets the mode of a directory that was filled.
func (c copier) finish(dir *os.Root, name string, info fs.FileInfo) error {
	if c.preserve {
		preserve(dir, name, info)
		return nil
	}
	return setMode(dir, name, info.Mode().Perm())
}

// preserve gives a copy the owner, mode and time of the original where the system allows.
func preserve(dir *os.Root, name string, info fs.FileInfo) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = dir.Lchown(name, int(stat.Uid), int(stat.Gid))
	}
	_ = setMode(dir, name, info.Mode().Perm())
	_ = dir.Chtimes(name, info.ModTime(), info.ModTime())
}

// placeLink copies a symbolic link to another place.
func placeLink(from, to *Target) (err error) {
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
	if err := copyLink(from.dir, from.base, to.dir, name, from.info); err != nil {
		return to.explain(err)
	}
	if err := to.rename(dir, name, dir); err != nil {
		_ = to.dir.Remove(name) // a later process sweeps it
		return to.explain(err)
	}
	return to.confirm(dir)
}

// copyLink copies a symbolic link. A file of another kind is an error.
func copyLink(from *os.Root, name string, to *os.Root, newName string, info fs.FileInfo) error {
	if info.Mode().Type() != fs.ModeSymlink {
		return notCopied(name, info.Mode())
	}
	target, err := from.Readlink(name)
	if err != nil {
		return err
	}
	return to.Symlink(target, newName)
}

// notCopied reports a file that is not a regular file, a directory or a link.
func notCopied(name string, mode fs.FileMode) error {
	return tool.Errorf(tool.Failed, "Failed to write file: %s is a %s, which cannot be copied", tool.VisibleName(name), Kind(mode))
}
