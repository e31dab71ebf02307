package filetree

import (
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// hold adds a user, which must release the directory.
func (d *directory) hold() { d.users.Add(1) }

// release ends a hold or an enter.
func (d *directory) release() {
	if d.users.Add(-1) > 0 {
		return
	}
	if d.kept {
		_ = d.dir.Close() // it was only read
		d.tree.open.Add(-1)
	} else {
		d.base.release()
	}
}

// enter opens the directory of an entry whose own directory is in use. The caller
// releases it.
func (e Entry) enter() (*directory, error) {
	d := &directory{tree: e.in.tree, rel: e.Rel(), path: e.Path(), depth: e.in.depth + 1, scope: e.in.scope, base: e.in, way: []string{e.Name}}
	if d.depth >= maxDepth {
		return nil, tool.Errorf(tool.ResourceExhausted, "Directory is nested deeper than %d levels: %s", maxDepth, display.VisibleName(d.path)).
			WithHint("use the path of a directory below it")
	}
	if !e.in.kept {
		d.base, d.way = e.in.base, append(slices.Clip(e.in.way), e.Name)
	}
	dir, err := d.reach()
	if err != nil {
		return nil, err
	}
	d.users.Store(1)
	if d.kept = d.tree.open.Add(1) <= maxOpen; d.kept {
		d.dir = dir
		return d, nil
	}
	d.tree.open.Add(-1)
	_ = dir.Close() // it is opened again where it is used
	d.base.hold()
	return d, nil
}

// reach opens the directory from its base.
func (d *directory) reach() (*roots.Dir, error) {
	at := d.base.dir
	for i, name := range d.way {
		next, err := at.OpenDir(name)
		if i > 0 {
			_ = at.Close()
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// use calls do with the open directory.
func (d *directory) use(do func(*roots.Dir) error) error {
	if d.kept {
		return do(d.dir)
	}
	dir, err := d.reach()
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // it was only read
	return do(dir)
}

// list returns the entries of the directory by name, without temporary files and excluded
// entries. err accompanies the entries that could be read, and rulesErr names the ignore rules
// that do not apply.
func (d *directory) list() (entries []Entry, err, rulesErr error) {
	var names []roots.DirEntry
	prefix := ""
	err = d.use(func(dir *roots.Dir) (err error) {
		names, err = dir.Read(nil)
		if d.tree.opts.Gitignore {
			rulesErr = d.enterRules(dir, names)
		}
		if prefix = dir.Rel(); prefix != "" {
			prefix += "/"
		}
		return err
	})
	if failure := tool.AsError(err); err != nil && failure.Code == tool.ResourceExhausted {
		err = failure.WithHint("use the path of a file that is left out")
	}
	slices.SortFunc(names, func(a, b roots.DirEntry) int { return strings.Compare(a.Name, b.Name) })
	entries = make([]Entry, 0, len(names))
	for _, name := range names {
		if roots.Temporary(name.Name) {
			continue
		}
		e := Entry{name.Name, name.Type, d}
		if d.scope != nil && d.scope.Ignored(prefix+e.Name, e.IsDir()) {
			continue
		}
		if d.tree.opts.Skip == nil || !d.tree.opts.Skip(e) {
			entries = append(entries, e)
		}
	}
	return entries, err, rulesErr
}

// entered reports whether the walk enters the entry.
func (e Entry) entered() (bool, error) {
	if !e.IsDir() || e.in.depth+1 == e.in.tree.opts.Depth {
		return false, nil
	}
	secret := false
	err := e.in.use(func(d *roots.Dir) error {
		secret = d.Secret(e.Name)
		return nil
	})
	return !secret, err
}
