package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Profile describes a program and its confinement.
type Profile struct {
	// Binary is the program, opened for reading: an executable for this machine, or a
	// script with a "#!" line. It is executed by its descriptor, so that the file that was
	// hashed is the file that runs. Launch does not close it. A script has its own file
	// open as descriptor 3, from which its interpreter reads it.
	Binary *os.File
	// Path is the program's configured path. It becomes argv[0].
	Path string
	// Args are the arguments after argv[0].
	Args []string
	// Env is the whole environment; nothing is inherited.
	Env []string
	// ProxyPort is the port of 127.0.0.1 on which the host listens for the program with
	// [NetworkProxy]. It then gets ProxyEnv besides Env.
	ProxyPort int
	ProxyEnv  []string
	// Dir is the working directory, an absolute path; "" means "/".
	Dir string
	// Name identifies the program in reports and groups; "" is the name of the file. A
	// root host gives each name its own user.
	Name string
	// Limits bound each process.
	Limits Limits
	// Confinement isolates it from the machine.
	Confinement Confinement
	// Workspace is the absolute path of the workspace; "" means none.
	Workspace string
	// Own lists existing directories that the program may change regardless of the Confinement.
	// If the program runs as another user, that user becomes their owner.
	Own []string
	// Tmp is an existing directory for its temporary files, besides those of the system; ""
	// means none. With namespaces it is in memory, and the host does not see its files.
	Tmp string
	// Hidden are directories that it must not see, except its own directories in them.
	Hidden []string
	// Shared are directories that other programs may change. A listed path in one of them
	// must not lead out of it.
	Shared []string
	// Protected are paths that it must not change, remove or rename.
	Protected []string
	// Forbidden are patterns of paths that it must not see; see package forbidden. With
	// mounts, paths that exist when it starts are hidden. Patterns with wildcards are
	// searched in the workspace and in the listed directories of the Confinement.
	Forbidden []string

	// found are the paths of the workspace that presets protect; there may be more below
	// the unsearched directories.
	found, unsearched []string
	// forbidden and beyond are the same for forbidden paths. The files below unnoted are
	// hidden, but may have hard links that are not.
	forbidden, beyond, unnoted []string
}

// check refuses a profile that no launcher could start, so that the operator gets a reason
// instead of an error number.
func (p *Profile) check() error {
	if p.Binary == nil {
		return errors.New("no binary is open")
	}
	if p.Path == "" {
		return errors.New("the program has no path")
	}
	if p.Confinement.Network == NetworkProxy && p.Confinement.Isolation == Off {
		return errors.New("a program without isolation cannot be kept to a proxy")
	}
	if p.Dir != "" && !filepath.IsAbs(p.Dir) {
		return fmt.Errorf("the working directory %q is not an absolute path", p.Dir)
	}
	if strings.ContainsRune(p.Path, 0) || strings.ContainsRune(p.Dir, 0) {
		return errors.New("a path contains a NUL byte")
	}
	for i, arg := range p.Args {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("argument %d contains a NUL byte", i+1)
		}
	}
	for _, entry := range slices.Concat(p.Env, p.ProxyEnv) {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.ContainsRune(name, 0) {
			return fmt.Errorf("environment entry %q is not NAME=value", name)
		}
		if strings.ContainsRune(value, 0) {
			return fmt.Errorf("environment variable %s contains a NUL byte", name)
		}
	}
	if err := p.Limits.check(); err != nil {
		return err
	}
	if err := p.checkPaths(); err != nil {
		return err
	}
	info, err := p.Binary.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is not a regular file but %s; give the path of the program itself", kindOf(info.Mode()))
	}
	return nil
}

// checkPaths refuses paths that are ambiguous, and searches for protected and forbidden
// paths.
func (p *Profile) checkPaths() error {
	c := &p.Confinement
	for _, list := range []struct {
		what  string
		paths []string
	}{
		{"read", c.Read},
		{"write", c.Write},
		{"exec", withoutWords(c.Exec)},
		{"own", p.Own},
		{"hidden", p.Hidden},
		{"shared", p.Shared},
		{"protected", p.Protected},
		{"workspace", nonEmpty(p.Workspace)},
		{"tmp", nonEmpty(p.Tmp)},
	} {
		for _, path := range list.paths {
			if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0) {
				return fmt.Errorf("the %s path %q is not absolute and clean", list.what, path)
			}
		}
	}
	for _, path := range c.Protect {
		if !filepath.IsLocal(path) || filepath.Clean(path) == "." {
			return fmt.Errorf("the protected path %q is not below the workspace", path)
		}
	}
	if p.Workspace != "" && anyWithin(p.writable(), p.Workspace) {
		p.found, p.unsearched = searchProtected(p.Workspace, c.Presets, maxSearched)
	}
	p.forbidden, p.beyond, p.unnoted = p.searchForbidden(maxSearched)
	for _, path := range p.protected() {
		// Nothing can be mounted on a path that the host cannot examine.
		if _, err := os.Lstat(path); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return fmt.Errorf("the protected path cannot be protected: %w", err)
		}
	}
	return p.checkLinks()
}

// protected returns the absolute paths that it must not change.
func (p *Profile) protected() []string {
	var all []string
	for _, dir := range nonEmpty(p.Workspace) {
		for _, path := range p.Confinement.Protect {
			all = append(all, filepath.Join(dir, path))
		}
	}
	return slices.Concat(all, p.found, p.Protected)
}

// writable returns the directories that it may change, besides its own.
func (p *Profile) writable() []string {
	writable := slices.Clone(p.Confinement.Write)
	if p.Confinement.Workspace == WriteWorkspace {
		writable = append(writable, nonEmpty(p.Workspace)...)
	}
	return writable
}

// checkLinks refuses listed paths that lead into hidden directories, and symbolic links
// that a program could have changed earlier.
func (p *Profile) checkLinks() error {
	c := &p.Confinement
	writable := append(p.writable(), p.Shared...)
	for _, path := range slices.Concat(c.Read, c.Write, withoutWords(c.Exec), nonEmpty(p.Workspace)) {
		target := realPath(path)
		for _, hidden := range p.Hidden {
			for _, hidden := range []string{hidden, realPath(hidden)} {
				if within(hidden, path) || within(path, hidden) || within(hidden, target) || within(target, hidden) {
					return fmt.Errorf("the path %s would reveal %s, which no program may see", path, hidden)
				}
			}
		}
		for _, dir := range writable {
			inside := path != dir && (within(path, dir) || within(path, realPath(dir)) || within(placeOf(path), realPath(dir)))
			if inside && !within(target, realPath(dir)) {
				return fmt.Errorf("the path %s leads out of %s, where a program can change its target", path, dir)
			}
		}
	}
	return nil
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func nonEmpty(path string) []string {
	if path == "" {
		return nil
	}
	return []string{path}
}

func kindOf(mode os.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&os.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&os.ModeSocket != 0:
		return "a socket"
	case mode&os.ModeDevice != 0:
		return "a device"
	default:
		return mode.Type().String()
	}
}
