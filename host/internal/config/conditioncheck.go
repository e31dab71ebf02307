package config

import (
	"path"
	"regexp"
	"slices"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// checkTypes evaluates a condition for a call of which nothing is known but what every
// call has, and so finds what is wrong for all of them.
func (d *decoder) checkTypes(expr hclsyntax.Expression) {
	value, diags := d.evaluateUnknown(expr)
	for _, diag := range diags {
		// Others depend on the call: whether a list has a first element, say.
		always := []string{
			"Unsupported attribute", "Not enough function arguments", "Too many function arguments", "Invalid function argument", "Invalid operand",
			"Incorrect condition type", "Missing required argument", "Inconsistent conditional result types",
		}
		if diag.Severity == hcl.DiagError && slices.Contains(always, diag.Summary) {
			d.mistakes = append(d.mistakes, diag)
		}
	}
	if diags.HasErrors() || value == cty.NilVal {
		return
	}
	if t := value.Type(); t != cty.Bool && t != cty.DynamicPseudoType {
		d.mistake(expr.Range(), "Not a condition", "It gives a %s, expected true or false.", t.FriendlyName())
	}
}

// evaluateUnknown evaluates a condition for an unknown call.
func (d *decoder) evaluateUnknown(expr hclsyntax.Expression) (value cty.Value, diags hcl.Diagnostics) {
	defer func() {
		if recover() != nil { // of a function: it is told when the condition is evaluated
			value, diags = cty.NilVal, nil
		}
	}()
	return expr.Value(&hcl.EvalContext{Functions: d.conditions, Variables: unknownCall(d.ctx.Variables["local"])})
}

// unknownCall is what a condition speaks of, for a call with one path, command and
// address: unknown values of the types that they have for every call.
func unknownCall(local cty.Value) map[string]cty.Value {
	in := &policy.Input{
		Paths: make([]policy.Path, 1), URLs: make([]string, 1),
		Commands: []policy.Command{{Line: &command.Line{Segments: make([]command.Segment, 1)}}},
	}
	e := &evaluation{in: in, rows: map[string][]row{}}
	all := map[string]cty.Value{"local": local, "args": cty.DynamicVal}
	for name := range conditionNames() {
		if _, known := all[name]; known {
			continue
		}
		value := e.part(name)
		if !value.Type().IsTupleType() {
			all[name] = cty.UnknownVal(value.Type())
			continue
		}
		all[name] = cty.TupleVal([]cty.Value{cty.UnknownVal(value.Type().TupleElementType(0))})
	}
	return all
}

// checkLiterals finds patterns that are none, and folders that hold no path.
func (d *decoder) checkLiterals(call *hclsyntax.FunctionCallExpr) {
	if len(call.Args) != 2 {
		return
	}
	switch call.Name {
	case "regex":
		if pattern, ok := literalText(call.Args[0]); ok {
			if _, err := regexp.Compile(pattern); err != nil {
				d.mistake(call.Args[0].Range(), "Not a pattern", "It is not a regular expression: %v.", err)
			}
		}
	case "glob":
		if pattern, ok := literalText(call.Args[0]); ok && !doublestar.ValidatePattern(pattern) {
			d.mistake(call.Args[0].Range(), "Not a pattern", "It is not a glob: brackets or braces do not match.")
		}
	case "under":
		of, ok := call.Args[0].(*hclsyntax.ScopeTraversalExpr)
		folder, literal := literalText(call.Args[1])
		if !ok || !literal || path.IsAbs(folder) || len(of.Traversal) != 2 {
			return
		}
		// Only a row of paths has such an attribute.
		if step, ok := of.Traversal[1].(hcl.TraverseAttr); ok && step.Name == "path" && of.Traversal.RootName() != "args" && of.Traversal.RootName() != "local" {
			d.mistake(call.Range(), "Never holds", "%s.path is absolute, and %q is not. For a folder of the workspace, write under(%s.rel, %q).",
				of.Traversal.RootName(), folder, of.Traversal.RootName(), folder)
		}
	}
}
