package literal

import (
	"math"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxLiterals is how many literals a search uses for one expression.
	maxLiterals = 16
	// maxLength is the maximum length of a literal in bytes.
	maxLength = 64
)

// Required is what each match of an expression contains.
type Required struct {
	// Literals are texts at least one of which each match contains. They are empty if no
	// literals make a search faster.
	Literals []Literal
	// Exact means that there is a match at every place of a literal.
	Exact bool
}

// Of returns what each match of a simplified expression contains. bounded means that a
// match has to meet other conditions as well.
func Of(re *syntax.Regexp, bounded bool) Required {
	found := analyse(re)
	if !found.bounded && !bounded && scanCost(found.exact) <= maxCost {
		return Required{Literals: withoutLonger(found.exact), Exact: true}
	}
	if best := cheaper(found.best, found.exact); cost(best) <= maxCost {
		return Required{Literals: withoutLonger(best)}
	}
	return Required{}
}

// withoutLonger removes literals that contain another one.
func withoutLonger(all []Literal) []Literal {
	var kept []Literal
	for i, l := range all {
		if !slices.ContainsFunc(all[:i], l.contains) && !slices.ContainsFunc(all[i+1:], func(o Literal) bool { return o != l && l.contains(o) }) {
			kept = append(kept, l)
		}
	}
	return kept
}

// contains reports whether every text with l contains the other literal too.
func (l Literal) contains(o Literal) bool {
	if o.Fold {
		return strings.Contains(strings.Map(lowerRune, l.Text), o.Text)
	}
	return !l.Fold && strings.Contains(l.Text, o.Text)
}

func lowerRune(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r | 0x20
	}
	return r
}

const (
	// perMatch is the cost of trying the expression at a literal, in nanoseconds for each byte
	// of a text of literals.
	perMatch = 150
	// maxCost is the cost of following the expression through each byte.
	maxCost = 1.0
)

// cost estimates the cost of a search for the literals for each byte of text.
func cost(all []Literal) float64 {
	sum := scanCost(all)
	for _, l := range all {
		chance := 1.0
		for i := range l.Text {
			// Letters of a word occur together more often than by chance.
			chance *= min(3*frequency(l.Text[i]), 1)
		}
		sum += chance * perMatch
	}
	return sum
}

// scanCost is cost without the work at the places of the literals.
func scanCost(all []Literal) float64 {
	if len(all) == 0 {
		return math.Inf(1)
	}
	if slices.ContainsFunc(all, func(l Literal) bool { return l.Text == "" }) {
		return math.Inf(1)
	}
	if slices.ContainsFunc(all, func(l Literal) bool { return len(l.Text) < minWindow }) {
		return probesCost(probes(all))
	}
	return min(probesCost(probes(all)), perWindow)
}

// analysis is what is known about a part of an expression.
type analysis struct {
	// exact are all texts that it matches, in any order; nil if they are unknown.
	exact []Literal
	// bounded means that there are other conditions, such as the end of a word.
	bounded bool
	// best are literals one of which each match contains; empty if they are unknown.
	best []Literal
}

func analyse(re *syntax.Regexp) analysis {
	switch re.Op { //nolint:exhaustive // nothing is known of the others
	case syntax.OpEmptyMatch:
		return analysis{exact: []Literal{{}}}
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return analysis{exact: []Literal{{}}, bounded: true}
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return analyseFolded(re.Rune)
		}
		if strings.ContainsRune(string(re.Rune), utf8.RuneError) {
			return analysis{} // it matches bytes that are not UTF-8, too
		}
		return analysis{exact: []Literal{{Text: string(re.Rune)}}}
	case syntax.OpCharClass:
		return analyseClass(re.Rune)
	case syntax.OpCapture:
		return analyse(re.Sub[0])
	case syntax.OpPlus:
		sub := analyse(re.Sub[0])
		return analysis{best: cheaper(sub.best, sub.exact)}
	case syntax.OpQuest:
		sub := analyse(re.Sub[0])
		if sub.exact == nil || len(sub.exact) == maxLiterals {
			return analysis{}
		}
		return analysis{exact: append(slices.Clone(sub.exact), Literal{}), bounded: sub.bounded}
	case syntax.OpConcat:
		return analyseConcat(re.Sub)
	case syntax.OpAlternate:
		return analyseAlternate(re.Sub)
	default:
		return analysis{}
	}
}

