// Package forbidden reads the patterns of paths that no call may use, whoever approves
// it. A pattern is an absolute path with wildcards: "*" and "?" stand for parts of a
// name, "**" for any number of directories, "[...]" for one of some characters, "{a,b}"
// for either, and "\" takes the meaning of what follows. One that begins with "**/" is
// about every directory. Case counts.
package forbidden

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Patterns are patterns of paths. One that cannot be read covers nothing.
type Patterns []string

// Covers reports whether a pattern matches the absolute path, or a directory that it
// lies in.
func (p Patterns) Covers(abs string) bool {
	return slices.ContainsFunc(p, func(pattern string) bool { return Covers(pattern, abs) })
}

// Match reports whether a pattern matches the absolute, clean path itself. Below a
// directory that is not covered, it says what [Patterns.Covers] does.
func (p Patterns) Match(abs string) bool {
	return slices.ContainsFunc(p, func(pattern string) bool { return match(pattern, abs) })
}

// Covers reports whether the pattern matches the absolute path, or a directory that it
// lies in.
func Covers(pattern, abs string) bool {
	for at := path.Clean(abs); at != "/" && at != "."; at = path.Dir(at) {
		if match(pattern, at) {
			return true
		}
	}
	return false
}

func match(pattern, abs string) bool {
	ok, err := doublestar.Match(strings.TrimPrefix(pattern, "/"), strings.TrimPrefix(abs, "/"))
	return ok && err == nil
}

// Valid reports whether the pattern can be read.
func Valid(pattern string) bool { return doublestar.ValidatePattern(pattern) }

// Literal returns the pattern of the absolute path alone.
func Literal(abs string) string {
	var b strings.Builder
	for _, c := range []byte(abs) {
		if strings.IndexByte(`\*?[]{}`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// Split returns the path at the beginning of a pattern that has no wildcards, and the
// rest of the pattern, "" if there are none. All that the pattern matches is the path or
// lies below it.
func Split(pattern string) (dir, rest string) {
	parts := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	dir = "/"
	for i, part := range parts {
		name, ok := unescaped(part)
		if !ok {
			return dir, strings.Join(parts[i:], "/")
		}
		dir = path.Join(dir, name)
	}
	return dir, ""
}

// unescaped returns the only name that a part of a pattern matches, if it has no
// wildcards.
func unescaped(part string) (name string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		switch c := part[i]; {
		case strings.IndexByte("*?[{", c) >= 0:
			return "", false
		case c == '\\' && i+1 < len(part):
			i++
		}
		b.WriteByte(part[i])
	}
	return b.String(), true
}
