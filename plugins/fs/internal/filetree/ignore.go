package filetree

import (
	"errors"
	"io"
	"slices"

	"github.com/toolhost/toolhost/plugins/fs/internal/gitignore"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// enterRules adds the rules of a directory with the given names to those that apply. The
// error says which ones do not.
func (d *directory) enterRules(dir *roots.Dir, names []roots.DirEntry) error {
	var errs []error
	if i := indexOf(names, ".git"); i >= 0 {
		d.scope = nil
		if names[i].Type.IsDir() {
			errs = append(errs, d.enterExclude(dir))
		}
	}
	if i := indexOf(names, ".gitignore"); i >= 0 && names[i].Type.IsRegular() {
		errs = append(errs, d.enterFile(dir, ".gitignore", dir.Rel()))
	}
	return errors.Join(errs...)
}

func indexOf(names []roots.DirEntry, name string) int {
	return slices.IndexFunc(names, func(e roots.DirEntry) bool { return e.Name == name })
}

// enterExclude adds the rules of .git/info/exclude, if it exists.
func (d *directory) enterExclude(dir *roots.Dir) error {
	at := dir
	for _, name := range []string{".git", "info"} {
		next, err := at.OpenDir(name)
		if at != dir {
			_ = at.Close()
		}
		if err != nil {
			return nil // there need not be any
		}
		at = next
	}
	defer func() { _ = at.Close() }() // it was only read
	names, err := at.Read(nil)
	if err != nil || indexOf(names, "exclude") < 0 {
		return err
	}
	return d.enterFile(at, "exclude", dir.Rel())
}

// enterFile adds the rules of a file to everything below base.
func (d *directory) enterFile(dir *roots.Dir, name, base string) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, gitignore.MaxSize+1))
	if err != nil {
		return err
	}
	rules, err := gitignore.Parse(text)
	if err == nil {
		var scope *gitignore.Scope
		if scope, err = d.scope.With(base, rules); err == nil {
			d.scope = scope
			return nil
		}
	}
	return tool.Errorf(tool.ResourceExhausted, "%s is not used: %v", display.VisibleName(roots.Join(dir.Path(), name)), err)
}
