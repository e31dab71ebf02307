package roots

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/sensitive"
)

// protectOf returns the patterns for words of package protect. [protect.Git] and
// [protect.Hooks] include git's own files: hooks, configuration and every file that refers to
// them can make git run programs.
func protectOf(words []string) []string {
	names := protect.Names(words)
	if len(protect.GitNames(words)) > 0 {
		names = append(names, protect.GitDir)
	}
	return append([]string{}, names...)
}

// parseProtect parses patterns of names. A leading slash has no meaning, since there are
// no absolute paths below the folders.
func parseProtect(texts []string) (sensitive.Patterns, error) {
	names := make([]string, len(texts))
	for i, text := range texts {
		glob, takeBack := strings.CutPrefix(text, "!")
		if names[i] = strings.Trim(glob, "/"); takeBack {
			names[i] = "!" + names[i]
		}
	}
	all, err := sensitive.Parse(names)
	if err != nil {
		return nil, fmt.Errorf("protect %w", err)
	}
	return all, nil
}

// protection knows which places must not be changed.
type protection struct {
	patterns sensitive.Patterns
	given    []string // absolute paths
	once     sync.Once

	// The fields below are filled on the first change.
	paths []protectedPath
	// files are the files at the paths, and above the directories above them. A file system
	// that ignores case, or is mounted twice, has other names for them.
	files, above []fs.FileInfo
}

// protectedPath is one spelling of a protected path.
type protectedPath struct {
	path string
	// missing means that there is no file whose identity could be compared; then case is
	// ignored.
	missing bool
}

// look examines the given paths.
func (p *protection) look() {
	for _, given := range p.given {
		for _, spelling := range spellings(filepath.Clean(given)) {
			info, err := os.Lstat(spelling)
			p.paths = append(p.paths, protectedPath{spelling, err != nil})
			if err == nil {
				p.files = append(p.files, info)
			}
			for dir := path.Dir(spelling); dir != "/"; dir = path.Dir(dir) {
				if info, err := os.Lstat(dir); err == nil && !contains(p.above, info) {
					p.above = append(p.above, info)
				}
			}
		}
	}
}

// spellings returns the absolute path, and each path that results from following a symbolic
// link in it.
func spellings(abs string) []string {
	all := []string{abs}
	done, pending := "/", strings.Split(abs, "/")
	for links := 0; len(pending) > 0 && links <= maxLinks; {
		part := pending[0]
		pending = pending[1:]
		next := path.Join(done, part)
		target, err := os.Readlink(next)
		if err != nil || part == ".." || part == "." || part == "" {
			done = next
			continue
		}
		links++
		all = append(all, path.Join(next, path.Join(pending...)))
		if path.IsAbs(target) {
			done = "/"
		}
		pending = append(strings.Split(target, "/"), pending...)
		all = append(all, path.Join(done, path.Join(pending...)))
	}
	if done != abs {
		all = append(all, done)
	}
	return all
}

// covers reports whether the text of an absolute path without links is protected or below a
// protected path.
func (p *protection) covers(abs string) bool {
	p.once.Do(p.look)
	for _, one := range p.paths {
		if below, exact := beneath(one.path, abs, one.missing); below || exact {
			return true
		}
	}
	return false
}

// holds reports whether a protected path is below the absolute path.
func (p *protection) holds(abs string) bool {
	p.once.Do(p.look)
	for _, one := range p.paths {
		if below, _ := beneath(abs, one.path, one.missing); below {
			return true
		}
	}
	return false
}

// is reports whether the file is protected.
func (p *protection) is(info fs.FileInfo) bool {
	p.once.Do(p.look)
	return contains(p.files, info)
}

// isAbove reports whether the file is a directory that contains a protected one.
func (p *protection) isAbove(info fs.FileInfo) bool {
	p.once.Do(p.look)
	return contains(p.above, info)
}

func contains(all []fs.FileInfo, info fs.FileInfo) bool {
	for _, one := range all {
		if os.SameFile(one, info) {
			return true
		}
	}
	return false
}

// beneath reports whether abs is below dir, or dir itself.
func beneath(dir, abs string, fold bool) (below, exact bool) {
	if fold {
		dir, abs = protect.Fold(dir), protect.Fold(abs)
	}
	return strings.HasPrefix(abs, strings.TrimSuffix(dir, "/")+"/") && abs != dir, abs == dir
}
