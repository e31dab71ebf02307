package command

import (
	"fmt"

	"mvdan.cc/sh/v3/syntax"
)

// inside reads the commands and expansions that lie in a node which is no command
// itself: a word, an expression.
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
			if len(n.Stmts) == 0 { // bash leaves the word out
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

// dangerous says why an expansion may do more than to give a variable's value.
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
	return fmt.Sprintf("the expansion of %s does more than to give its value", p.Param.Value)
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

// isNil reports whether there is no node, also if its type is known.
func isNil(n syntax.Node) bool {
	switch n := n.(type) {
	case nil:
		return true
	case *syntax.Word:
		return n == nil
	}
	return false
}

// test reads a [[ ]].
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
			s.blame(High, "the test %s may run what it is about", x.Op)
			r.testExpression(s, x.X)
		}
	case *syntax.BinaryTest:
		r.testExpression(s, x.X)
		s.Argv = append(s.Argv, x.Op.String())
		r.testExpression(s, x.Y)
		switch x.Op { //nolint:exhaustive // those that are harmless
		case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch, syntax.TsBefore, syntax.TsAfter, syntax.AndTest, syntax.OrTest, syntax.TsReMatch:
		default:
			s.blame(High, "the test %s may run what it compares", x.Op)
		}
	default:
		s.blame(High, "a test that is not read here")
	}
}
