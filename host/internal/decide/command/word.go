package command

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a command, as far as it is known before the command runs.
type word struct {
	// text is what the program gets or, if that is not known, the word as written.
	text string
	// static reports that text is what the program gets.
	static bool
	// plain reports that it is written without quotes and escapes.
	plain bool
	// whole reports that it becomes exactly one word: nothing is expanded outside of
	// quotes.
	whole bool
	// pipe reports that it names a pipe from another command: <(...).
	pipe bool
}

// flag reports whether a program could read the word as an option.
func (w word) flag() bool { return !w.static || strings.HasPrefix(w.text, "-") }

// evaluate determines what a word is. Commands in it are read elsewhere.
func (r *reader) evaluate(w *syntax.Word) word {
	if w == nil {
		return word{static: true, plain: true, whole: true}
	}
	e := evaluation{word: word{static: true, plain: len(w.Parts) == 1, whole: true}, alone: len(w.Parts) == 1}
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			e.literal(part.Value, i == 0)
		case *syntax.SglQuoted:
			e.plain = false
			if part.Dollar && strings.Contains(part.Value, `\`) {
				e.static = false // escapes that only the shell itself reads for sure
			}
			e.text.WriteString(part.Value)
		case *syntax.DblQuoted:
			e.plain = false
			e.quoted(part)
		case *syntax.ProcSubst:
			e.plain, e.static = false, false
			e.pipe = len(w.Parts) == 1 && part.Op == syntax.CmdIn
			e.whole = e.whole && e.pipe
		default:
			e.plain, e.static, e.whole = false, false, false
		}
	}
	e.word.text = e.text.String()
	if e.brace && braces(e.unquoted.String()) {
		e.static, e.plain, e.whole = false, false, false
	}
	if !e.static {
		e.word.text = r.source(w)
	}
	return e.word
}

// evaluation is a word while it is evaluated.
type evaluation struct {
	word

	text     strings.Builder
	unquoted strings.Builder
	brace    bool
	alone    bool // there is no other part
}

// literal adds text outside of quotes.
func (e *evaluation) literal(value string, first bool) {
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '\\':
			e.plain = false
			switch i++; {
			case i == len(value): // the end of the line, where bash keeps it
				e.static = false
			case value[i] != '\n':
				e.text.WriteByte(value[i])
			}
			continue
		case '*', '?':
			e.static, e.plain, e.whole = false, false, false
		case '[':
			if len(value) > 1 || !e.alone { // alone it is the name of test
				e.static, e.plain, e.whole = false, false, false
			}
		case '{':
			e.brace = true
		case '~':
			// Also after the '=' and the ':' of what looks like an assignment.
			if before := e.text.String(); before == "" && first || strings.HasSuffix(before, "=") || strings.HasSuffix(before, ":") {
				e.static, e.plain = false, false
			}
		}
		e.unquoted.WriteByte(value[i])
		e.text.WriteByte(value[i])
	}
}

// quoted adds text in double quotes.
func (e *evaluation) quoted(q *syntax.DblQuoted) {
	if q.Dollar { // translated by a file that is found through the environment
		e.static, e.whole = false, false
	}
	for _, part := range q.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			value := part.Value
			for i := 0; i < len(value); i++ {
				if value[i] == '\\' && i+1 < len(value) && strings.IndexByte("$`\"\\\n", value[i+1]) >= 0 {
					i++
					if value[i] == '\n' {
						continue
					}
				}
				e.text.WriteByte(value[i])
			}
		case *syntax.ParamExp:
			e.static = false
			if several(part) {
				e.whole = false
			}
		default:
			e.static = false
		}
	}
}

// braces reports whether text may be a brace expansion: {a,b} or {1..9}.
func braces(text string) bool {
	return strings.Contains(text, "}") && (strings.Contains(text, ",") || strings.Contains(text, ".."))
}

// several reports whether an expansion becomes several words, even in quotes.
func several(p *syntax.ParamExp) bool {
	return p.Param == nil || p.Param.Value == "@" || p.Index != nil || p.Names != 0 || p.Excl
}

// texts returns the text of each word.
func texts(words []word) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = w.text
	}
	return all
}

// known returns the text of each word, and "" for words that are not known.
func known(words []word) []string {
	all := texts(words)
	for i, w := range words {
		if !w.static {
			all[i] = ""
		}
	}
	return all
}

func allStatic(words []word) bool {
	return !slices.ContainsFunc(words, func(w word) bool { return !w.static })
}

