// Package gitignore tells which files git would ignore, by the text of .gitignore files. If git
// and its manual disagree, the package follows git; its tests compare it with git.
//
// It reads no files. Time and memory are bounded: a look-up takes at most the length of
// the path times that of the patterns, and [MaxSize] and [MaxPatterns] bound the memory.
package gitignore

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const (
	// MaxSize is the maximum size of a file of patterns.
	MaxSize = 1 << 20
	// MaxPatterns is how many patterns can apply in one directory.
	MaxPatterns = 100_000
)

// Verdict is the meaning of patterns for a path.
type Verdict int

// The verdicts of [Rules.Match].
const (
	None    Verdict = iota // no pattern matches
	Ignore                 // the last pattern that matches ignores it
	Include                // the last pattern that matches begins with "!"
)

// Rules are the patterns of one file. They do not change after [Parse], and are safe for
// concurrent use.
type Rules struct {
	include []bool // of each pattern: whether it begins with "!"

	// The patterns by kind. Most need one look into a table, so many names cost little more than
	// a few.
	names, suffixes, paths table
	// lengths are the lengths of the suffixes.
	lengths []int
	// nameGlobs and pathGlobs are the other patterns, in the order of the file.
	nameGlobs, pathGlobs []glob
}

// last is the number of the last pattern of a kind: of patterns for directories only, and of
// patterns that match files too; -1 if there is none.
type last struct{ dir, any int }

// table maps the text that a pattern without wildcards matches to the pattern.
type table map[string]last

func (t table) add(text string, number int, dirOnly bool) {
	found, ok := t[text]
	if !ok {
		found = last{-1, -1}
	}
	if dirOnly {
		found.dir = number
	} else {
		found.any = number
	}
	t[text] = found
}

// find returns the number of the last pattern for text, or -1.
func (t table) find(text string, dir bool) int {
	found, ok := t[text]
	switch {
	case !ok:
		return -1
	case dir:
		return max(found.dir, found.any)
	default:
		return found.any
	}
}

// Parse parses a .gitignore file. Every text is valid; the error says that it exceeds
// [MaxSize] or [MaxPatterns].
func Parse(text []byte) (*Rules, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(text), MaxSize)
	}
	r := &Rules{names: table{}, suffixes: table{}, paths: table{}}
	text = bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF"))
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		line, _, _ = bytes.Cut(line, []byte{0}) // to git, a string ends here
		r.add(string(trimSpaces(line)))
		if len(r.include) > MaxPatterns {
			return nil, fmt.Errorf("it has more than %d patterns", MaxPatterns)
		}
	}
	return r, nil
}

// trimSpaces removes spaces at the end of a line, except those after a backslash.
func trimSpaces(line []byte) []byte {
	end := 0 // after the last character that stays
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			if i++; i == len(line) {
				return line
			}
		}
		end = i + 1
	}
	return line[:end]
}

// special are the characters with a special meaning.
const special = `*?[\`

// add adds the pattern of one line.
func (r *Rules) add(pattern string) {
	pattern, include := strings.CutPrefix(pattern, "!")
	pattern, dirOnly := strings.CutSuffix(pattern, "/")
	if pattern == "" {
		return
	}
	number := len(r.include)
	r.include = append(r.include, include)
	isPath := strings.Contains(pattern, "/")
	pattern = strings.TrimPrefix(pattern, "/")
	plain := !strings.ContainsAny(pattern, special)
	switch {
	case plain && isPath:
		r.paths.add(pattern, number, dirOnly)
	case plain:
		r.names.add(pattern, number, dirOnly)
	case !isPath && pattern[0] == '*' && !strings.ContainsAny(pattern[1:], special):
		r.addSuffix(pattern[1:], number, dirOnly)
	default:
		g, ok := parseGlob(pattern)
		if !ok {
			return // it matches nothing
		}
		g.number, g.dirOnly = number, dirOnly
		if isPath {
			r.pathGlobs = append(r.pathGlobs, g)
		} else {
			r.nameGlobs = append(r.nameGlobs, g)
		}
	}
}

func (r *Rules) addSuffix(suffix string, number int, dirOnly bool) {
	r.suffixes.add(suffix, number, dirOnly)
	if !slices.Contains(r.lengths, len(suffix)) {
		r.lengths = append(r.lengths, len(suffix))
	}
}

// Match returns the verdict on a path, relative to the directory of the file, with slashes. It
// does not check the directories above: everything in an ignored directory is ignored,
// regardless of the patterns.
func (r *Rules) Match(path string, dir bool) Verdict {
	name := path[strings.LastIndexByte(path, '/')+1:]
	best := max(r.names.find(name, dir), r.paths.find(path, dir))
	for _, n := range r.lengths {
		if n <= len(name) {
			best = max(best, r.suffixes.find(name[len(name)-n:], dir))
		}
	}
	best = lastMatch(r.nameGlobs, name, dir, best)
	best = lastMatch(r.pathGlobs, path, dir, best)
	switch {
	case best < 0:
		return None
	case r.include[best]:
		return Include
	default:
		return Ignore
	}
}

// lastMatch returns the number of the last pattern that matches, if it is above
// best.
func lastMatch(globs []glob, text string, dir bool, best int) int {
	for i := len(globs) - 1; i >= 0 && globs[i].number > best; i-- {
		if g := &globs[i]; (dir || !g.dirOnly) && g.match(text) {
			return g.number
		}
	}
	return best
}
