package roots

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// patterns are parsed patterns of names; the last one that matches counts.
type patterns []pattern

type pattern struct {
	parts    []part
	takeBack bool
}

// part is a pattern of one part of a name, folded. Most have no
// wildcards, or one star at an end, which need no more than a comparison.
type part struct {
	glob string
	kind partKind
	text string // without the star
}

type partKind uint8

const (
	anyGlob partKind = iota
	plain
	ending    // *text
	beginning // text*
)

func newPart(glob string) part {
	p := part{glob: glob}
	wild := strings.IndexAny(glob, `*?[\`)
	switch {
	case wild < 0:
		p.kind, p.text = plain, glob
	case wild == len(glob)-1 && glob[wild] == '*':
		p.kind, p.text = beginning, glob[:wild]
	case glob[0] == '*' && !strings.ContainsAny(glob[1:], `*?[\`):
		p.kind, p.text = ending, glob[1:]
	}
	return p
}

func (p part) match(name string) bool {
	switch p.kind {
	case plain:
		return name == p.text
	case ending:
		return strings.HasSuffix(name, p.text)
	case beginning:
		return strings.HasPrefix(name, p.text)
	case anyGlob:
	}
	ok, err := path.Match(p.glob, name)
	return err == nil && ok
}

// parsePatterns reads patterns of the given kind, which is named in the error.
func parsePatterns(kind string, texts []string) (patterns, error) {
	var all patterns
	for _, text := range texts {
		glob, takeBack := strings.CutPrefix(text, "!")
		glob = foldName(strings.Trim(glob, "/"))
		p := pattern{takeBack: takeBack}
		for one := range strings.SplitSeq(glob, "/") {
			if _, err := path.Match(one, ""); err != nil || one == "" {
				return nil, fmt.Errorf("%s pattern %q is not a glob, expected names with *, ? and [a-z] such as \"*.key\"", kind, text)
			}
			p.parts = append(p.parts, newPart(one))
		}
		all = append(all, p)
	}
	return all, nil
}

// match reports whether rel, or a directory that it is in, is covered.
func (all patterns) match(rel string) bool {
	c := all.top()
	for name := range strings.SplitSeq(rel, "/") {
		c = c.enter(name)
	}
	return c.covered()
}

// coverage is what the patterns say of a path, and what they need to know of it
// to go on with what is below.
type coverage struct {
	all patterns
	dir string // folded
	// last is the last pattern that matches the path, or a directory that it is
	// in; -1 if none does.
	last int
}

// top is the coverage of a folder, which no pattern matches.
func (all patterns) top() coverage { return coverage{all: all, last: -1} }

// enter is the coverage of what has the given name in a directory.
func (c coverage) enter(name string) coverage {
	name = foldName(name)
	return coverage{c.all, below(c.dir, name), c.lastFor(name)}
}

func (c coverage) covered() bool { return c.last >= 0 && !c.all[c.last].takeBack }

// covers reports whether what has the given name in the directory is covered.
func (c coverage) covers(name string) bool {
	c.last = c.lastFor(foldName(name))
	return c.covered()
}

func (c coverage) lastFor(name string) int {
	for i := len(c.all) - 1; i > c.last; i-- {
		if c.all[i].endsAt(c.dir, name) {
			return i
		}
	}
	return c.last
}

// endsAt reports whether the pattern matches the end of the path of a name in a
// directory.
func (p pattern) endsAt(dir, name string) bool {
	for i, part := range slices.Backward(p.parts) {
		if !part.match(name) {
			return false
		}
		if i > 0 && dir == "" {
			return false
		}
		slash := strings.LastIndexByte(dir, '/')
		dir, name = dir[:max(slash, 0)], dir[slash+1:]
	}
	return true
}

// below is [path.Join] for a name that needs no cleaning.
func below(dir, name string) string {
	if dir == "" || dir == "." {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}
