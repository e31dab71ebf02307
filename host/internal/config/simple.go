package config

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Most conditions compare texts of a call with others. HCL takes 3 to 6 microseconds for
// that: with 10,000 rules about one tool, 60 milliseconds for each call and each test of
// a rule. So conditions that do nothing else are compiled to the functions below,
// which take a fiftieth. They know nothing of nulls, of other types and of mistakes:
// wherever these come up, HCL is asked.

type (
	// truth says whether a condition holds for a call, and whether that is known.
	// The row is that of the loop that it is in.
	truth func(*evaluation, row) (holds, known bool)
	// textOf returns a text, and whether it is known.
	textOf func(*evaluation, row) (text string, known bool)
)

// simplifier compiles expressions in a loop with a variable, "" for none.
type simplifier struct {
	functions map[string]func(a, b string) (bool, error) // of two texts
	loop      string
}

// truth compiles an expression that is true or false. It returns nil if it is not
// simple.
func (s simplifier) truth(expr hclsyntax.Expression) truth {
	switch e := expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		return s.truth(e.Expression)
	case *hclsyntax.UnaryOpExpr:
		if e.Op == hclsyntax.OpLogicalNot {
			return not(s.truth(e.Val))
		}
	case *hclsyntax.BinaryOpExpr:
		return s.operation(e)
	case *hclsyntax.FunctionCallExpr:
		return s.call(e)
	}
	return nil
}

// not is the opposite of a truth.
func not(t truth) truth {
	if t == nil {
		return nil
	}
	return func(e *evaluation, r row) (bool, bool) {
		holds, known := t(e, r)
		return !holds, known
	}
}

// operation compiles &&, ||, == and !=. Both sides must be known: what becomes
// of a mistake in one of them is HCL's to say.
func (s simplifier) operation(expr *hclsyntax.BinaryOpExpr) truth {
	switch expr.Op {
	case hclsyntax.OpLogicalAnd, hclsyntax.OpLogicalOr:
		left, right, and := s.truth(expr.LHS), s.truth(expr.RHS), expr.Op == hclsyntax.OpLogicalAnd
		if left == nil || right == nil {
			return nil
		}
		return func(e *evaluation, r row) (bool, bool) {
			a, knownA := left(e, r)
			b, knownB := right(e, r)
			if and {
				return a && b, knownA && knownB
			}
			return a || b, knownA && knownB
		}
	case hclsyntax.OpEqual:
		return s.ofTwo(func(a, b string) (bool, error) { return a == b, nil }, expr.LHS, expr.RHS)
	case hclsyntax.OpNotEqual:
		return s.ofTwo(func(a, b string) (bool, error) { return a != b, nil }, expr.LHS, expr.RHS)
	}
	return nil
}

// ofTwo compiles a function of two texts.
func (s simplifier) ofTwo(f func(a, b string) (bool, error), first, second hclsyntax.Expression) truth {
	left, right := s.text(first), s.text(second)
	if left == nil || right == nil {
		return nil
	}
	return func(e *evaluation, r row) (bool, bool) {
		a, knownA := left(e, r)
		b, knownB := right(e, r)
		if !knownA || !knownB {
			return false, false
		}
		holds, err := f(a, b)
		return holds, err == nil
	}
}

// call compiles the functions of two texts, contains over texts that are written
// out, and anytrue and alltrue over a loop.
func (s simplifier) call(call *hclsyntax.FunctionCallExpr) truth {
	if call.ExpandFinal {
		return nil
	}
	switch f, known := s.functions[call.Name]; {
	case known && len(call.Args) == 2:
		return s.ofTwo(f, call.Args[0], call.Args[1])
	case call.Name == "contains" && len(call.Args) == 2:
		all, text := literals(call.Args[0]), s.text(call.Args[1])
		if len(all) == 0 || text == nil {
			return nil
		}
		return func(e *evaluation, r row) (bool, bool) {
			given, known := text(e, r)
			return slices.Contains(all, given), known
		}
	case (call.Name == "anytrue" || call.Name == "alltrue") && len(call.Args) == 1 && s.loop == "":
		return s.over(call.Args[0], call.Name == "alltrue")
	}
	return nil
}

