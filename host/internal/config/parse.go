package config

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// parse returns the bodies of all files, and whether their syntax is valid.
func (d *decoder) parse() ([]*hclsyntax.Body, bool) {
	var bodies []*hclsyntax.Body
	for _, f := range d.src.files {
		tokens, _ := hclsyntax.LexConfig(f.bytes, f.name, hcl.InitialPos) // the parser reports its mistakes
		if at, found := tooDeep(tokens); found {
			d.files[f.name] = &hcl.File{Bytes: f.bytes}
			d.mistake(at, "Nested too deep",
				"At most %d brackets and operators can be nested. Move parts into locals, or into several rules.", maxNesting)
			continue
		}
		d.accepted = append(d.accepted, accepts(f.bytes, tokens)...)
		file, diags := hclsyntax.ParseConfig(f.bytes, f.name, hcl.InitialPos)
		d.files[f.name] = file
		d.mistakes = append(d.mistakes, explainSyntax(diags)...)
		if body, ok := file.Body.(*hclsyntax.Body); ok {
			bodies = append(bodies, body)
		}
	}
	return bodies, !d.mistakes.HasErrors()
}

// explainSyntax rewrites the diagnostics of the syntax of a file, and leaves out those that only
// repeat an earlier one: what is no character of the language is no expression either, and
// where quotes are missing, the rest of the file is text.
func explainSyntax(diags hcl.Diagnostics) hcl.Diagnostics {
	const openText = "Invalid multi-line string"
	var kept hcl.Diagnostics
	for _, found := range diags {
		if slices.ContainsFunc(kept, func(earlier *hcl.Diagnostic) bool {
			same := found.Subject != nil && earlier.Subject != nil && found.Subject.Start == earlier.Subject.Start
			return same || found.Summary == openText && earlier.Summary == openQuotes
		}) {
			continue
		}
		switch {
		case found.Summary == openText:
			found.Summary, found.Detail = openQuotes, `A text ends in its line. Add the closing quotes: "text".`
		case found.Summary == "Invalid single-argument block definition",
			found.Summary == "Argument definition required" && strings.HasPrefix(found.Detail, "A single-line block definition"):
			found.Detail = "A block on one line can hold one argument and no block. Put each argument and each inner block on its own line."
		}
		kept = append(kept, found)
	}
	return kept
}

// openQuotes is the summary of a text without closing quotes.
const openQuotes = "Missing closing quotes"

// maxNesting bounds how deep the parser may recurse. It calls itself for each nested
// bracket and operator, and a stack overflow ends the process: with a reload, the host.
// A plugin may have written the file, which is found out only after it was read.
const maxNesting = 20_000

// tooDeep returns the first token that could be nested deeper than [maxNesting]. It
// counts a token in brackets as nested in every token before it in the same list
// element, argument or line, and so on outwards: each operator may contain the next.
func tooDeep(tokens hclsyntax.Tokens) (at hcl.Range, found bool) {
	levels := []level{{lines: true}} // the open brackets, outermost first
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

// separatedBy reports whether a token separates the tokens after it from those before
// it. A comment extends to the end of its line.
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
