// Package dfa finds regular expressions in time that is linear in the length of the text, for
// any expression. It finds the same matches as package regexp, several times faster.
//
// An [Expression] is compiled once, and a [Finder] searches with it. It follows all ways
// through the expression at the same time, and remembers each set of ways as a state of
// an automaton, so that most characters cost one look into a table. The table is bounded:
// an expression with too many states is followed without it.
package dfa

import (
	"fmt"
	"regexp/syntax"
	"slices"
)

// Expression is a compiled regular expression. It is safe for concurrent use.
type Expression struct {
	line    *program // each line by itself, to the first end of a match
	forward *program // to the end of the leftmost match
	reverse *program // from there back to its beginning
}

// Compile compiles an expression of package regexp. The error is that of its parser. With
// words, no character of a word, of any script, precedes or follows a match.
func Compile(expr string, words bool) (*Expression, error) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	parsed = parsed.Simplify()
	e := &Expression{}
	for _, one := range []struct {
		to     **program
		parsed *syntax.Regexp
		kind   kind
	}{{&e.line, parsed, byLine}, {&e.forward, parsed, leftmost}, {&e.reverse, reversed(parsed), longest}} {
		compiled, err := syntax.Compile(one.parsed)
		if err != nil {
			return nil, fmt.Errorf("compile regular expression: %w", err)
		}
		if words {
			wholeWords(compiled)
		}
		*one.to = newProgram(compiled, one.kind, words)
	}
	return e, nil
}

// Same reports whether the expression treats all the runes alike: it matches the same if
// one replaces another.
func (e *Expression) Same(runes []rune) bool {
	for _, r := range runes {
		if e.forward.class(r) != e.forward.class(runes[0]) {
			return false
		}
	}
	return true
}

// reversed returns the expression that matches the same text read backwards.
func reversed(re *syntax.Regexp) *syntax.Regexp {
	r := *re
	r.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		r.Sub[i] = reversed(sub)
	}
	switch re.Op { //nolint:exhaustive // the others read the same in both directions
	case syntax.OpConcat:
		slices.Reverse(r.Sub)
	case syntax.OpLiteral:
		r.Rune = slices.Clone(re.Rune)
		slices.Reverse(r.Rune)
	case syntax.OpBeginLine:
		r.Op = syntax.OpEndLine
	case syntax.OpEndLine:
		r.Op = syntax.OpBeginLine
	case syntax.OpBeginText:
		r.Op = syntax.OpEndText
	case syntax.OpEndText:
		r.Op = syntax.OpBeginText
	}
	return &r
}