// over compiles a loop over paths, commands or urls: whether all are true, or one
// is.
func (s simplifier) over(expr hclsyntax.Expression, all bool) truth {
	each, ok := expr.(*hclsyntax.ForExpr)
	if !ok || each.KeyVar != "" || each.KeyExpr != nil || each.CondExpr != nil {
		return nil
	}
	of, ok := each.CollExpr.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(of.Traversal) != 1 || !slices.Contains([]string{"paths", "commands", "urls"}, of.Traversal.RootName()) {
		return nil
	}
	name, inner := of.Traversal.RootName(), simplifier{s.functions, each.ValVar}.truth(each.ValExpr)
	if inner == nil {
		return nil
	}
	return func(e *evaluation, _ row) (bool, bool) {
		result := all
		for _, r := range e.rowsOf(name) {
			holds, known := inner(e, r)
			if !known {
				return false, false
			}
			if holds != all {
				result = !all
			}
		}
		return result, true
	}
}

// literals returns the texts of a list that are written out, or nil.
func literals(expr hclsyntax.Expression) []string {
	list, ok := expr.(*hclsyntax.TupleConsExpr)
	if !ok {
		return nil
	}
	var all []string
	for _, element := range list.Exprs {
		text, ok := literalText(element)
		if !ok {
			return nil
		}
		all = append(all, text)
	}
	return all
}

// literalText returns a text that is written out.
func literalText(expr hclsyntax.Expression) (string, bool) {
	if !isLiteral(expr) {
		return "", false
	}
	value, diags := expr.Value(nil)
	if diags.HasErrors() || value.Type() != cty.String {
		return "", false
	}
	return value.AsString(), true
}

// text compiles a text: one that is written out, or a part of the call.
func (s simplifier) text(expr hclsyntax.Expression) textOf {
	if text, ok := literalText(expr); ok {
		return func(*evaluation, row) (string, bool) { return text, true }
	}
	of, ok := expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok {
		return nil
	}
	root, name := of.Traversal.RootName(), ""
	switch len(of.Traversal) {
	case 1:
	case 2:
		step, ok := of.Traversal[1].(hcl.TraverseAttr)
		if !ok {
			return nil
		}
		name = step.Name
	default:
		return nil
	}
	switch get := partOfCall(root, name); {
	case root == s.loop:
		return ascii(func(_ *evaluation, r row) (string, bool) {
			text, known := r[name]
			return text, known
		})
	case root == "args" && name != "":
		return ascii(func(e *evaluation, _ row) (string, bool) {
			text, known := e.in.Arguments[name].(string)
			return text, known
		})
	case get != nil:
		return ascii(func(e *evaluation, _ row) (string, bool) { return get(e), true })
	}
	return nil
}

// partOfCall returns a text that every call has, nil if there is none of the name.
func partOfCall(root, name string) func(*evaluation) string {
	switch root + "." + name {
	case "tool.name":
		return func(e *evaluation) string { return e.in.Tool }
	case "tool.plugin":
		return func(e *evaluation) string { return e.in.Plugin }
	case "tool.tier":
		return func(e *evaluation) string { return e.in.Tier.String() }
	case "caller.user":
		return func(e *evaluation) string { return e.in.Caller.User }
	case "caller.client":
		return func(e *evaluation) string { return e.in.Caller.Client }
	case "session.":
		return func(e *evaluation) string { return e.in.Caller.Session }
	}
	return nil
}

// ascii leaves other texts to HCL, which gives equal ones one form.
func ascii(get textOf) textOf {
	return func(e *evaluation, r row) (string, bool) {
		text, known := get(e, r)
		other := func(c rune) bool { return c >= utf8.RuneSelf }
		return text, known && strings.IndexFunc(text, other) < 0
	}
}
