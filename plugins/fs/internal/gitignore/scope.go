package gitignore

import (
	"fmt"
	"strings"
)

// Scope holds the rules that apply in a directory: those of its own file and of the files above.
// A nil Scope has no rules. A Scope never changes, and is safe for concurrent use.
type Scope struct {
	above *Scope
	rules *Rules
	// base is the directory of the rules, "" or with a slash at the end.
	base     string
	patterns int // of this one and those above
}

// With returns the scope of a directory with its own rules, which precede those of s. The
// directory is a path with slashes relative to the start of the scope, or "" for the
// start. The error says that there would be more than [MaxPatterns].
func (s *Scope) With(dir string, rules *Rules) (*Scope, error) {
	inner := &Scope{above: s, rules: rules, patterns: len(rules.include)}
	if dir != "" {
		inner.base = dir + "/"
	}
	if s != nil {
		inner.patterns += s.patterns
	}
	if inner.patterns > MaxPatterns {
		return nil, fmt.Errorf("it makes more than %d patterns, with those above", MaxPatterns)
	}
	return inner, nil
}

// Ignored reports whether git would ignore a path below the scope's directory. Do not ask
// for paths in an ignored directory: nothing there can be included again.
func (s *Scope) Ignored(path string, dir bool) bool {
	for ; s != nil; s = s.above {
		inside, ok := strings.CutPrefix(path, s.base)
		if !ok {
			continue
		}
		switch s.rules.Match(inside, dir) {
		case Ignore:
			return true
		case Include:
			return false
		case None:
		}
	}
	return false
}
