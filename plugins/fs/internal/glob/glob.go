// Package glob selects files by glob patterns and by language.
package glob

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Glob is a valid pattern.
type Glob string

const (
	// maxGlob is the maximum length of a pattern in bytes.
	maxGlob = 1000
	// maxBranches is the maximum number of patterns that the alternatives of one can expand to.
	// Each one is tried, and their number grows exponentially.
	maxBranches = 1000
)

// Parse checks a pattern. A pattern without a slash matches names in every directory.
func Parse(pattern string) (Glob, error) {
	pattern = strings.TrimPrefix(pattern, "./")
	if pattern == "" || len(pattern) > maxGlob || !doublestar.ValidatePattern(pattern) {
		return "", tool.Errorf(tool.InvalidArgument, "%.100q is not a glob", pattern).
			WithHint("use names with *, ?, [a-z], {a,b} and **, such as *.go or src/**/*.ts; a backslash takes the meaning from the character after it")
	}
	if path.IsAbs(pattern) {
		return "", tool.Errorf(tool.InvalidArgument, "%.100q is absolute, but a glob is matched with paths relative to path", pattern).
			WithHint("use a relative path; **/ matches any directories")
	}
	if slices.Contains(strings.Split(pattern, "/"), "..") {
		return "", tool.Errorf(tool.InvalidArgument, "%.100q leads out of path", pattern).
			WithHint("set path to a directory above")
	}
	if branches(pattern) > maxBranches {
		return "", tool.Errorf(tool.InvalidArgument, "%.100q has too many alternatives", pattern).
			WithHint("search several times, with fewer {a,b} each")
	}
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	return Glob(pattern), nil
}

// ParseAll checks several patterns.
func ParseAll(patterns []string) ([]Glob, error) {
	var globs []Glob
	for _, p := range patterns {
		g, err := Parse(strings.TrimSuffix(p, "/"))
		if err != nil {
			return nil, err
		}
		globs = append(globs, g)
	}
	return globs, nil
}

// branches returns the number of patterns that a valid pattern expands to, or any number above
// [maxBranches].
func branches(pattern string) int {
	total := 1
	var open []int // alternatives of the braces that are open
	for i := 0; i < len(pattern) && total <= maxBranches; i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '{':
			open = append(open, 1)
		case c == ',' && len(open) > 0:
			open[len(open)-1]++
		case c == '}' && len(open) > 0:
			total *= open[len(open)-1]
			open = open[:len(open)-1]
		}
	}
	return total
}

// Match reports whether the pattern matches a path.
func (g Glob) Match(rel string) bool {
	return doublestar.MatchUnvalidated(string(g), rel)
}

// MatchAny reports whether one of the patterns matches the path of an entry.
func MatchAny(globs []Glob, e filetree.Entry) bool {
	if len(globs) == 0 {
		return false
	}
	rel := e.Rel()
	return slices.ContainsFunc(globs, func(g Glob) bool { return g.Match(rel) })
}
