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

// protectOf returns the patterns of the names that words of package protect stand
// for. [protect.Git] and [protect.Hooks] stand for all that belongs to git, too:
// hooks, the configuration, and every file that leads to them can make git run
// programs.
func protectOf(words []string) []string {
	names := protect.Names(words)
	if len(protect.GitNames(words)) > 0 {
		names = append(names, protect.GitDir)
	}
	return append([]string{}, names...)
}

// parseProtect reads patterns of names. Below the folders there are no absolute paths: a
// pattern that begins with "/" is one of names like others.
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
	given    []string // absolute
	once     sync.Once

	// What follows is found when something is changed for the first time.
	paths []protectedPath
	// files are those that the paths lead to, and above the directories that
	// they are in: a file system that folds case, or that is mounted twice,
	// has other spellings for them.
	files, above []fs.FileInfo
}

// protectedPath is one spelling of a protected path.
type protectedPath struct {
	path string
	// missing says that there is no such file, whose identity could be
	// compared: then case is ignored.
	missing bool
}

// look finds what the given paths lead to.
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

// spellings returns the absolute path, and what it reads like each time that a
// symbolic link in it is followed.
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

// covers reports whether the absolute path, in which no link is left, is
// protected by its text, or is below what is.
func (p *protection) covers(abs string) bool {
	p.once.Do(p.look)
	for _, one := range p.paths {
		if below, exact := beneath(one.path, abs, one.missing); below || exact {
			return true
		}
	}
	return false
}

// holds reports whether something protected is below the absolute path.
func (p *protection) holds(abs string) bool {
	p.once.Do(p.look)
	for _, one := range p.paths {
		if below, _ := beneath(abs, one.path, one.missing); below {
			return true
		}
	}
	return false
}

// is reports whether the file is one that is protected.
func (p *protection) is(info fs.FileInfo) bool {
	p.once.Do(p.look)
	return contains(p.files, info)
}

// isAbove reports whether the file is a directory above one.
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

// beneath reports whether abs lies below dir, or is dir itself.
func beneath(dir, abs string, fold bool) (below, exact bool) {
	if fold {
		dir, abs = protect.Fold(dir), protect.Fold(abs)
	}
	return strings.HasPrefix(abs, strings.TrimSuffix(dir, "/")+"/") && abs != dir, abs == dir
}
