// Package forbidden matches the patterns of paths that no call may use, even with an approval. A
// pattern is an absolute path with wildcards: "*" and "?" match parts of a name, "**" any number
// of directories, "[...]" one of some characters, "{a,b}" one of the two texts, and "\" escapes
// the next character. A pattern that begins with "**/" applies to every directory. Case matters.
package forbidden

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Patterns are patterns of paths. An invalid pattern covers nothing.
type Patterns []string

// Covers reports whether a pattern matches the absolute path or a directory above it.
func (p Patterns) Covers(abs string) bool {
	return slices.ContainsFunc(p, func(pattern string) bool { return Covers(pattern, abs) })
}

// Match reports whether a pattern matches the absolute, clean path itself. If its
// directory is not covered, the result is that of [Patterns.Covers].
func (p Patterns) Match(abs string) bool {
	return slices.ContainsFunc(p, func(pattern string) bool { return match(pattern, abs) })
}

// Covers reports whether the pattern matches the absolute path or a directory above it.
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

// Valid reports whether the pattern is valid.
func Valid(pattern string) bool { return doublestar.ValidatePattern(pattern) }

// Literal returns the pattern that matches only the absolute path.
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

// Relative reports whether a pattern means paths in the workspace: it begins with neither "/" nor
// "**/".
func Relative(pattern string) bool {
	return !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "**/")
}

// In returns the pattern for a workspace, of which folder is the absolute path. It returns other
// patterns than those that are [Relative] as they are.
func In(folder, pattern string) string {
	if !Relative(pattern) {
		return pattern
	}
	return path.Join(Literal(folder), pattern)
}

// Spellings returns the patterns of everything that a pattern means in a workspace, of which folder
// is the absolute path: as written and, if its part without wildcards leads through symbolic links,
// with these resolved. The last name of a pattern without wildcards is not resolved: the pattern
// means the link itself. A [Relative] pattern has none if folder is "".
func Spellings(folder, pattern string, resolve func(path string) string) []string {
	if folder == "" && Relative(pattern) {
		return nil
	}
	written := In(folder, pattern)
	dir, rest := Split(written)
	if rest == "" {
		dir, rest = path.Dir(dir), Literal(path.Base(dir))
	}
	leads := resolve(dir)
	if leads == dir {
		return []string{written}
	}
	return []string{written, path.Join(Literal(leads), rest)}
}

// Split returns the leading path of a pattern without wildcards, and the rest of the
// pattern; the rest is "" if the pattern has no wildcards. Every match of the pattern is
// the path or below it.
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
