package condition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/sdk/tool"
)

// comparisons finds comparisons that always have the same result, and operators that never
// have one.
type comparisons struct {
	c   *Compiler
	ctx *hcl.EvalContext
	// loops are the lists of the call over which each variable of a for expression runs.
	loops map[string]string
	wrong hcl.Diagnostics
}

// checkComparisons reports comparisons with a value of another type or a word that the part of
// the call never is, and operators on parts of the call that are names.
func (c *Compiler) checkComparisons(expr hclsyntax.Expression) hcl.Diagnostics {
	s := &comparisons{c: c, loops: map[string]string{}}
	variables := unknownCall(c.local)
	s.ctx = &hcl.EvalContext{Functions: c.functions, Variables: variables}
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		if loop, ok := node.(*hclsyntax.ForExpr); ok {
			s.declare(loop, variables)
		}
		return nil
	})
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		switch n := node.(type) {
		case *hclsyntax.BinaryOpExpr:
			s.binary(n)
		case *hclsyntax.UnaryOpExpr:
			s.operand(n.Val, operatorType(n.Op))
		case *hclsyntax.FunctionCallExpr:
			s.contains(n)
		}
		return nil
	})
	return s.wrong
}

// declare makes the variables of a for expression known. The type of one that hides another is
// not.
func (s *comparisons) declare(loop *hclsyntax.ForExpr, variables map[string]cty.Value) {
	list, element := "", cty.DynamicVal
	if over, ok := loop.CollExpr.(*hclsyntax.ScopeTraversalExpr); ok && len(over.Traversal) == 1 {
		if all := variables[over.Traversal.RootName()]; all != cty.NilVal && all.Type().IsTupleType() {
			list, element = over.Traversal.RootName(), cty.UnknownVal(all.Type().TupleElementType(0))
		}
	}
	for name, value := range map[string]cty.Value{loop.KeyVar: cty.DynamicVal, loop.ValVar: element} {
		earlier, hides := variables[name]
		variables[name] = value
		if hides && !earlier.Type().Equals(value.Type()) {
			variables[name] = cty.DynamicVal
		}
	}
	if earlier, twice := s.loops[loop.ValVar]; twice && earlier != list {
		list = "" // it runs over several lists
	}
	s.loops[loop.ValVar] = list
}

// binary checks an operator with two operands.
func (s *comparisons) binary(n *hclsyntax.BinaryOpExpr) {
	if n.Op == hclsyntax.OpEqual || n.Op == hclsyntax.OpNotEqual {
		s.equal(n.LHS, n.RHS)
		s.equal(n.RHS, n.LHS)
		return
	}
	s.operand(n.LHS, operatorType(n.Op))
	s.operand(n.RHS, operatorType(n.Op))
}

// operatorType returns the type of the operands of an operator.
func operatorType(op *hclsyntax.Operation) cty.Type {
	switch op {
	case hclsyntax.OpLogicalAnd, hclsyntax.OpLogicalOr, hclsyntax.OpLogicalNot:
		return cty.Bool
	}
	return cty.Number
}

// equal checks a comparison of a part of the call with a value.
func (s *comparisons) equal(part, value hclsyntax.Expression) {
	name := written(part)
	if name == "" {
		return
	}
	a, b := s.typeOf(part), s.typeOf(value)
	if b == cty.NilType || a == cty.NilType || a == cty.DynamicPseudoType || b == cty.DynamicPseudoType {
		return
	}
	if text, ok := diag.Literal(value); ok && a == cty.String {
		s.word(part, value, text)
		return
	}
	if a.Equals(b) || !b.IsPrimitiveType() {
		return
	}
	hint := ""
	switch literal, isLiteral := value.(*hclsyntax.LiteralValueExpr); {
	case a == cty.String && isLiteral && literal.Val.Type() == cty.Number:
		hint = fmt.Sprintf(" Write %q.", literal.Val.AsBigFloat().Text('f', -1))
	case a == cty.String && isLiteral && literal.Val.Type() == cty.Bool:
		hint = fmt.Sprintf(" Write %q.", strconv.FormatBool(literal.Val.True()))
	case a.IsListType() || a.IsTupleType():
		hint = fmt.Sprintf(" Write contains(%s, ...).", name)
	}
	s.mistake(value.Range(), "Never equal", "%s is %s, and %s never equals %s.%s", name, article(a), article(a), article(b), hint)
}