// inside reads the commands and expansions within a node that is not a command, such as a word or
// an expression.
func (r *reader) inside(n syntax.Node) {
	if isNil(n) {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			r.statements(n.Stmts)
			return false
		case *syntax.ProcSubst:
			if n.Op != syntax.CmdIn {
				r.line.problem(High, "output goes to another command (>(...))")
			}
			if len(n.Stmts) == 0 { // bash omits the word
				r.line.problem(Medium, "a substitution without a command")
			}
			r.statements(n.Stmts)
			return false
		case *syntax.ParamExp:
			switch why := dangerous(n); {
			case r.line.Deferred && n.Param != nil && !r.sets[n.Param.Value]:
				r.line.problem(High, "$%s is not set in the line", n.Param.Value)
			case why != "":
				r.later("%s", why)
			}
		case *syntax.ArithmExp:
			if !numbers(n.X) {
				r.later("arithmetic, which may run what its variables hold")
			}
		case syntax.Command: // of a kind that cannot be here
			r.line.problem(High, "a construct that is not read here")
		}
		return true
	})
}

// insideAssign reads what an assignment evaluates.
func (r *reader) insideAssign(a *syntax.Assign) {
	if a.Index != nil {
		r.later("an index of an array, which is evaluated")
		r.inside(a.Index)
	}
	if a.Array != nil {
		r.later("an array")
		for _, e := range a.Array.Elems {
			r.inside(e.Index)
			r.inside(e.Value)
		}
	}
	r.inside(a.Value)
}

// dangerous returns why an expansion may do more than return a variable's value; "" if it does not.
func dangerous(p *syntax.ParamExp) string {
	switch {
	case p.Param == nil:
		return "an expansion that is not read here"
	case p.Index != nil:
		return "an index of an array, which is evaluated"
	case p.Excl || p.Names != 0:
		return fmt.Sprintf("${!%s}: what it gives is evaluated", p.Param.Value)
	case p.Slice != nil:
		return "arithmetic, which may run what its variables hold"
	case p.Width || p.IsSet || p.Flags != nil || p.NestedParam != nil || len(p.Modifiers) > 0 || p.Split != syntax.OptUnset ||
		p.GlobSubst != syntax.OptUnset || p.RcExpand != syntax.OptUnset:
		return "an expansion that is not read here"
	case p.Exp == nil:
		return ""
	}
	switch p.Exp.Op { //nolint:exhaustive // those that are harmless
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull,
		syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		return ""
	}
	return fmt.Sprintf("the expansion of %s does more than return its value", p.Param.Value)
}

// numbers reports whether an expression is made of numbers only.
func numbers(x syntax.ArithmExpr) bool {
	ok := true
	if isNil(x) {
		return true
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			for _, c := range n.Value {
				ok = ok && c >= '0' && c <= '9'
			}
		case nil, *syntax.Word, *syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm:
		default:
			ok = false
		}
		return ok
	})
	return ok
}

// isNil reports whether there is no node, including a nil pointer of a known type.
func isNil(n syntax.Node) bool {
	switch n := n.(type) {
	case nil:
		return true
	case *syntax.Word:
		return n == nil
	}
	return false
}

// test reads a [[ ]] expression.
func (r *reader) test(x syntax.TestExpr) {
	s := Segment{Argv: []string{"[["}, Name: "[[", Words: []string{"[["}, Known: true, Literal: true, Transparent: true}
	r.testExpression(&s, x)
	r.add(s)
	r.inside(x)
}

func (r *reader) testExpression(s *Segment, x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		w := r.evaluate(x)
		s.Argv = append(s.Argv, w.text)
	case *syntax.ParenTest:
		r.testExpression(s, x.X)
	case *syntax.UnaryTest:
		s.Argv = append(s.Argv, x.Op.String())
		switch x.Op { //nolint:exhaustive // those that are harmless
		case syntax.TsNot, syntax.TsParen, syntax.TsEmpStr, syntax.TsNempStr:
			r.testExpression(s, x.X)
		case syntax.TsExists, syntax.TsRegFile, syntax.TsDirect, syntax.TsRead, syntax.TsWrite, syntax.TsExec, syntax.TsNoEmpty, syntax.TsSmbLink:
			if w, ok := x.X.(*syntax.Word); ok {
				file := r.evaluate(w)
				r.path(s, file)
				s.Files = append(s.Files, filesIn(file)...)
			}
			r.testExpression(s, x.X)
		default:
			s.blame(High, "the test %s may run its operand", x.Op)
			r.testExpression(s, x.X)
		}
	case *syntax.BinaryTest:
		r.testExpression(s, x.X)
		s.Argv = append(s.Argv, x.Op.String())
		r.testExpression(s, x.Y)
		switch x.Op { //nolint:exhaustive // those that are harmless
		case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch, syntax.TsBefore, syntax.TsAfter, syntax.AndTest, syntax.OrTest, syntax.TsReMatch:
		default:
			s.blame(High, "the test %s may run its operands", x.Op)
		}
	default:
		s.blame(High, "a test that is not read here")
	}
}
