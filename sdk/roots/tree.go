package roots

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Limits of a tree that is copied, moved or removed in one call.
const (
	// maxTreeDepth is the maximum number of levels: a copy needs two descriptors for each.
	maxTreeDepth = 64
	// maxTreeEntries is the maximum number of files.
	maxTreeEntries = 1_000_000
)

// Contents describes the content of a file or a directory.
type Contents struct {
	// Files, Directories and Others are counts, including the place itself. Others
	// are symbolic links, FIFOs, sockets and devices.
	Files, Directories, Others int
	// Bytes is the size of the files.
	Bytes int64
	// Digest covers every name with its kind, mode, size, time of change and, for a link, its
	// target.
	Digest []byte
}

// Contents reads everything below the place, sorted by name. If each is not nil,
// Contents calls it with every path relative to the place, "." first.
func (t *Target) Contents(ctx context.Context, each func(rel string, info fs.FileInfo)) (Contents, error) {
	var c Contents
	digest := sha256.New()
	err := t.scan(ctx, func(dir *os.Root, name, rel string, info fs.FileInfo) error {
		c.count(info)
		fmt.Fprintf(digest, "%q %v %d %d", rel, info.Mode(), info.Size(), info.ModTime().UnixNano())
		if info.Mode().Type() == fs.ModeSymlink {
			link, err := dir.Readlink(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(digest, " %q", link)
		}
		fmt.Fprintln(digest)
		if each != nil {
			each(rel, info)
		}
		return nil
	})
	c.Digest = digest.Sum(nil)
	return c, err
}

func (c *Contents) count(info fs.FileInfo) {
	switch {
	case info.Mode().IsRegular():
		c.Files++
		c.Bytes += info.Size()
	case info.IsDir():
		c.Directories++
	default:
		c.Others++
	}
}

// visit is called for each file of a tree: name is in dir, and rel is its path relative
// to the tree, "." for the tree itself.
type visit func(dir *os.Root, name, rel string, info fs.FileInfo) error

// scan visits the place and everything below it, each directory before its content. It does
// not follow links. It stops at the first error and at a forbidden file.
func (t *Target) scan(ctx context.Context, visit visit) error {
	if t.info == nil {
		return t.roots.explain(t.String(), fs.ErrNotExist)
	}
	s := scanning{visit: func(dir *os.Root, name, rel string, info fs.FileInfo) error {
		if t.roots.forbids(place{t.at.folder, path.Join(t.at.rel, rel)}) {
			return t.holdsForbidden()
		}
		return visit(dir, name, rel, info)
	}}
	if err := s.scan(ctx, t.dir, t.base, ".", t.info, 1); err != nil {
		return t.explainTree(err)
	}
	return nil
}

// holdsForbidden returns the error for a directory that contains a forbidden file.
func (t *Target) holdsForbidden() *tool.Error {
	return t.roots.forbiddenPath(t.String()).WithHint("it contains a file that the administrator has forbidden to all calls; name a file in it")
}

// explainTree converts the error of a scan for a model. A file that no longer exists was
// removed during the scan.
func (t *Target) explainTree(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return t.replaced().WithCause(err)
	}
	return t.explain(err)
}

type scanning struct {
	visit visit
	seen  int
}

func (s *scanning) scan(ctx context.Context, dir *os.Root, name, rel string, info fs.FileInfo, depth int) error {
	if s.seen++; s.seen > maxTreeEntries {
		return tool.Errorf(tool.ResourceExhausted, "The directory contains more than %d files", maxTreeEntries).WithHint("name directories in it one by one")
	}
	if err := s.visit(dir, name, rel, info); err != nil || !info.IsDir() {
		return err
	}
	if depth > maxTreeDepth {
		return tool.Errorf(tool.ResourceExhausted, "The directory is nested deeper than %d levels", maxTreeDepth).
			WithHint("start with directories below it, or ask the user to do it")
	}
	inner, entries, err := list(ctx, dir, name)
	if err != nil {
		return err
	}
	defer closeRead(inner)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		if err := s.scan(ctx, inner, e.Name(), path.Join(rel, e.Name()), info, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// list opens the directory of that name and reads it, sorted by name. The caller closes
// it.
func list(ctx context.Context, dir *os.Root, name string) (*os.Root, []fs.DirEntry, error) {
	inner, _, err := enter(dir, name)
	if err != nil {
		return nil, nil, err
	}
	entries, err := readAll(ctx, inner)
	if err != nil {
		closeRead(inner)
		return nil, nil, err
	}
	return inner, entries, nil
}

func readAll(ctx context.Context, dir *os.Root) ([]fs.DirEntry, error) {
	f, err := openSelf(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []fs.DirEntry
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		batch, err := f.ReadDir(readBatch)
		all = append(all, batch...)
		if len(all) > maxTreeEntries {
			return nil, tool.Errorf(tool.ResourceExhausted, "The directory contains more than %d files", maxTreeEntries)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// Movable returns the reason why the file or directory cannot be moved or copied to
// dest, or nil. ctx bounds the time for a directory. Movable changes nothing.
//
// Moving a directory must not change whether the files in it are secret or protected. Movable
// refuses a move that would, in either direction.
func (t *Target) Movable(ctx context.Context, dest *Target, opts MoveOptions) error {
	if t.info == nil {
		return t.roots.explain(t.String(), fs.ErrNotExist)
	}
	if err := dest.takes(t, opts); err != nil {
		return err
	}
	if !opts.Copy {
		if err := t.Removable(); err != nil {
			return err
		}
	}
	copies := opts.Copy
	if !copies {
		renames, err := t.renames(dest)
		if err != nil {
			return err
		}
		copies = !renames
	}
	return t.scan(ctx, func(dir *os.Root, name, rel string, info fs.FileInfo) error {
		from, to := place{t.at.folder, path.Join(t.at.rel, rel)}, place{dest.at.folder, path.Join(dest.at.rel, rel)}
		if dest.roots.forbids(to) {
			return dest.holdsForbidden()
		}
		if from.covered() != to.covered() && !t.roots.allows(from) && !dest.roots.allows(to) {
			return t.roots.secret(from.String())
		}
		was, becomes := t.roots.protection.patterns.Match(from.rel), dest.roots.protection.patterns.Match(to.rel)
		if becomes && !was || was && !becomes && !opts.Copy {
			return t.roots.protected(from)
		}
		if dest.roots.protection.covers(to.abs()) || !opts.Copy && t.roots.protection.is(info) {
			return t.roots.protected(from)
		}
		if !copies {
			return nil
		}
		return copyable(dir, name, from, info, !opts.Copy)
	})
}

// takes returns the reason why dest cannot become a copy of source, or nil.
func (t *Target) takes(source *Target, opts MoveOptions) error {
	inside, same := beneath(source.at.abs(), t.at.abs(), false)
	switch {
	case same || t.info != nil && os.SameFile(source.info, t.info):
		return tool.Errorf(tool.InvalidArgument, "source and dest are the same: %s", tool.VisibleName(t.String()))
	case inside && source.info.IsDir():
		return tool.Errorf(tool.InvalidArgument, "dest is in the directory that is to be copied or moved: %s", tool.VisibleName(t.String()))
	case t.info != nil && t.info.IsDir():
		return t.exists().WithHint("dest is a directory; give the whole new path, such as %s", tool.VisibleName(path.Join(t.String(), source.base)))
	case t.info != nil && source.info.IsDir():
		return t.exists().WithHint("a directory does not replace a file")
	case t.info != nil && !opts.Overwrite:
		return t.exists().WithHint("set overwrite to replace it")
	default:
		return t.Writable()
	}
}