// contains checks contains(["word"], part) and contains(caller.groups, "word").
func (s *comparisons) contains(n *hclsyntax.FunctionCallExpr) {
	if n.Name != "contains" || len(n.Args) != 2 {
		return
	}
	if list, ok := n.Args[0].(*hclsyntax.TupleConsExpr); ok {
		if s.general(written(n.Args[1])) == "tool.plugin" { // a rule for several machines names plugins of each
			return
		}
		for _, element := range list.Exprs {
			if text, literal := diag.Literal(element); literal {
				s.word(n.Args[1], element, text)
			}
		}
	} else if text, literal := diag.Literal(n.Args[1]); literal {
		s.word(n.Args[0], n.Args[1], text)
	}
}

// word checks a word that a part of the call is compared with.
func (s *comparisons) word(part, at hclsyntax.Expression, text string) {
	words := s.words(part)
	if s.general(written(part)) == "caller.groups" && len(words) == 0 {
		s.mistake(at.Range(), "No groups", "There is no block group %q, so no caller is in it. Add it, or remove this.", text)
		return
	}
	if len(words) == 0 || slices.Contains(words, text) {
		return
	}
	s.mistake(at.Range(), "Never equal", "%s is never %q. Expected %s.%s", written(part), text, diag.Words(words), diag.DidYouMean(text, words))
}

// words returns the words that a part of the call may be; none means any text.
func (s *comparisons) words(part hclsyntax.Expression) []string {
	switch s.general(written(part)) {
	case "tool.tier":
		return []string{tool.ReadOnly.String(), tool.SideEffecting.String(), tool.Privileged.String()}
	case "tool.plugin":
		return s.c.plugins
	case "caller.groups":
		return s.c.groups
	case "caller.roles":
		return (auth.Agent | auth.Approver | auth.Admin).Names()
	case "commands.risk":
		return []string{command.Low.String(), command.Medium.String(), command.High.String()}
	}
	return nil
}

// operand checks an operand of an operator for numbers or booleans. A port is a text that spells
// a number.
func (s *comparisons) operand(part hclsyntax.Expression, want cty.Type) {
	name := written(part)
	if name == "" || s.general(name) == "urls.port" && want == cty.Number || strings.HasPrefix(name, "local.") {
		return
	}
	if got := s.typeOf(part); got == cty.String {
		s.mistake(part.Range(), "Wrong operand", "%s is a string, and this operator needs %s.", name, map[cty.Type]string{cty.Bool: "true or false", cty.Number: "a number"}[want])
	}
}

// typeOf returns the type of an expression, or cty.NilType if it has a mistake or depends on
// an inner variable.
func (s *comparisons) typeOf(expr hclsyntax.Expression) (t cty.Type) {
	defer func() {
		if recover() != nil { // in a function: evaluating the condition for a call reports it
			t = cty.NilType
		}
	}()
	value, diags := expr.Value(s.ctx)
	if diags.HasErrors() || value == cty.NilVal {
		return cty.NilType
	}
	return value.Type()
}

// general returns a name with the list instead of the variable that runs over it: commands.risk
// for c.risk.
func (s *comparisons) general(name string) string {
	root, rest, _ := strings.Cut(name, ".")
	if list, ok := s.loops[root]; ok {
		if list == "" {
			return ""
		}
		return list + "." + rest
	}
	return name
}

func (s *comparisons) mistake(at hcl.Range, summary, format string, args ...any) {
	s.wrong = append(s.wrong, diag.Mistake(at, summary, format, args...))
}

// written returns a traversal such as caller.user as it is written, or "" for another
// expression.
func written(expr hclsyntax.Expression) string {
	of, ok := expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok {
		return ""
	}
	names := []string{of.Traversal.RootName()}
	for _, step := range of.Traversal[1:] {
		attr, ok := step.(hcl.TraverseAttr)
		if !ok {
			return ""
		}
		names = append(names, attr.Name)
	}
	return strings.Join(names, ".")
}

// article returns the name of a type for a person.
func article(t cty.Type) string {
	switch {
	case t == cty.String:
		return "a string"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "a boolean"
	case t.IsListType() || t.IsTupleType():
		return "a list"
	}
	return "an object"
}
