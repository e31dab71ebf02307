package clientfile

import (
	"os"
	"path/filepath"
	"strings"
)

// Place is where a person connects a client. Its paths are absolute and have no symbolic links.
type Place struct {
	Dir       string // the current directory
	Workspace string // of the host's configuration
}

// project returns the directory that a client has open: the workspace if the current directory is
// inside, else the current directory.
func (p Place) project() string {
	if inside, err := filepath.Rel(p.Workspace, p.Dir); err == nil && filepath.IsLocal(inside) {
		return p.Workspace
	}
	return p.Dir
}

// repository returns the directory under which Claude Code keeps a project: that of the git
// repository around the current directory, which all worktrees share, else the project.
func (p Place) repository() string {
	for dir := p.Dir; ; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		if info, err := os.Stat(git); err == nil {
			if info.IsDir() {
				return dir
			}
			return mainRepository(dir, git)
		}
		if dir == filepath.Dir(dir) {
			return p.project()
		}
	}
}

// mainRepository returns the directory of the repository to which a worktree belongs. file is the
// worktree's .git; that of a submodule leads to no other directory.
func mainRepository(dir, file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return dir
	}
	git := beside(dir, strings.TrimPrefix(string(text), "gitdir:"))
	text, err = os.ReadFile(filepath.Join(git, "commondir")) //nolint:gosec // only a directory's name is read from it
	if err != nil {
		return dir
	}
	common, err := filepath.EvalSymlinks(beside(git, string(text)))
	switch {
	case err != nil:
		return dir
	case filepath.Base(common) == ".git":
		return filepath.Dir(common)
	}
	return common // a bare repository
}

// beside returns a path in git's files, which may be relative to a directory.
func beside(dir, path string) string {
	path = strings.TrimSpace(path)
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
