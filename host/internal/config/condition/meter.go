package condition

import (
	"errors"
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/config/diag"
)

// maxSteps bounds the steps of evaluating a condition for one call. A step is an
// expression, an element of a value, or 64 bytes of a text, and takes about half a
// microsecond. Only nested loops over long arguments reach the bound.
const maxSteps = 1_000_000

// meterName is the variable that holds the meter. No expression can name it.
const meterName = "meter of the condition"

var (
	errTooCostly = errors.New("it takes too many steps for these arguments")
	meterType    = cty.Capsule("meter", reflect.TypeFor[meter]())
)

// meter counts the remaining steps of a condition.
type meter struct{ left int }

// spend counts steps. It panics when none are left, since HCL continues after an
// error.
func (m *meter) spend(steps int) {
	if m.left -= steps; m.left < 0 {
		panic(errTooCostly)
	}
}

func (m *meter) spent() bool { return m.left < 0 }

// meterOf returns the meter of an evaluation. Its outermost context holds it.
func meterOf(ctx *hcl.EvalContext) *meter {
	for ; ctx != nil; ctx = ctx.Parent() {
		if value, ok := ctx.Variables[meterName]; ok {
			m, _ := value.EncapsulatedValue().(*meter) // nothing else has that name
			return m
		}
	}
	return &meter{left: maxSteps}
}

// step is an expression that counts its steps.
type step struct{ hclsyntax.Expression }

// Value implements [hcl.Expression].
func (s step) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	m := meterOf(ctx)
	m.spend(1)
	value, diags := s.Expression.Value(ctx)
	m.spend(sizeOf(value, m.left))
	return value, diags
}

// expanded is a list that is expanded to the arguments of a function.
type expanded struct{ hclsyntax.Expression }

// Value implements [hcl.Expression].
func (x expanded) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	value, diags := x.Expression.Value(ctx)
	if sizeOf(value, maxExpanded) > maxExpanded {
		meterOf(ctx).spend(maxSteps + 1)
	}
	return value, diags
}

// sizeOf returns the steps that reading a value takes. It stops counting above
// most.
func sizeOf(value cty.Value, most int) int {
	if value == cty.NilVal || !value.IsKnown() || value.IsNull() {
		return 0
	}
	switch t := value.Type(); {
	case t == cty.String:
		return len(value.AsString()) / 64
	case t.IsPrimitiveType() || !value.CanIterateElements():
		return 0
	}
	size := 0
	for it := value.ElementIterator(); it.Next() && size <= most; {
		_, element := it.Element()
		size += 1 + sizeOf(element, most-size)
	}
	return size
}

// measured returns an expression that counts its steps. It changes expr. It must
// run last: HCL finds no variables inside a step.
func measured(expr hclsyntax.Expression) hclsyntax.Expression {
	switch e := expr.(type) {
	case nil:
		return nil
	case *hclsyntax.LiteralValueExpr, *hclsyntax.AnonSymbolExpr:
		return expr
	case *hclsyntax.ParenthesesExpr:
		e.Expression = measured(e.Expression)
		return expr
	case *hclsyntax.TemplateWrapExpr:
		e.Wrapped = measured(e.Wrapped)
		return expr
	case *hclsyntax.TemplateExpr:
		if text, ok := diag.Literal(e); ok {
			return &hclsyntax.LiteralValueExpr{Val: cty.StringVal(text), SrcRange: e.SrcRange}
		}
		measureAll(e.Parts)
	case *hclsyntax.TemplateJoinExpr:
		e.Tuple = measured(e.Tuple)
	case *hclsyntax.RelativeTraversalExpr:
		e.Source = measured(e.Source)
	case *hclsyntax.FunctionCallExpr:
		measureAll(e.Args)
		if last := len(e.Args) - 1; e.ExpandFinal && last >= 0 {
			e.Args[last] = expanded{e.Args[last]}
		}
	case *hclsyntax.ConditionalExpr:
		e.Condition, e.TrueResult, e.FalseResult = measured(e.Condition), measured(e.TrueResult), measured(e.FalseResult)
	case *hclsyntax.IndexExpr:
		e.Collection, e.Key = measured(e.Collection), measured(e.Key)
	case *hclsyntax.TupleConsExpr:
		measureAll(e.Exprs)
	case *hclsyntax.ObjectConsExpr:
		for i := range e.Items {
			e.Items[i].ValueExpr = measured(e.Items[i].ValueExpr)
			if key, ok := e.Items[i].KeyExpr.(*hclsyntax.ObjectConsKeyExpr); ok && key.ForceNonLiteral {
				key.Wrapped = measured(key.Wrapped)
			}
		}
	case *hclsyntax.ForExpr:
		e.CollExpr, e.KeyExpr, e.ValExpr, e.CondExpr = measured(e.CollExpr), measured(e.KeyExpr), measured(e.ValExpr), measured(e.CondExpr)
	case *hclsyntax.SplatExpr:
		e.Source, e.Each = measured(e.Source), measured(e.Each)
	case *hclsyntax.BinaryOpExpr:
		e.LHS, e.RHS = measured(e.LHS), measured(e.RHS)
	case *hclsyntax.UnaryOpExpr:
		e.Val = measured(e.Val)
	}
	return step{expr}
}

func measureAll(all []hclsyntax.Expression) {
	for i := range all {
		all[i] = measured(all[i])
	}
}
