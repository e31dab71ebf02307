package roots

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Target is a place where a file or directory can be changed or created. It keeps the
// directory of the place open, so renaming a directory above, or replacing it with a link,
// does not redirect the change. Call [Roots.Lock] before a change, and Close after use. Only
// one goroutine may use a Target at a time.
type Target struct {
	roots *Roots
	opts  TargetOptions
	at    place // the whole path, without links

	dir     *os.Root // the innermost existing directory above the place
	self    *os.File // dir as a file, opened when needed
	missing []string // the directories between dir and the place
	base    string   // "." if the place is a folder itself
	info    fs.FileInfo
}

// TargetOptions are the settings of [Roots.Target].
type TargetOptions struct {
	// Follow follows a symbolic link at the end of the name.
	Follow bool
	// Parents creates missing directories above the place for a write.
	Parents bool
	// Read means that the place is only read, as the source of a copy. Then it may be
	// protected.
	Read bool
}

// Target returns the place of the given name. The file need not exist. Target changes
// nothing. It refuses secrets and protected places with [tool.PermissionDenied]. The
// caller closes the target.
func (r *Roots) Target(name string, opts TargetOptions) (*Target, error) {
	found, missing, err := r.follow(name, opts.Follow)
	if err != nil {
		return nil, r.explainWrite(name, err)
	}
	t := &Target{roots: r, opts: opts, at: place{found.folder, path.Join(found.rel, missing)}}
	if err := t.allowed(); err != nil {
		return nil, err
	}
	if t.dir, err = found.root.OpenRoot("."); err != nil {
		return nil, t.explain(err)
	}
	t.missing = strings.Split(t.at.rel, "/")
	t.missing, t.base = t.missing[:len(t.missing)-1], t.missing[len(t.missing)-1]
	if err := t.look(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close closes the target. Calling Close again does nothing.
func (t *Target) Close() {
	t.leave()
	if t.dir != nil {
		closeRead(t.dir)
	}
}

// closeRead closes a directory that was only read.
func closeRead(dir *os.Root) { _ = dir.Close() }

// leave closes what belongs to the current directory.
func (t *Target) leave() {
	if t.self != nil {
		_ = t.self.Close()
		t.self = nil
	}
}

// String returns the path of the place for results.
func (t *Target) String() string { return t.at.String() }

// Identity returns the absolute path without symbolic links. It is for digests: it
// names folders of the host, so do not show it to a model.
func (t *Target) Identity() string { return t.at.abs() }

// Info describes the file at the place; nil means that there is none. It does not follow a
// symbolic link.
func (t *Target) Info() fs.FileInfo { return t.info }

// Gone checks again and reports whether the place is certainly empty. It returns false if it
// cannot check.
func (t *Target) Gone() bool {
	if len(t.missing) > 0 {
		return true
	}
	_, err := t.dir.Lstat(t.base)
	return errors.Is(err, fs.ErrNotExist)
}

// Lock waits until no other call of the process changes one of the targets, anything below
// them or a directory above them, and then updates their state. It stops waiting when ctx
// ends.
func (r *Roots) Lock(ctx context.Context, targets ...*Target) (unlock func(), err error) {
	paths := make([]string, len(targets))
	for i, t := range targets {
		paths[i] = t.at.abs()
	}
	unlock, err = r.writers.hold(ctx, paths)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		if err := t.look(); err != nil {
			unlock()
			return nil, err
		}
	}
	return unlock, nil
}

// allowed refuses a place whose name is protected.
func (t *Target) allowed() error {
	if !t.opts.Read && !t.roots.mayChange(t.at) {
		return t.roots.protected(t.at)
	}
	return nil
}

// mayChange reports whether the name of a place may be changed.
func (r *Roots) mayChange(at place) bool {
	return !r.protection.patterns.Match(at.rel) && !r.protection.covers(at.abs())
}

// look enters the existing directories above the place, and examines the place.
func (t *Target) look() error {
	here, err := t.dir.Stat(".")
	if err == nil {
		err = t.unprotected(here)
	}
	for err == nil && len(t.missing) > 0 {
		var next *os.Root
		if next, err = t.enter(t.missing[0]); err == nil {
			t.moveTo(next)
		}
	}
	if errors.Is(err, fs.ErrNotExist) && t.opts.Parents {
		t.info = nil
		return nil
	}
	if err == nil {
		t.info, err = t.dir.Lstat(t.base)
	}
	if errors.Is(err, fs.ErrNotExist) && len(t.missing) == 0 {
		t.info = nil
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return tool.Errorf(tool.NotFound, "File not found: %s", tool.VisibleName(t.parent())).
			WithHint("there is no such directory; create it first")
	}
	if err != nil {
		return t.explain(err)
	}
	if t.opts.Follow && t.info.Mode().Type() == fs.ModeSymlink {
		return t.replaced()
	}
	return t.unprotected(t.info)
}

// enter opens a directory in dir if it may be changed.
func (t *Target) enter(name string) (*os.Root, error) {
	next, info, err := enter(t.dir, name)
	if errors.Is(err, errReplaced) {
		return nil, t.replaced()
	}
	if err != nil {
		return nil, err
	}
	if err := t.unprotected(info); err != nil {
		closeRead(next)
		return nil, err
	}
	return next, nil
}

// moveTo makes next, the first of the missing directories, the current one.
func (t *Target) moveTo(next *os.Root) {
	t.leave()
	closeRead(t.dir)
	t.dir, t.missing = next, t.missing[1:]
}

// errReplaced reports that another file has replaced a directory.
var errReplaced = errors.New("replaced meanwhile")

// enter opens a directory in another one. It never follows a link.
func enter(dir *os.Root, name string) (*os.Root, fs.FileInfo, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !before.IsDir() {
		return nil, nil, syscall.ENOTDIR
	}
	next, err := dir.OpenRoot(name + "/") // with the slash, a FIFO is not opened
	if err != nil {
		return nil, nil, err
	}
	info, err := next.Stat(".")
	if err == nil && !os.SameFile(before, info) {
		err = errReplaced
	}
	if err != nil {
		closeRead(next)
		return nil, nil, err
	}
	return next, info, nil
}

// unprotected refuses a file that is protected under another name.
func (t *Target) unprotected(info fs.FileInfo) error {
	if !t.opts.Read && t.roots.protection.is(info) {
		return t.roots.protected(t.at)
	}
	return nil
}

// parent returns the directory of the place for results.
func (t *Target) parent() string { return place{t.at.folder, path.Dir(t.at.rel)}.String() }

// explain converts the error of a change for a model.
func (t *Target) explain(err error) error {
	switch {
	case errors.Is(err, errReplaced):
		return t.replaced().WithCause(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	default:
		return t.roots.explainWrite(t.String(), err)
	}
}

// nothingDone ends the error of a change that was not begun.
const nothingDone = "; nothing was done"

// replaced returns the error for a place that changed.
func (t *Target) replaced() *tool.Error {
	return tool.Errorf(tool.Conflict, "%s was changed by another program at the same time%s", tool.VisibleName(t.String()), nothingDone).
		WithHint("look at it again")
}

// Open opens the regular file at the place for reading; see [Roots.Open]. The caller
// closes it.
func (t *Target) Open() (*os.File, error) {
	if t.info == nil {
		return nil, t.roots.explain(t.String(), fs.ErrNotExist)
	}
	if err := regular(t.info); err != nil {
		return nil, err
	}
	f, err := t.dir.OpenFile(t.base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, t.roots.explain(t.String(), err)
	}
	opened, err := f.Stat()
	switch {
	case err != nil:
		err = t.roots.explain(t.String(), err)
	case !os.SameFile(t.info, opened):
		err = t.replaced()
	default:
		if err = t.roots.unlinkedFile(t.String(), f, t.at.covered()); err == nil {
			return f, nil
		}
	}
	_ = f.Close()
	return nil, err
}

// directory returns dir as a file, to rename in it and to sync it.
func (t *Target) directory() (*os.File, error) {
	if t.self != nil {
		return t.self, nil
	}
	self, err := openSelf(t.dir)
	if err != nil {
		return nil, t.explain(err)
	}
	t.self = self
	return self, nil
}
