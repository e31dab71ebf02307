package filetree

import (
	"context"
	"io/fs"
	"iter"
	"slices"
)

// Walk yields everything below the start in the order of names, each directory followed
// by its content. It yields symbolic links and does not follow them. It yields
// directories whose names are secrets and does not enter them.
//
// A directory that cannot be read completely is yielded once more, with the error, and
// the walk continues. An error with the zero Entry ends the walk: the start cannot be
// read, or ctx has ended.
func (t *Tree) Walk(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		w := walk{yield: yield}
		defer w.end()
		t.start.hold()
		if w.list(t.start, Entry{Name: t.start.path, Type: fs.ModeDir}, t.notes...) {
			w.run(ctx)
		}
	}
}

// walk is a running walk.
type walk struct {
	yield func(Entry, error) bool
	// pending are the entries still to yield, the next one last. Each is a user of its
	// directory.
	pending []Entry
}

func (w *walk) run(ctx context.Context) {
	for len(w.pending) > 0 {
		if err := ended(ctx); err != nil {
			w.yield(Entry{}, err)
			return
		}
		e := w.pending[len(w.pending)-1]
		w.pending = w.pending[:len(w.pending)-1]
		goOn := w.visit(e)
		e.in.release()
		if !goOn {
			return
		}
	}
}

// visit yields an entry and enters it. It reports whether to continue.
func (w *walk) visit(e Entry) bool {
	if !w.yield(e, nil) {
		return false
	}
	entered, err := e.entered()
	if err == nil && !entered {
		return true
	}
	var d *directory
	if err == nil {
		d, err = e.enter()
	}
	if err != nil {
		return w.yield(e, err)
	}
	return w.list(d, e)
}

// list puts the entries of a directory before the pending ones, and releases the
// directory. It yields the errors with the entry as.
func (w *walk) list(d *directory, as Entry, errs ...error) bool {
	defer d.release()
	entries, err, rulesErr := d.list()
	if err != nil && as.in == nil && len(entries) == 0 {
		w.yield(Entry{}, err)
		return false
	}
	for _, err := range append(errs, err, rulesErr) {
		if err != nil && !w.yield(as, err) {
			return false
		}
	}
	slices.Reverse(entries)
	for range entries {
		d.hold()
	}
	w.pending = append(w.pending, entries...)
	return true
}

// end releases the entries that were not visited.
func (w *walk) end() {
	for _, e := range w.pending {
		e.in.release()
	}
}
