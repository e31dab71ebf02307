package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/toolhost/toolhost/sdk/forbidden"
	"github.com/toolhost/toolhost/sdk/protect"
)

// maxNoted bounds the files in hidden directories that are checked for hard links.
const maxNoted = 100_000

// hiding searches the directories that a program may read for forbidden paths, those near
// the top first, and those that programs fill last. It follows no link.
type hiding struct {
	patterns forbidden.Patterns
	folders  []string // where patterns with wildcards are searched
	own      []string // the program's own directories, which stay visible
	needed   []string // directories that must exist, even if all files in them are hidden
	skipped  []string // directories that the program does not see anyway
	bound    int      // of searched
	names    int      // of noted

	found    []string
	left     []string // directories with more forbidden paths than can be hidden
	unread   []string // folders that cannot be read
	searched int
	waiting  []string // directories to search
	filled   []string // directories to search last
	noted    int
	unnoted  []string // hidden directories whose files were not all checked for hard links
	// linked are the forbidden files that have further hard links.
	linked map[fileNumber]bool
}

// fileNumber identifies a file among those that exist at the same time.
type fileNumber struct{ device, number uint64 }

// searchForbidden returns the paths that the program must not see, including paths of
// patterns without wildcards that do not exist yet. It searches at most bound directories.
// It also returns the directories that it did not search, and the hidden directories whose
// hard links it does not all know.
func (p *Profile) searchForbidden(bound int) (found, unsearched, unnoted []string) {
	if len(p.Forbidden) == 0 {
		return nil, nil, nil
	}
	own := resolved(slices.Concat(p.Own, nonEmpty(p.Tmp)))
	s := &hiding{
		patterns: p.Forbidden, folders: p.lookedInto(), own: own, needed: append(own, resolved(nonEmpty(p.Workspace))...),
		skipped: resolved(p.Hidden), bound: bound, names: maxNoted, linked: map[fileNumber]bool{},
	}
	for _, pattern := range p.Forbidden {
		if dir, _ := forbidden.Split(pattern); s.patterns.Match(dir) {
			s.cover(placeOf(dir))
		}
	}
	s.waiting = s.starts()
	if s.search(s.directory); len(s.linked) > 0 && len(s.waiting) == 0 {
		s.searched = 0
		for _, folder := range s.folders {
			if !anyWithin(s.waiting, folder) {
				s.waiting = append(s.waiting, folder)
			}
		}
		s.search(s.otherNames)
	}
	for _, path := range unique(s.found) {
		if !anyWithin(found, path) {
			found = append(found, path)
		}
	}
	return found, slices.Concat(unique(s.left), s.unread, s.waiting, s.filled), s.unnoted
}

// lookedInto returns the directories of others that the program may read.
func (p *Profile) lookedInto() []string {
	c := &p.Confinement
	dirs := slices.Concat(c.Read, c.Write, withoutWords(c.Exec))
	if c.Workspace != NoWorkspace || slices.Contains(c.Exec, ExecWorkspace) {
		dirs = append(dirs, nonEmpty(p.Workspace)...)
	}
	return resolved(dirs)
}

// starts returns the directories where the search begins: the part of each folder that a
// pattern with wildcards covers.
func (s *hiding) starts() []string {
	var all []string
	for _, folder := range s.folders {
		for _, pattern := range s.patterns {
			switch dir, rest := forbidden.Split(pattern); {
			case rest == "":
			case within(folder, dir):
				all = append(all, folder)
			case within(dir, folder):
				all = append(all, realPath(dir))
			}
		}
	}
	var starts []string
	for _, start := range unique(all) {
		info, err := os.Lstat(start)
		switch {
		case err != nil || anyWithin(starts, start):
		case s.patterns.Covers(start):
			s.cover(start)
		case info.IsDir():
			starts = append(starts, start)
		}
	}
	return starts
}

// search calls look for each waiting directory.
func (s *hiding) search(look func(dir string)) {
	for len(s.waiting)+len(s.filled) > 0 {
		if len(s.waiting) == 0 {
			s.waiting, s.filled = s.filled, nil
		}
		if s.searched++; s.searched > s.bound || len(s.left) > 0 {
			return
		}
		dir := s.waiting[0]
		s.waiting = s.waiting[1:]
		look(dir)
	}
}

