package config

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const (
	// maxNesting bounds how deep the parser goes: it calls itself for each bracket
	// and operator that is inside another, and the stack has an end.
	maxNesting = 20_000
	// maxTokens bounds the words and signs of all files together. Parsing takes
	// about 2 µs and, for a moment, 700 bytes for each: 2 s and 1 GB for as many as
	// this. 10,000 rules with a condition and a test have half of it.
	maxTokens = 2_000_000
)

// tooLong returns the first of the tokens of a file that there may not be, with
// before of them in other files.
func tooLong(tokens hclsyntax.Tokens, before int) (at hcl.Range, found bool) {
	if before+len(tokens) <= maxTokens {
		return hcl.Range{}, false
	}
	return tokens[max(0, maxTokens-before)].Range, true
}

// tooDeep returns the first token that may stand deeper than the parser may go. What
// stands in brackets is as deep as all that stands before it in the same element
// of a list, argument or line, and so on outwards: an operator may be inside each
// operator before it.
func tooDeep(tokens hclsyntax.Tokens) (at hcl.Range, found bool) {
	levels := []level{{lines: true}} // of brackets, outermost first
	depth := 0                       // the sum of their tokens
	for _, token := range tokens {
		inner := &levels[len(levels)-1]
		if inner.separatedBy(token) {
			depth -= inner.tokens
			inner.tokens = 0
			continue
		}
		switch token.Type { //nolint:exhaustive // the others are words and signs
		case hclsyntax.TokenNewline, hclsyntax.TokenComment, hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
			continue // nothing is inside them
		case hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenCBrace, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			if len(levels) > 1 {
				depth -= inner.tokens
				levels = levels[:len(levels)-1]
			}
			continue
		}
		inner.tokens++
		if depth++; depth > maxNesting {
			return token.Range, true
		}
		switch token.Type { //nolint:exhaustive // the others open nothing
		case hclsyntax.TokenOBrace:
			levels = append(levels, level{lines: true, commas: true})
		case hclsyntax.TokenOParen, hclsyntax.TokenOBrack:
			levels = append(levels, level{commas: true})
		case hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			levels = append(levels, level{})
		}
	}
	return hcl.Range{}, false
}

// level is the inside of a bracket, or of the file.
type level struct {
	tokens        int  // since the last separator
	lines, commas bool // what separates
}

// separatedBy reports whether what follows a token is not inside what stands before.
// A comment goes to the end of its line.
func (l *level) separatedBy(token hclsyntax.Token) bool {
	switch token.Type { //nolint:exhaustive // the others separate nothing
	case hclsyntax.TokenNewline:
		return l.lines
	case hclsyntax.TokenComment:
		return l.lines && bytes.HasSuffix(token.Bytes, []byte("\n"))
	case hclsyntax.TokenComma:
		return l.commas
	}
	return false
}
