package sensitive

import (
	"strings"

	"github.com/toolhost/toolhost/sdk/protect"
)

// Overlap is the likelihood that a glob of a shell matches a file that is covered.
type Overlap int

const (
	// None means that the glob matches no such file.
	None Overlap = iota
	// Broad means that the glob matches most files.
	Broad
	// Aimed means that the glob contains a part of such a name.
	Aimed
)

// minLiterals is the minimum number of literal characters of a glob that is not broad.
const minLiterals = 2

// Overlap reports whether a glob with the wildcards "*", "?" and "[...]" could match a
// file that a pattern covers, or a file in a directory that a pattern covers. It ignores
// patterns that begin with "!".
func (all Patterns) Overlap(glob string) (text string, how Overlap) {
	names := strings.Split(strings.TrimPrefix(protect.Fold(glob), "/"), "/")
	parts := make([]tokens, len(names))
	for i, name := range names {
		parts[i] = tokensOf(name)
	}
	for i, part := range parts {
		for k := range all {
			p := &all[k]
			if p.takeBack || p.anchored && (!strings.HasPrefix(glob, "/") || len(p.parts) != i+1) || !p.overlaps(parts[:i+1]) {
				continue
			}
			found := Aimed
			if part.literals() < minLiterals || part.open() && p.parts[len(p.parts)-1].kind == ending {
				found = Broad
			}
			if found == Broad && (i < len(parts)-1 || !part.wild()) {
				continue
			}
			if found > how {
				text, how = p.text, found
			}
		}
	}
	return text, how
}

// overlaps reports whether names that end with such parts could match.
func (p *pattern) overlaps(parts []tokens) bool {
	if len(p.parts) > len(parts) {
		return false
	}
	parts = parts[len(parts)-len(p.parts):]
	for i, part := range p.parts {
		own, glob := part.tokens, parts[i]
		// A wildcard does not match the dot of a hidden name.
		if len(glob) == 0 || own[0] == '.' && glob[0] != '.' || !overlap(glob, own) {
			return false
		}
	}
	return true
}

// Touches reports whether a part of a path matches the last part of a pattern. If it
// reports false, [Patterns.Find] finds nothing in the path, in any folder.
func (all Patterns) Touches(name string) bool {
	for part := range strings.SplitSeq(protect.Fold(name), "/") {
		for i := range all {
			if p := &all[i]; !p.takeBack && p.parts[len(p.parts)-1].match(part) {
				return true
			}
		}
	}
	return false
}

// tokens are the characters and wildcards of a glob.
type tokens []rune

const (
	star rune = -1 - iota
	one
)

func tokensOf(glob string) tokens {
	var all tokens
	runes := []rune(glob)
	for i := 0; i < len(runes); i++ {
		switch c := runes[i]; {
		case c == '\\' && i+1 < len(runes):
			i++
			all = append(all, runes[i])
		case c == '*':
			if len(all) == 0 || all[len(all)-1] != star {
				all = append(all, star)
			}
		case c == '?':
			all = append(all, one)
		case c == '[' && i+2 < len(runes):
			end := i + 2 // a "]" right behind it is one of the characters
			for end < len(runes) && runes[end] != ']' {
				end++
			}
			if end == len(runes) {
				all = append(all, c)
				continue
			}
			all, i = append(all, one), end
		default:
			all = append(all, c)
		}
	}
	return all
}

func (t tokens) literals() (n int) {
	for _, c := range t {
		if c >= 0 {
			n++
		}
	}
	return n
}

func (t tokens) wild() bool { return t.literals() < len(t) }

// open reports whether the glob ends with a star.
func (t tokens) open() bool { return t[len(t)-1] == star }

// overlap reports whether a name exists that both globs match.
func overlap(a, b tokens) bool {
	// reach[j] reports whether the tokens of a so far and b[:j] match a common name.
	reach := make([]bool, len(b)+1)
	reach[0] = true
	for j, c := range b {
		reach[j+1] = reach[j] && c == star
	}
	for _, c := range a {
		next := make([]bool, len(b)+1)
		next[0] = reach[0] && c == star
		for j, d := range b {
			switch {
			case c == star || d == star:
				// The star matches nothing, or the token of the other glob.
				next[j+1] = c == star && (reach[j+1] || next[j]) || d == star && (next[j] || reach[j+1])
			default:
				next[j+1] = reach[j] && (c == d || c == one || d == one)
			}
		}
		reach = next
	}
	return reach[len(b)]
}
