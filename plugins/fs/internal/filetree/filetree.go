// Package filetree walks the files below a directory: in the order of their names, or on
// several processors without an order. It can leave out what git would ignore.
//
// Directories are opened by their name in the directory above, so no link is followed and
// no path is resolved again. Few are open at a time, however deep the tree is, and a file
// is examined only for its kind, which the directory has.
package filetree

import (
	"context"
	"io/fs"
	"sync/atomic"

	"github.com/toolhost/toolhost/plugins/fs/internal/gitignore"
	"github.com/toolhost/toolhost/sdk/roots"
)

const (
	// maxDepth is how many levels are entered; deeper directories are reported.
	maxDepth = 256
	// maxOpen is how many directories stay open while others in them are still to be
	// entered. More are opened again, from the nearest open one.
	maxOpen = 32
)

// Options are the settings of [Open]. The zero value walks everything.
type Options struct {
	// Depth is how many levels are entered: 1 is only the directory itself, 0 means all.
	Depth int
	// Gitignore leaves out what git would ignore in a working tree with these files, in a
	// repository or not. A directory with a .git is a separate repository, in which the rules
	// above do not apply.
	Gitignore bool
	// Skip, if not nil, reports that an entry is left out with everything below it.
	// [Tree.Each] calls it from several goroutines, and again before it enters a
	// directory.
	Skip func(Entry) bool
}

// Tree is a directory and everything below it. Close it after use.
type Tree struct {
	opts  Options
	start *directory
	open  atomic.Int32 // how many directories are open
	// notes are the errors of the directories above the start.
	notes []error
}

// Open opens the directory of the given name. The error is one for a model.
func Open(r *roots.Roots, name string, opts Options) (*Tree, error) {
	t := &Tree{opts: opts}
	t.start = &directory{tree: t, kept: true}
	above := func(d *roots.Dir) {
		if !opts.Gitignore {
			return
		}
		names, err := d.Read(nil)
		if err == nil {
			err = t.start.enterRules(d, names)
		}
		if err != nil {
			t.notes = append(t.notes, err)
		}
	}
	dir, err := r.OpenDir(name, above)
	if err != nil {
		return nil, err
	}
	t.start.dir, t.start.path = dir, dir.Path()
	t.start.users.Store(1)
	t.open.Store(1)
	return t, nil
}

// Close closes the directory. Call it when no walk is running.
func (t *Tree) Close() { t.start.release() }

// Entry is a file or directory in the tree.
type Entry struct {
	// Name is the last part of its path.
	Name string
	// Type is the kind of file.
	Type fs.FileMode

	in *directory // nil for the start
}

// IsDir reports whether it is a directory.
func (e Entry) IsDir() bool { return e.Type.IsDir() }

// Path returns the path for results and calls.
func (e Entry) Path() string {
	if e.in == nil {
		return e.Name
	}
	return roots.Join(e.in.path, e.Name)
}

// Rel returns the path relative to the start, with slashes.
func (e Entry) Rel() string {
	if e.in == nil {
		return ""
	}
	return roots.Join(e.in.rel, e.Name)
}

// Info describes the file itself. Call it while the entry is visited.
func (e Entry) Info() (info roots.Info, err error) {
	err = e.in.use(func(d *roots.Dir) error {
		info, err = d.Info(e.Name)
		return err
	})
	return info, err
}

// Open opens a regular file that holds no secrets. Call it while the entry is visited.
// The caller closes the file.
func (e Entry) Open() (f *roots.File, err error) {
	err = e.in.use(func(d *roots.Dir) error {
		f, err = d.Open(e.Name)
		return err
	})
	return f, err
}

// Target returns the target of a symbolic link, which can be anywhere. Call it while the
// entry is visited.
func (e Entry) Target() (target string, err error) {
	err = e.in.use(func(d *roots.Dir) error {
		target, err = d.Target(e.Name)
		return err
	})
	return target, err
}

// Compare is negative if path a precedes b in the order of [Tree.Walk]: by name, with the
// content of a directory right after it.
func Compare(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		switch {
		case a[i] == b[i]:
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		case a[i] < b[i]:
			return -1
		default:
			return 1
		}
	}
	return len(a) - len(b)
}

// ended returns the cause if the context has ended.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// directory is a directory of the walk.
type directory struct {
	tree  *Tree
	rel   string // to the start
	path  string // as results show it
	depth int    // 0 for the start
	scope *gitignore.Scope

	// base is an open directory from which way leads here; nil for the start.
	base *directory
	way  []string
	// dir stays open while there are users if it is kept; otherwise it is opened for each
	// use.
	dir   *roots.Dir
	kept  bool
	users atomic.Int32
}