// analyseFolded analyzes a literal whose case is ignored. Some ASCII letters have other
// spellings beyond ASCII, which a match can contain instead.
func analyseFolded(runes []rune) analysis {
	var all []Literal // the longest part in ASCII first
	var text []byte
	var other []Literal
	end := func() {
		if part := append([]Literal{{Text: string(text), Fold: true}}, other...); cost(part) < cost(all) {
			all = part
		}
		text, other = nil, nil
	}
	for _, r := range runes {
		if r >= utf8.RuneSelf {
			end()
			continue
		}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if l := (Literal{Text: string(f)}); f >= utf8.RuneSelf && !slices.Contains(other, l) {
				other = append(other, l)
			}
		}
		text = append(text, lower(byte(r)))
	}
	whole := len(text) == len(runes) && len(other) == 0
	end()
	if whole {
		return analysis{exact: all}
	}
	return analysis{best: all}
}

// analyseClass analyzes a set of runes: a few are like an alternation.
func analyseClass(ranges []rune) analysis {
	var all []Literal
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if len(all) == 4 || r == utf8.RuneError {
				return analysis{}
			}
			all = append(all, Literal{Text: string(r)})
		}
	}
	return analysis{exact: all}
}

func analyseConcat(subs []*syntax.Regexp) analysis {
	var found analysis
	whole := true        // so far, the exact literals are all of it
	run := []Literal{{}} // the exact literals of the last parts
	for _, sub := range subs {
		one := analyse(sub)
		found.bounded = found.bounded || one.bounded
		if one.exact != nil {
			if next, ok := product(run, one.exact); ok {
				run = next
				continue
			}
		}
		whole = false
		found.best = cheaper(found.best, cheaper(run, one.best))
		if run = one.exact; run == nil {
			run = []Literal{{}}
		}
	}
	if whole {
		found.exact = run
		return found
	}
	found.best = cheaper(found.best, run)
	return found
}

// product returns every literal of before joined with every one of after, if that is
// possible and not too much.
func product(before, after []Literal) ([]Literal, bool) {
	if len(before)*len(after) > maxLiterals {
		return nil, false
	}
	var all []Literal
	for _, b := range before {
		for _, a := range after {
			joined, ok := join(b, a)
			if !ok || len(joined.Text) > maxLength {
				return nil, false
			}
			all = append(all, joined)
		}
	}
	return all, true
}

// join joins two literals, unless only one ignores case.
func join(b, a Literal) (Literal, bool) {
	switch {
	case b.Fold == a.Fold, a.Text == "":
		return Literal{b.Text + a.Text, b.Fold}, true
	case b.Text == "":
		return a, true
	case !b.Fold && b.caseless(), !a.Fold && a.caseless():
		return Literal{b.Text + a.Text, true}, true
	default:
		return Literal{}, false
	}
}

// caseless reports whether the literal has no ASCII letter.
func (l Literal) caseless() bool {
	return !strings.ContainsFunc(l.Text, func(r rune) bool { return lowerRune(r) != r || 'a' <= r && r <= 'z' })
}

func analyseAlternate(subs []*syntax.Regexp) analysis {
	exact, best := []Literal{}, []Literal{}
	bounded := false
	for _, sub := range subs {
		one := analyse(sub)
		bounded = bounded || one.bounded
		if one.exact == nil {
			exact = nil
		} else if exact != nil {
			exact = append(exact, one.exact...)
		}
		part := cheaper(one.best, one.exact)
		if part == nil {
			best = nil
		} else if best != nil {
			best = append(best, part...)
		}
	}
	if len(exact) > maxLiterals {
		exact = nil
	}
	if len(best) > maxLiterals {
		best = nil
	}
	return analysis{exact: exact, bounded: bounded, best: best}
}

// cheaper returns the literals that make the faster search; nil if neither helps.
func cheaper(a, b []Literal) []Literal {
	switch {
	case cost(a) <= cost(b) && len(a) > 0 && !math.IsInf(cost(a), 1):
		return a
	case !math.IsInf(cost(b), 1):
		return b
	default:
		return nil
	}
}
