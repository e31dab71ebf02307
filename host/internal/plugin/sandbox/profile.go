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

// Profile says what to start and what it may do.
type Profile struct {
	// Binary is the program, opened for reading: an executable for this
	// machine, or a script with a "#!" line. It is executed by descriptor, so
	// that what was hashed is what runs. Launch does not close it. A script
	// finds itself open as descriptor 3, because its interpreter reads it from
	// there.
	Binary *os.File
	// Path is the program's configured path. It becomes argv[0].
	Path string
	// Args are the arguments after argv[0].
	Args []string
	// Env is the whole environment; nothing is inherited.
	Env []string
	// Dir is the working directory, an absolute path; "" means "/".
	Dir string
	// Name tells programs apart in reports and groups; "" is that of the file. A
	// root host gives each name a user of its own.
	Name string
	// Limits bound what each process may use.
	Limits Limits
	// Confinement says how it is kept apart from the machine.
	Confinement Confinement
	// Workspace is the directory that the Confinement speaks of, an absolute
	// path; "" means that there is none.
	Workspace string
	// Own are directories that it may change, whatever the Confinement says. They
	// exist. If it runs as another user, they become that user's.
	Own []string
	// Tmp is a directory for its temporary files; "" means that it has none but
	// those of the system. It exists. With namespaces it is in memory, and the
	// host does not see what is in it.
	Tmp string
	// Hidden are directories that it must not see, but for what it owns there.
	Hidden []string
	// Shared are directories that other programs may change: a listed path in one must
	// lead to somewhere in it.
	Shared []string
	// Protected are paths that it must not change, remove or rename, wherever they
	// are.
	Protected []string
	// Forbidden are patterns of paths that it must not see, wherever they are, as package
	// forbidden reads them. What is there when it starts is hidden, with mounts; patterns
	// with wildcards are looked for in the workspace and in what the Confinement lists.
	Forbidden []string

	// found are the paths of the workspace whose names the presets stand for; there may
	// be more below what is unsearched.
	found, unsearched []string
	// forbidden and beyond are the same for what it must not see. The files below unnoted
	// are hidden, but may have other names, hard links, that are not.
	forbidden, beyond, unnoted []string
}

// check refuses what no launcher could start, so that the operator reads a
// reason instead of an error number.
func (p *Profile) check() error {
	if p.Binary == nil {
		return errors.New("no binary is open")
	}
	if p.Path == "" {
		return errors.New("the program has no path")
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
	for _, entry := range p.Env {
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

// checkPaths refuses paths that stand for others than they seem to.
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
		// Without a look at it, nothing can be mounted on it.
		if _, err := os.Lstat(path); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return fmt.Errorf("the protected path cannot be protected: %w", err)
		}
	}
	return p.checkLinks()
}

// protected are the absolute paths that it must not change.
func (p *Profile) protected() []string {
	var all []string
	for _, dir := range nonEmpty(p.Workspace) {
		for _, path := range p.Confinement.Protect {
			all = append(all, filepath.Join(dir, path))
		}
	}
	return slices.Concat(all, p.found, p.Protected)
}

// writable are the directories, beside its own, that it may change.
func (p *Profile) writable() []string {
	writable := slices.Clone(p.Confinement.Write)
	if p.Confinement.Workspace == WriteWorkspace {
		writable = append(writable, nonEmpty(p.Workspace)...)
	}
	return writable
}

// checkLinks refuses listed paths that lead where no program may look, or that the
// program itself, or another one, could have lead anywhere when it ran before.
func (p *Profile) checkLinks() error {
	c := &p.Confinement
	writable := append(p.writable(), p.Shared...)
	for _, path := range slices.Concat(c.Read, c.Write, withoutWords(c.Exec), nonEmpty(p.Workspace)) {
		target := realPath(path)
		for _, hidden := range p.Hidden {
			for _, hidden := range []string{hidden, realPath(hidden)} {
				if within(hidden, path) || within(path, hidden) || within(hidden, target) || within(target, hidden) {
					return fmt.Errorf("the path %s would give away %s, which no program may see", path, hidden)
				}
			}
		}
		for _, dir := range writable {
			inside := path != dir && (within(path, dir) || within(path, realPath(dir)) || within(placeOf(path), realPath(dir)))
			if inside && !within(target, realPath(dir)) {
				return fmt.Errorf("the path %s leads out of %s, where a program can change where it leads", path, dir)
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
