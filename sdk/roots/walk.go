package roots

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds of [Roots.Walk]; what lies beyond is reported, never dropped in
// silence.
const (
	// maxDepth is how far below its start a walk goes.
	maxDepth = 256
	// maxEntries is how many entries of one directory are held.
	maxEntries = 200_000
	// readBatch is how many entries are read between two looks at the context.
	readBatch = 1024
)

// WalkOptions are the settings of [Roots.Walk]. The zero value walks
// everything.
type WalkOptions struct {
	// Depth is how many levels are entered: 1 is the directory itself only. 0
	// means as deep as it goes.
	Depth int
	// Skip, if not nil, reports that an entry is left out, with everything
	// below it.
	Skip func(Entry) bool
}

// Entry is a file that a walk has found.
type Entry struct {
	// Path is how results show it and how a call can name it, see
	// [Roots.Display].
	Path string
	// Rel is the path relative to the start of the walk, with slashes.
	Rel string
	// Info describes the file itself; symbolic links are not followed. It is
	// nil for the start of the walk, which is yielded with an error only.
	Info fs.FileInfo
	// Depth is 1 for what is in the directory where the walk began.
	Depth int

	roots *Roots
	place place
}

// Open opens the entry if it is a regular file, as [Roots.Open] does.
func (e Entry) Open() (*os.File, error) {
	if e.roots.secrets.match(e.place.rel) {
		return nil, e.roots.secret(e.Path)
	}
	return e.roots.openRegular(e.place, e.Path)
}

// Target returns where a symbolic link leads to, which may be anywhere.
func (e Entry) Target() (string, error) {
	target, err := e.place.root.Readlink(e.place.rel)
	if err != nil {
		return "", e.roots.explain(e.Path, err)
	}
	return target, nil
}

// Walk yields what lies below the directory of the given name, sorted by name,
// each directory followed by what is in it. Symbolic links are reported, not
// followed. Directories with the name of a secret are reported, not entered.
//
// A directory that cannot be read to its end is yielded once more, with the
// error, and the walk goes on. An error with the zero Entry ends the walk: the
// name is no directory that can be read, or ctx has ended.
func (r *Roots) Walk(ctx context.Context, name string, opts WalkOptions) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		start, err := r.resolve(name, true)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		top := Entry{Path: start.String(), roots: r, place: start}
		pending, err := r.list(ctx, top, opts.Skip)
		if err != nil && len(pending) == 0 {
			yield(Entry{}, err)
			return
		}
		if err != nil && !yield(top, err) {
			return
		}
		for len(pending) > 0 {
			e := pending[len(pending)-1]
			pending = pending[:len(pending)-1]
			if !yield(e, nil) {
				return
			}
			if !e.Info.IsDir() || e.Depth == opts.Depth || r.secrets.match(e.place.rel) {
				continue
			}
			children, err := r.list(ctx, e, opts.Skip)
			if ctx.Err() != nil {
				yield(Entry{}, context.Cause(ctx))
				return
			}
			if err != nil && !yield(e, err) {
				return
			}
			pending = append(pending, children...)
		}
	}
}

// list reads the directory and returns what is in it, the first name last
// since the walk takes from the end. What it could read comes with an error
// too.
func (r *Roots) list(ctx context.Context, dir Entry, skip func(Entry) bool) ([]Entry, error) {
	if dir.Depth >= maxDepth {
		return nil, tool.Errorf(tool.ResourceExhausted, "Directory is nested deeper than %d levels: %s", maxDepth, tool.VisibleName(dir.Path))
	}
	f, err := dir.place.root.OpenFile(dir.place.rel, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, r.explainDirectory(dir.Path, err)
	}
	defer f.Close()

	var found []fs.DirEntry
	for err == nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var batch []fs.DirEntry
		batch, err = f.ReadDir(readBatch)
		found = append(found, batch...)
		if len(found) > maxEntries {
			err = tool.Errorf(tool.ResourceExhausted, "Directory has more than %d entries, the rest is left out: %s", maxEntries, tool.VisibleName(dir.Path))
		}
	}
	slices.SortFunc(found, func(a, b fs.DirEntry) int { return strings.Compare(b.Name(), a.Name()) })
	entries := make([]Entry, 0, len(found))
	for _, one := range found {
		e, ok := r.entry(dir, one)
		if ok && (skip == nil || !skip(e)) {
			entries = append(entries, e)
		}
	}
	if errors.Is(err, io.EOF) {
		return entries, nil
	}
	return entries, r.explainDirectory(dir.Path, err)
}

// entry describes what was found in dir; it is not ok if that is gone since.
func (r *Roots) entry(dir Entry, found fs.DirEntry) (Entry, bool) {
	// A directory opened through an os.Root gives the information with the
	// name: nothing is looked up by a path here.
	info, err := found.Info()
	if err != nil {
		return Entry{}, false
	}
	return Entry{
		Path:  below(dir.Path, found.Name()),
		Rel:   below(dir.Rel, found.Name()),
		Info:  info,
		Depth: dir.Depth + 1,
		roots: r,
		place: place{dir.place.folder, below(dir.place.rel, found.Name())},
	}, true
}

// below is [path.Join] for a name that needs no cleaning.
func below(dir, name string) string {
	if dir == "" || dir == "." {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}
