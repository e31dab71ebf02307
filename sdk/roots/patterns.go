package roots

import (
	"fmt"
	"path"
	"strings"
)

// patterns are parsed patterns of names; the last one that matches counts.
type patterns []pattern

type pattern struct {
	parts    []string
	takeBack bool
}

// parsePatterns reads patterns of the given kind, which is named in the error.
func parsePatterns(kind string, texts []string) (patterns, error) {
	var all patterns
	for _, text := range texts {
		glob, takeBack := strings.CutPrefix(text, "!")
		glob = strings.ToLower(strings.Trim(glob, "/"))
		parts := strings.Split(glob, "/")
		for _, part := range parts {
			if _, err := path.Match(part, ""); err != nil || part == "" {
				return nil, fmt.Errorf("%s pattern %q is not a glob, expected names with *, ? and [a-z] such as \"*.key\"", kind, text)
			}
		}
		all = append(all, pattern{parts, takeBack})
	}
	return all, nil
}

// match reports whether rel, or a directory that it is in, is covered.
func (all patterns) match(rel string) bool {
	parts := strings.Split(strings.ToLower(rel), "/")
	covered := false
	for _, p := range all {
		if p.matchAnywhere(parts) {
			covered = !p.takeBack
		}
	}
	return covered
}

func (p pattern) matchAnywhere(parts []string) bool {
	for i := range len(parts) - len(p.parts) + 1 {
		if p.matchAt(parts[i:]) {
			return true
		}
	}
	return false
}

func (p pattern) matchAt(parts []string) bool {
	for i, glob := range p.parts {
		if ok, err := path.Match(glob, parts[i]); err != nil || !ok {
			return false
		}
	}
	return true
}
