// Package filetree goes through the files below a directory: one after the other in
// the order of their names, or on several processors in no order. It leaves out
// what git would ignore, if it is told so.
//
// Directories are opened by their name in the one above, so that no link is
// followed and no path looked up. Few are open at a time, however deep the tree
// is, and nothing is asked of a file but its kind, which the directory tells.
package filetree

import (
	"context"
	"io/fs"
	"sync/atomic"

	"github.com/toolhost/toolhost/plugins/fs/internal/gitignore"
	"github.com/toolhost/toolhost/sdk/roots"
)

const (
	// maxDepth is how far below its start a tree is gone through; what lies
	// deeper is reported.
	maxDepth = 256
	// maxOpen is how many directories stay open since others in them are still
	// to be entered. Those beyond are opened again, from the nearest that is.
	maxOpen = 32
)

// Options are the settings of [Open]. The zero value goes through everything.
type Options struct {
	// Depth is how many levels are entered: 1 is the directory itself only. 0
	// means as deep as it goes.
	Depth int
	// Gitignore leaves out what git would ignore in a working tree with these
	// files, whether it is in a repository or not. A directory that has a .git
	// is a repository of its own: what is above does not count there.
	Gitignore bool
	// Skip, if not nil, reports that an entry is left out, with everything below
	// it. [Tree.Each] calls it from several goroutines, and again just before it
	// enters a directory.
	Skip func(Entry) bool
}

// Tree is a directory and everything below it. Close it after use.
type Tree struct {
	opts  Options
	start *directory
	open  atomic.Int32 // how many directories are open
	// notes are of the directories above.
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

// Close closes the directory. It is called when nobody goes through the tree.
func (t *Tree) Close() { t.start.release() }

// Entry is a file that was found.
type Entry struct {
	// Name is the last part of its path.
	Name string
	// Type is the kind of file.
	Type fs.FileMode

	in *directory // nil for the start
}

// IsDir reports whether it is a directory.
func (e Entry) IsDir() bool { return e.Type.IsDir() }

// Path is how results show it and how a call can name it.
func (e Entry) Path() string {
	if e.in == nil {
		return e.Name
	}
	return roots.Join(e.in.path, e.Name)
}

// Rel is the path relative to the start, with slashes.
func (e Entry) Rel() string {
	if e.in == nil {
		return ""
	}
	return roots.Join(e.in.rel, e.Name)
}

// Info describes the file itself. It is called while the entry is visited.
func (e Entry) Info() (info roots.Info, err error) {
	err = e.in.use(func(d *roots.Dir) error {
		info, err = d.Info(e.Name)
		return err
	})
	return info, err
}

// Open opens the entry if it is a regular file that holds no secrets. It is
// called while the entry is visited. The caller closes the file.
func (e Entry) Open() (f *roots.File, err error) {
	err = e.in.use(func(d *roots.Dir) error {
		f, err = d.Open(e.Name)
		return err
	})
	return f, err
}

// Target returns where a symbolic link leads to, which may be anywhere. It is
// called while the entry is visited.
func (e Entry) Target() (target string, err error) {
	err = e.in.use(func(d *roots.Dir) error {
		target, err = d.Target(e.Name)
		return err
	})
	return target, err
}

// Compare is negative if path a comes before b in the order of [Tree.Walk]: by
// names, what is in a directory right behind it.
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

// ended is the cause if the context has ended.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// directory is one that is gone through.
type directory struct {
	tree  *Tree
	rel   string // to the start
	path  string // as results show it
	depth int    // 0 for the start
	scope *gitignore.Scope

	// base is an open directory from which it is reached by way; nil for the
	// start.
	base *directory
	way  []string
	// dir is open as long as there are users, if it is kept; else it is opened
	// for each use.
	dir   *roots.Dir
	kept  bool
	users atomic.Int32
}
