// Package roots reads and changes files below allowed folders, and no others. [For]
// opens the folders of a call.
//
// A name is relative to the first folder, or absolute and below one of the
// folders. Every access uses an [os.Root], so renaming a folder or placing a
// symbolic link between check and use does not lead outside. Only regular files
// are opened; FIFOs, sockets and devices are refused without opening them.
// Files with names that usually hold secrets are refused, too. This prevents
// accidents only: a copy of a secret under another name is an ordinary file.
//
// A change is made at a [Target]. It is atomic: after a crash, a file is either the
// old one or the new one. Protected paths are not changed, in any spelling.
//
// Errors are of type [*tool.Error], written for a model, and name no file outside
// the folders; or they are the error of a context.
package roots

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/sdk/forbidden"
	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/sensitive"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxName is the maximum length of a name on Linux, in bytes: PATH_MAX without its terminator.
const maxName = 4095

// Options are the settings of [Open]. The zero value is usable.
type Options struct {
	// Secrets lists patterns of names that are refused. nil means
	// [sensitive.Default]; an empty list means none. [sensitive.Parse] describes
	// patterns.
	Secrets []string
	// Allowed lists absolute paths without symbolic links. Secrets does not apply to them or
	// to anything below them.
	Allowed []string
	// Forbidden lists patterns of absolute paths, as described in package forbidden. Matching
	// files and everything below them are refused, even if they are in Allowed, and left out
	// of directories.
	Forbidden []string
	// Protect lists patterns of names that may be read but not changed. Nil means all presets
	// of package protect and git's own files; an empty list means none.
	Protect []string
	// Protected lists absolute paths that must not be changed, nor anything below them.
	// Directories above them cannot be removed or renamed. The paths need not exist.
	Protected []string
	// Shared is the state that all Roots of a process share. Nil is for a process with only
	// one Roots.
	Shared *Shared
}

// Shared is what the Roots of one process share: the locks on files being changed, and the
// hard links of sensitive files. The zero value is ready to use and safe for concurrent use. A
// plugin has one for all its calls.
type Shared struct {
	writers writers
	links   hardLinks
}

// Call is the part of a call that [For] needs. Call of package sdk implements it.
type Call interface {
	Roots() []string
	Protected() []string
	Files() tool.FilePolicy
}

// For opens the folders that a call may use, under the host's rules for sensitive, allowed,
// forbidden and protected files. The caller closes the Roots at the end of the call. shared
// belongs to the plugin; a plugin that changes no files, or runs one call at a time, passes
// nil. Errors are of type [*tool.Error].
func For(c Call, shared *Shared) (*Roots, error) {
	policy := c.Files()
	r, err := Open(c.Roots(), Options{
		Secrets: policy.Sensitive, Allowed: policy.Allowed, Forbidden: policy.Forbidden,
		Protect: protectOf(policy.Protect), Protected: c.Protected(), Shared: shared,
	})
	if err != nil {
		return nil, tool.Errorf(tool.Unavailable, "The workspace cannot be opened").WithCause(err)
	}
	return r, nil
}

// Roots are open folders. It is safe for concurrent use. Close it after use.
type Roots struct {
	folders    []*folder
	secrets    sensitive.Patterns
	allowed    []string
	forbidden  forbidden.Patterns
	protection protection
	writers    *writers
	links      *hardLinks
	options    Options
}

// folder is one allowed folder.
type folder struct {
	root *os.Root
	// path is absolute and clean, as it was given; real is the same path without symbolic
	// links. A caller may use either.
	path, real string
	first      bool
	secrets    sensitive.Coverage
}

// place is a resolved name: slash-separated and clean, relative to the folder.
type place struct {
	*folder
	rel string
}

