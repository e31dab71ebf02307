package sensitive

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/protect"
)

// Patterns are parsed patterns of names. The last match decides.
type Patterns []pattern

type pattern struct {
	text     string // as it was given
	parts    []part
	takeBack bool
	anchored bool // it is an absolute path
}

// part is a pattern for one part of a name, folded. Most patterns have no wildcards, or one star
// at an end, so that a comparison is enough.
type part struct {
	glob string
	kind partKind
	text string // without the star
	// tokens are those of glob.
	tokens tokens
}

type partKind uint8

const (
	anyGlob partKind = iota
	plain
	ending    // *text
	beginning // text*
)

func newPart(glob string) part {
	p := part{glob: glob, tokens: tokensOf(glob)}
	wild := strings.IndexAny(glob, `*?[\`)
	name, isName := literal(glob)
	switch {
	case isName:
		p.kind, p.text = plain, protect.Name(name)
	case wild == len(glob)-1 && glob[wild] == '*':
		p.kind, p.text = beginning, glob[:wild]
	case glob[0] == '*' && !strings.ContainsAny(glob[1:], `*?[\`):
		p.kind, p.text = ending, glob[1:]
	}
	return p
}

// literal returns the only name that a glob matches, if there are no wildcards in it but
// escaped ones.
func literal(glob string) (name string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case strings.IndexByte("*?[", c) >= 0:
			return "", false
		case c == '\\' && i+1 < len(glob):
			i++
		}
		b.WriteByte(glob[i])
	}
	return b.String(), true
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

// Parse parses patterns. A pattern is compared with the parts of a path, ignoring
// case, at any depth: ".ssh" covers ".ssh" in every folder and everything below it, and
// ".docker/config.json" covers the file in every ".docker". A leading "**/" has no
// effect. A part may contain the wildcards of [path.Match]. A pattern that begins with
// "!" excludes paths that an earlier pattern covers, and a pattern that begins with "/"
// is an absolute path.
func Parse(texts []string) (Patterns, error) {
	var all Patterns
	for _, text := range texts {
		glob, takeBack := strings.CutPrefix(text, "!")
		rest, anchored := strings.CutPrefix(glob, "/")
		if !anchored {
			rest = strings.TrimPrefix(rest, "**/")
		}
		rest = protect.Fold(strings.TrimRight(rest, "/"))
		p := pattern{text: text, takeBack: takeBack, anchored: anchored}
		for more := true; more; {
			var one string
			one, rest, more = strings.Cut(rest, "/")
			// "**" in the middle would match one name only.
			if _, err := path.Match(one, ""); err != nil || one == "" || one == "**" && more {
				return nil, fmt.Errorf("pattern %q is not a glob, expected names with *, ? and [a-z] such as \"*.key\"", text)
			}
			p.parts = append(p.parts, newPart(one))
		}
		all = append(all, p)
	}
	return all, nil
}

// Match reports whether a name, or a directory above it, is covered. An absolute
// pattern is compared with the whole name.
func (all Patterns) Match(name string) bool {
	_, ok := all.Find("/"+name, "")
	return ok
}

// Coverage is the state of the patterns at a path, from which [Coverage.Enter] derives
// the state below it.
type Coverage struct {
	all   Patterns
	dir   string // folded, each name after a slash
	depth int    // how many names dir has
	above int    // how many of them patterns of names do not count for
	// last is the last pattern that matches the path, or a directory that it is
	// in; -1 if none does.
	last int
}

// In returns the coverage of a folder, an absolute and clean path. Patterns of names do
// not apply to the folder itself and the directories above it.
func (all Patterns) In(folder string) Coverage {
	return all.within(folder).Enter(strings.Split(strings.Trim(folder, "/"), "/")...)
}

// within is the coverage of the root directory, for paths in a folder.
func (all Patterns) within(folder string) Coverage {
	c := Coverage{all: all, last: -1}
	if folder = strings.Trim(folder, "/"); folder != "" {
		c.above = strings.Count(folder, "/") + 1
	}
	return c
}

// Enter returns the coverage of the given name in the directory. Of several names, each
// is in the one before it.
func (c Coverage) Enter(names ...string) Coverage {
	for _, name := range names {
		if name == "" || name == "." {
			continue
		}
		name = protect.Name(name)
		c.last = c.lastFor(name)
		c.dir, c.depth = c.dir+"/"+name, c.depth+1
	}
	return c
}

// Covered reports whether the path is covered.
func (c Coverage) Covered() bool { return c.last >= 0 && !c.all[c.last].takeBack }

// Covers reports whether the given name in the directory is covered.
func (c Coverage) Covers(name string) bool {
	c.last = c.lastFor(protect.Name(name))
	return c.Covered()
}

func (c Coverage) lastFor(name string) int {
	depth := c.depth + 1
	for i := len(c.all) - 1; i > c.last; i-- {
		p := &c.all[i]
		if (p.anchored && depth == len(p.parts) || !p.anchored && depth > c.above) && p.endsAt(c.dir, name) {
			return i
		}
	}
	return c.last
}

// Find returns the pattern that covers an absolute, clean path or a directory above it.
// Patterns of names do not apply to folder and the directories above it. folder is "",
// the path, or a directory above it.
func (all Patterns) Find(abs, folder string) (text string, ok bool) {
	c := all.within(folder).Enter(strings.Split(abs, "/")...)
	if !c.Covered() {
		return "", false
	}
	return all[c.last].text, true
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
