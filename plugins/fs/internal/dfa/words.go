package dfa

import (
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// Package regexp cannot express that no word character comes right before, or right after, in
// the direction of reading. Both are the same in either direction.
const (
	noWordBefore syntax.EmptyOp = 1 << (iota + 6)
	noWordAfter
)

// wholeWords makes a program require both around each match.
func wholeWords(p *syntax.Prog) {
	for i := range p.Inst {
		if p.Inst[i].Op == syntax.InstMatch {
			p.Inst = append(p.Inst, p.Inst[i])
			p.Inst[i] = syntax.Inst{Op: syntax.InstEmptyWidth, Arg: uint32(noWordAfter), Out: uint32(len(p.Inst) - 1)}
			break // it has one only
		}
	}
	p.Inst = append(p.Inst, syntax.Inst{Op: syntax.InstEmptyWidth, Arg: uint32(noWordBefore), Out: uint32(p.Start)})
	p.Start = len(p.Inst) - 1
}

// wordTables returns the characters of words beyond ASCII, as Unicode defines them for
// regular expressions (UTS 18, annex C).
func wordTables() []*unicode.RangeTable {
	return []*unicode.RangeTable{unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control}
}

// isAnyWord reports whether a rune is a character of a word of any script.
func isAnyWord(r rune) bool {
	if r < utf8.RuneSelf {
		return syntax.IsWordChar(r)
	}
	return unicode.In(r, wordTables()...)
}

// wordEdges returns the first runes of the ranges of word characters, the runes after
// them, and perhaps more.
func wordEdges() []rune {
	var edges []rune
	for _, t := range wordTables() {
		for _, r := range t.R16 {
			edges = appendRange(edges, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			edges = appendRange(edges, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return edges
}

func appendRange(edges []rune, from, to, stride rune) []rune {
	if stride == 1 {
		return append(edges, from, to+1)
	}
	for r := from; r <= to; r += stride {
		edges = append(edges, r, r+1)
	}
	return edges
}