// Open opens folders. Relative names are relative to the first. Open returns an error, written
// for an operator, if there are no folders, if a folder is not an absolute path of a
// directory, or if a pattern is invalid. Tools use [For].
func Open(dirs []string, opts Options) (*Roots, error) {
	if len(dirs) == 0 {
		return nil, errors.New("open roots: no folder given, expected at least one absolute path")
	}
	if opts.Secrets == nil {
		opts.Secrets = sensitive.Default()
	}
	if opts.Protect == nil {
		opts.Protect = protectOf(protect.Presets())
	}
	if opts.Shared == nil {
		opts.Shared = &Shared{}
	}
	secrets, err := sensitive.Parse(opts.Secrets)
	if err != nil {
		return nil, fmt.Errorf("secret %w", err)
	}
	kept, err := parseProtect(opts.Protect)
	if err != nil {
		return nil, err
	}
	for _, p := range opts.Protected {
		if !path.IsAbs(p) {
			return nil, fmt.Errorf("open roots: protected path %q is not absolute", p)
		}
	}
	r := &Roots{
		secrets: secrets, allowed: opts.Allowed, forbidden: opts.Forbidden,
		writers: &opts.Shared.writers, links: &opts.Shared.links, options: opts,
	}
	r.protection.patterns, r.protection.given = kept, opts.Protected
	for i, dir := range dirs {
		f, err := openFolder(dir)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		f.first, f.secrets = i == 0, secrets.In(f.real)
		r.folders = append(r.folders, f)
	}
	return r, nil
}

func openFolder(dir string) (*folder, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("open root %q: not an absolute path", dir)
	}
	realPath, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("open root: %w", err)
	}
	root, err := os.OpenRoot(realPath)
	if err != nil {
		return nil, fmt.Errorf("open root: %w", err)
	}
	return &folder{root: root, path: filepath.Clean(dir), real: realPath}, nil
}

// Close closes the folders. Open files stay open. Calling Close again does nothing.
func (r *Roots) Close() error {
	var errs []error
	for _, f := range r.folders {
		errs = append(errs, f.root.Close())
	}
	return errors.Join(errs...)
}

// Options returns the options of r, to open other folders under the same rules.
func (r *Roots) Options() Options { return r.options }

// Display returns the form of name for results: relative to the first folder, or
// absolute if it is in another one. It does not access the file. It fails with
// [tool.PermissionDenied] if name is not below a folder.
func (r *Roots) Display(name string) (string, error) {
	at, err := r.locate(name)
	if err != nil {
		return "", err
	}
	return at.String(), nil
}

// abs returns the absolute path. If the place was resolved, the path has no links.
func (p place) abs() string { return path.Join(p.real, p.rel) }

// String returns the path for results.
func (p place) String() string {
	if p.first {
		return p.rel
	}
	return path.Join(p.path, p.rel)
}

// locate finds the folder that contains name, by its text alone.
func (r *Roots) locate(name string) (place, error) {
	switch {
	case name == "":
		return place{}, tool.Errorf(tool.InvalidArgument, "the path is empty").
			WithHint(`"." is the workspace itself`)
	case len(name) > maxName:
		return place{}, tool.Errorf(tool.InvalidArgument, "the path is %d bytes long, the maximum is %d", len(name), maxName)
	case strings.ContainsRune(name, 0):
		return place{}, r.denied(name)
	}
	if path.IsAbs(name) {
		at, ok := r.below(name)
		if !ok {
			return place{}, r.denied(name)
		}
		return at, nil
	}
	rel := path.Clean(name)
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return place{}, r.denied(name)
	}
	return place{r.folders[0], rel}, nil
}

// below finds the innermost folder that contains the absolute path.
func (r *Roots) below(abs string) (place, bool) {
	abs = path.Clean(abs)
	var found place
	for _, f := range r.folders {
		rel, ok := f.cut(abs)
		if ok && (found.folder == nil || len(rel) < len(found.rel)) {
			found = place{f, rel}
		}
	}
	return found, found.folder != nil
}

// cut returns the absolute path relative to the folder.
func (f *folder) cut(abs string) (string, bool) {
	for _, dir := range []string{f.path, f.real} {
		if abs == dir {
			return ".", true
		}
		if rel, ok := strings.CutPrefix(abs, strings.TrimSuffix(dir, "/")+"/"); ok {
			return rel, true
		}
	}
	return "", false
}