// wait adds a directory to the search. A .git directory comes last: it holds many
// directories, and hardly ever a forbidden file.
func (s *hiding) wait(dir string) {
	switch name := filepath.Base(dir); {
	case anyWithin(s.skipped, dir), anyWithin(s.own, dir), anyWithin(s.found, dir):
	case name == protect.GitDir, slices.Contains(filledByPrograms(), name):
		s.filled = append(s.filled, dir)
	default:
		s.waiting = append(s.waiting, dir)
	}
}

// directory searches one directory. A directory that cannot be read is hidden as a whole,
// since the program may have closed it earlier; a folder is not.
func (s *hiding) directory(dir string) {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
	case slices.Contains(s.folders, dir):
		s.unread = append(s.unread, dir)
	default:
		s.cover(dir)
		return
	}
	for _, entry := range entries {
		switch path := filepath.Join(dir, entry.Name()); {
		case s.patterns.Match(path):
			s.cover(path)
		case entry.IsDir():
			s.wait(path)
		}
	}
}

// cover hides a path, except the directories in it that the program needs.
func (s *hiding) cover(path string) {
	if anyWithin(s.own, path) || anyWithin(s.skipped, path) {
		return
	}
	if !slices.ContainsFunc(s.needed, func(dir string) bool { return within(dir, path) }) {
		s.noteNames(path)
		s.hide(path)
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		s.left = append(s.left, path)
	}
	for _, entry := range entries {
		if len(s.left) > 0 {
			return
		}
		s.cover(filepath.Join(path, entry.Name()))
	}
}

// hide adds a path to the hidden ones.
func (s *hiding) hide(path string) {
	switch {
	case slices.Contains(s.found, path):
	case len(s.found) == maxFound:
		s.left = append(s.left, filepath.Dir(path))
	default:
		s.found = append(s.found, path)
	}
}

// noteNames records the files at and below a path that have further hard links.
func (s *hiding) noteNames(path string) {
	_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if s.noted++; s.noted > s.names {
			s.unnoted = append(s.unnoted, path)
			return fs.SkipAll
		}
		if err != nil {
			return nil //nolint:nilerr // an unreadable file is hidden, too
		}
		if number, linked := numberOf(entry); linked {
			s.linked[number] = true
		}
		return nil
	})
}

// otherNames hides the hard links in a directory to forbidden files.
func (s *hiding) otherNames(dir string) {
	entries, _ := os.ReadDir(dir) // an unreadable directory is hidden
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if entry.IsDir() {
			s.wait(path)
		} else if number, linked := numberOf(entry); linked && s.linked[number] {
			s.hide(path)
		}
	}
}

// numberOf returns the number of a file, and whether it has several hard links.
func numberOf(entry fs.DirEntry) (number fileNumber, linked bool) {
	if !entry.Type().IsRegular() {
		return fileNumber{}, false
	}
	info, err := entry.Info()
	if err != nil {
		return fileNumber{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileNumber{}, false
	}
	return fileNumber{uint64(stat.Dev), stat.Ino}, stat.Nlink > 1 //nolint:unconvert // it differs between systems
}

// masked returns the forbidden paths that the program would see. They may not exist yet.
func (p *plan) masked() []string {
	if !p.on[LayerMounts] || len(p.profile.forbidden) == 0 {
		return nil
	}
	if !p.minimal && !p.on[LayerLandlock] {
		return p.profile.forbidden // the program sees everything
	}
	f := p.files()
	seen := resolved(slices.Concat(f.read, f.exec, f.write, f.mapped))
	return slices.DeleteFunc(slices.Clone(p.profile.forbidden), func(path string) bool {
		return !slices.ContainsFunc(seen, func(dir string) bool { return within(path, dir) || within(dir, path) })
	})
}

// byChecksOnly reports whether only the checks of the host and of the program keep it from
// forbidden paths.
func (p *plan) byChecksOnly() bool {
	return !p.on[LayerMounts] && len(p.profile.Forbidden) > 0 && (len(p.profile.lookedInto()) > 0 || p.open())
}
