package grep

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/plugins/fs/internal/search"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxProgram is how many instructions a regular expression compiles to at most: a search
// can take time for each of them at each byte.
const maxProgram = 2000

// compile compiles the pattern with its options.
func (q Query) compile() (*search.Pattern, error) {
	expr := regexp.QuoteMeta(q.Pattern)
	if !q.Literal {
		if _, err := syntax.Parse(q.Pattern, syntax.Perl); err != nil {
			return nil, notRE2(err)
		}
		expr = withoutQuotes(q.Pattern)
	}
	if q.Case == "insensitive" || (q.Case != "sensitive" && !hasCapital(expr)) {
		expr = "(?i:" + expr + ")"
	}
	if q.Multiline {
		expr = "(?m:" + expr + ")"
	}
	if _, always := q.lineEnds(); always {
		return nil, tool.Errorf(tool.InvalidArgument, "pattern has a line end, but without multiline each line is searched by itself").
			WithHint("set multiline=true, or leave the line end out")
	}
	size, err := programSize(expr)
	if err == nil && size > maxProgram {
		return nil, tool.Errorf(tool.InvalidArgument, "pattern is too costly to search for: %d steps for each byte, the maximum is %d", size, maxProgram).
			WithHint("use smaller repetitions than {1000}, or search for a part of it")
	}
	var pattern *search.Pattern
	if err == nil {
		pattern, err = search.Compile(expr, search.How{Across: q.Multiline, Words: q.Word})
	}
	if err != nil {
		return nil, tool.Errorf(tool.InvalidArgument, "pattern is not a regular expression: %v", err)
	}
	return pattern, nil
}

// notRE2 explains why a pattern is not a regular expression of RE2, and what to use
// instead.
func notRE2(err error) *tool.Error {
	invalid, ok := errors.AsType[*syntax.Error](err)
	if ok && (invalid.Code == syntax.ErrInvalidPerlOp || invalid.Code == syntax.ErrInvalidNamedCapture) {
		for _, around := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
			if strings.HasPrefix(invalid.Expr, around) {
				return tool.Errorf(tool.InvalidArgument, "pattern has look-around, %s...), which is not supported", around).
					WithHint("search for the pattern without it and check the found lines; text before or after a match can be part of the pattern, such as foo[^b]")
			}
		}
	}
	if ok && invalid.Code == syntax.ErrInvalidEscape && len(invalid.Expr) == 2 && invalid.Expr[1] >= '1' && invalid.Expr[1] <= '9' {
		return tool.Errorf(tool.InvalidArgument, "pattern has the back-reference %s, which is not supported", invalid.Expr).
			WithHint("search for the pattern with .* in its place, and compare the parts of the lines found")
	}
	return tool.Errorf(tool.InvalidArgument, "pattern is not a regular expression: %v", err).
		WithHint("put a backslash before special characters, or set literal=true to find the literal text")
}

// lineEnds reports whether some matches of the pattern contain a line end that it names,
// and whether all do. Without Multiline these are not found.
func (q Query) lineEnds() (some, always bool) {
	expr := q.Pattern
	if q.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil || q.Multiline {
		return false, false
	}
	return lineEndsOf(parsed)
}

func lineEndsOf(re *syntax.Regexp) (some, always bool) {
	if re.Op == syntax.OpLiteral {
		has := slices.Contains(re.Rune, '\n')
		return has, has
	}
	all := len(re.Sub) > 0
	for _, sub := range re.Sub {
		one, each := lineEndsOf(sub)
		some, always, all = some || one, always || each, all && each
	}
	switch re.Op { //nolint:exhaustive // the others have all their parts in each match
	case syntax.OpAlternate:
		always = all
	case syntax.OpStar, syntax.OpQuest:
		always = false
	case syntax.OpRepeat:
		always = always && re.Min > 0
	}
	return some, always
}

// programSize returns the number of instructions of the compiled expression.
func programSize(expr string) (int, error) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}

// withoutQuotes replaces \Q...\E in an expression by backslashes before special characters. An
// unterminated quote would include text that is added after the expression.
func withoutQuotes(expr string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(expr, '\\')
		if at < 0 || at+1 == len(expr) {
			return b.String() + expr
		}
		if expr[at+1] != 'Q' {
			b.WriteString(expr[:at+2])
			expr = expr[at+2:]
			continue
		}
		quoted, rest, _ := strings.Cut(expr[at+2:], `\E`)
		b.WriteString(expr[:at] + regexp.QuoteMeta(quoted))
		expr = rest
	}
}

// hasCapital reports whether the expression has a capital letter that means itself; the one in
// \S does not.
func hasCapital(expr string) bool {
	escaped := false
	for _, c := range expr {
		if unicode.IsUpper(c) && !escaped {
			return true
		}
		escaped = c == '\\' && !escaped
	}
	return false
}
