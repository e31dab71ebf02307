package main

import (
	"regexp"
	"regexp/syntax"
	"unicode"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxPattern is the length of a regular expression in bytes.
	maxPattern = 4096
	// maxProgram is how many instructions it may be compiled to: a search
	// takes time for each of them at each byte, and cannot be interrupted
	// within a line.
	maxProgram = 2000
)

// matcher finds the pattern in a line.
type matcher struct{ re *regexp.Regexp }

func (in searchContentArgs) matcher() (*matcher, error) {
	if in.Pattern == "" || len(in.Pattern) > maxPattern {
		return nil, tool.Errorf(tool.InvalidArgument, "pattern has %d bytes, expected 1 to %d", len(in.Pattern), maxPattern)
	}
	expr := in.Pattern
	if in.Literal {
		expr = regexp.QuoteMeta(expr)
	} else if _, err := regexp.Compile(expr); err != nil {
		return nil, tool.Errorf(tool.InvalidArgument, "pattern is not a regular expression: %v", err).
			WithHint("set literal=true to find it as it is")
	}
	if in.Word {
		expr = `\b(?:` + expr + `)\b`
	}
	if in.Case == "insensitive" || (in.Case != "sensitive" && !hasCapital(in.Pattern, in.Literal)) {
		expr = "(?i:" + expr + ")"
	}
	if in.Multiline {
		expr = "(?m:" + expr + ")"
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, tool.Errorf(tool.InvalidArgument, "pattern is not a regular expression: %v", err)
	}
	if size := programSize(expr); size > maxProgram {
		return nil, tool.Errorf(tool.InvalidArgument, "pattern is too costly to search for: %d steps for each byte, at most %d are possible", size, maxProgram).
			WithHint("use smaller repetitions than {1000}, or search for a part of it")
	}
	return &matcher{re}, nil
}

// programSize returns how many instructions the expression is compiled to.
func programSize(expr string) int {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0 // reported where it is compiled
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// hasCapital reports whether the pattern has a capital letter that stands for
// itself: \S does not.
func hasCapital(pattern string, literal bool) bool {
	escaped := false
	for _, c := range pattern {
		if unicode.IsUpper(c) && !escaped {
			return true
		}
		escaped = c == '\\' && !escaped && !literal
	}
	return false
}

// find returns where the first match in the line begins, or -1.
func (m *matcher) find(line []byte) int {
	if loc := m.re.FindIndex(line); loc != nil {
		return loc[0]
	}
	return -1
}
