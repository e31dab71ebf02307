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

// maxNoted bounds the files that are looked at for other names, in directories that are
// hidden as a whole.
const maxNoted = 100_000

// hiding looks for what is forbidden where a program may look, the directories near the
// top first, and those last that programs fill. It follows no link.
type hiding struct {
	patterns forbidden.Patterns
	folders  []string // in which patterns with wildcards are looked for
	own      []string // the program's, which are not hidden
	needed   []string // what it cannot do without, though all in it may be hidden
	skipped  []string // what it does not see
	bound    int      // of searched
	names    int      // of noted

	found    []string
	left     []string // directories in which more is forbidden than can be hidden
	unread   []string // folders that cannot be read
	searched int
	waiting  []string // directories to look at
	filled   []string // those to look at last
	noted    int
	unnoted  []string // hidden directories in which not every file was looked at for other names
	// linked are the files that are forbidden and have other names, hard links.
	linked map[fileNumber]bool
}

// fileNumber tells files apart that are there at the same time.
type fileNumber struct{ device, number uint64 }

// searchForbidden returns the paths that the program must not see, with those of patterns
// without wildcards that may come to be. It looks at no more directories than bound says,
// and returns those below which it has not looked, and the hidden directories of whose
// files it does not know all other names.
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

// lookedInto are the directories of others that the program may look into.
func (p *Profile) lookedInto() []string {
	c := &p.Confinement
	dirs := slices.Concat(c.Read, c.Write, withoutWords(c.Exec))
	if c.Workspace != NoWorkspace || slices.Contains(c.Exec, ExecWorkspace) {
		dirs = append(dirs, nonEmpty(p.Workspace)...)
	}
	return resolved(dirs)
}

// starts returns where to begin: of each folder the part that a pattern with wildcards is
// about.
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

// search calls look for each directory that waits.
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

// wait has a directory be looked at. A repository's own holds many, and hardly ever what
// is meant.
func (s *hiding) wait(dir string) {
	switch name := filepath.Base(dir); {
	case anyWithin(s.skipped, dir), anyWithin(s.own, dir), anyWithin(s.found, dir):
	case name == protect.GitDir, slices.Contains(filledByPrograms(), name):
		s.filled = append(s.filled, dir)
	default:
		s.waiting = append(s.waiting, dir)
	}
}

// directory looks for what is forbidden in a directory. One that cannot be read is hidden
// as a whole: a program may have closed it when it ran before. A folder is not.
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

// cover hides a path. Where something lies in it that the program cannot do without, that
// stays, and all else is hidden.
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

// hide notes a path that is hidden.
func (s *hiding) hide(path string) {
	switch {
	case slices.Contains(s.found, path):
	case len(s.found) == maxFound:
		s.left = append(s.left, filepath.Dir(path))
	default:
		s.found = append(s.found, path)
	}
}

// noteNames notes the files at and below a path that have other names.
func (s *hiding) noteNames(path string) {
	_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if s.noted++; s.noted > s.names {
			s.unnoted = append(s.unnoted, path)
			return fs.SkipAll
		}
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is hidden all the same
		}
		if number, linked := numberOf(entry); linked {
			s.linked[number] = true
		}
		return nil
	})
}

// otherNames hides the files in a directory that are forbidden by another name.
func (s *hiding) otherNames(dir string) {
	entries, _ := os.ReadDir(dir) // what cannot be read is hidden
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if entry.IsDir() {
			s.wait(path)
		} else if number, linked := numberOf(entry); linked && s.linked[number] {
			s.hide(path)
		}
	}
}

// numberOf returns the number of a file, and whether it has several names.
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

// masked returns what of what is forbidden lies where the program sees it. There may be
// nothing yet.
func (p *plan) masked() []string {
	if !p.on[LayerMounts] || len(p.profile.forbidden) == 0 {
		return nil
	}
	if !p.minimal && !p.on[LayerLandlock] {
		return p.profile.forbidden // it sees all
	}
	f := p.files()
	seen := resolved(slices.Concat(f.read, f.exec, f.write, f.mapped))
	return slices.DeleteFunc(slices.Clone(p.profile.forbidden), func(path string) bool {
		return !slices.ContainsFunc(seen, func(dir string) bool { return within(path, dir) || within(dir, path) })
	})
}

// byChecksOnly reports whether nothing but the checks of the host and of the program keep
// it from what is forbidden.
func (p *plan) byChecksOnly() bool {
	return !p.on[LayerMounts] && len(p.profile.Forbidden) > 0 && (len(p.profile.lookedInto()) > 0 || p.open())
}
