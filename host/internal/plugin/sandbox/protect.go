package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/sdk/protect"
)

// Bounds of the search for protected names. Files beyond them are not mounted read-only.
const (
	maxSearched = 20_000 // directories
	maxFound    = 500    // paths
)

// search looks in a workspace for files and directories whose names are protected by
// presets, in directories near its top first, and in those that programs fill last. It
// follows no link.
type search struct {
	names, inGit []string
	found        []string
	bound        int // of searched
	searched     int
	tooMuch      bool
	waiting      []string // directories to search
	inner        []string // directories that may hold submodules
	filled       []string // directories to search last
}

// filledByPrograms returns names of directories that package managers and compilers fill.
// They hold many files, and hardly ever a repository.
func filledByPrograms() []string {
	return []string{
		"node_modules", "bower_components", "vendor", "site-packages", ".venv", "venv", ".tox", "__pycache__", ".cache", ".gradle", ".terraform", "target",
	}
}

// searchProtected returns the protected paths that exist, and those at the top of the
// workspace that do not exist yet. It searches at most bound directories, and also returns
// the directories that it did not search.
func searchProtected(workspace string, presets []string, bound int) (found, unsearched []string) {
	s := &search{names: protect.Names(presets), inGit: protect.GitNames(presets), waiting: []string{workspace}, bound: bound}
	if len(s.names)+len(s.inGit) == 0 {
		return nil, nil
	}
	for _, name := range s.names {
		s.found = append(s.found, filepath.Join(workspace, name))
	}
	for _, name := range s.inGit {
		s.found = append(s.found, filepath.Join(workspace, protect.GitDir, name))
	}
	for len(s.waiting)+len(s.filled) > 0 && !s.tooMuch {
		if len(s.waiting) == 0 {
			s.waiting, s.filled = s.filled, nil
		}
		dir := s.waiting[0]
		s.directory(dir)
		for len(s.inner) > 0 && !s.tooMuch {
			s.submodule(s.inner[0])
			if !s.tooMuch {
				s.inner = s.inner[1:]
			}
		}
		if !s.tooMuch {
			s.waiting = s.waiting[1:]
		}
	}
	slices.Sort(s.found)
	return slices.Compact(s.found), slices.Concat(s.inner, s.waiting, s.filled)
}

// read returns the entries of a directory. A directory that cannot be read is protected as
// a whole, since the program may have closed it earlier.
func (s *search) read(dir string) []os.DirEntry {
	if s.searched++; s.searched > s.bound || len(s.found) > maxFound {
		s.tooMuch = true
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.found = append(s.found, dir)
	}
	return entries
}

// directory searches one directory of the workspace.
func (s *search) directory(dir string) {
	entries := s.read(dir)
	if repository(entries) { // a bare one
		s.gitDir(dir, entries)
		return
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch name := protect.Name(entry.Name()); {
		case slices.Contains(s.names, name):
			s.found = append(s.found, path)
		case name == protect.GitDir && len(s.inGit) > 0:
			if entry.IsDir() {
				s.gitDir(path, s.read(path))
			} else {
				s.found = append(s.found, path) // it holds the path of the repository
			}
		case entry.IsDir() && slices.Contains(filledByPrograms(), name):
			s.filled = append(s.filled, path)
		case entry.IsDir() && name != protect.GitDir:
			s.waiting = append(s.waiting, path)
		}
	}
}

// repository reports whether entries are those of a git directory.
func repository(entries []os.DirEntry) bool {
	here := func(name string) bool {
		return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return protect.Name(e.Name()) == name })
	}
	return here("head") && (here("objects") && here("refs") || here("commondir"))
}

// gitDir searches a git directory, and finds those of submodules and worktrees.
func (s *search) gitDir(dir string, entries []os.DirEntry) {
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch name := protect.Name(entry.Name()); {
		case slices.Contains(s.inGit, name):
			s.found = append(s.found, path)
		case entry.IsDir() && (name == "modules" || name == "worktrees"):
			s.inner = append(s.inner, path)
		}
	}
}

// submodule searches a directory that is a git directory, or holds some.
func (s *search) submodule(dir string) {
	entries := s.read(dir)
	if repository(entries) {
		s.gitDir(dir, entries)
		return
	}
	for _, entry := range entries {
		if entry.IsDir() {
			s.inner = append(s.inner, filepath.Join(dir, entry.Name()))
		}
	}
}
