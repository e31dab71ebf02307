package condition

import (
	"path"
	"regexp"
	"slices"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// checkTypes evaluates a condition for an unknown call, and so reports mistakes
// that every call would meet.
func (c *Compiler) checkTypes(expr hclsyntax.Expression) (wrong hcl.Diagnostics) {
	value, diags := c.evaluateUnknown(expr)
	for _, d := range diags {
		// The others depend on the call, such as whether a list has a first element.
		always := []string{
			"Unsupported attribute", "Not enough function arguments", "Too many function arguments", "Invalid function argument", "Invalid operand",
			"Incorrect condition type", "Missing required argument", "Inconsistent conditional result types",
		}
		if d.Severity == hcl.DiagError && slices.Contains(always, d.Summary) {
			wrong = append(wrong, d)
		}
	}
	if diags.HasErrors() || value == cty.NilVal {
		return wrong
	}
	if t := value.Type(); t != cty.Bool && t != cty.DynamicPseudoType {
		wrong = append(wrong, diag.Mistake(expr.Range(), "Not a condition", "Expected true or false; the result is a %s.", t.FriendlyName()))
	}
	return wrong
}

// evaluateUnknown evaluates a condition for an unknown call.
func (c *Compiler) evaluateUnknown(expr hclsyntax.Expression) (value cty.Value, diags hcl.Diagnostics) {
	defer func() {
		if recover() != nil { // in a function: evaluating the condition for a call reports it
			value, diags = cty.NilVal, nil
		}
	}()
	return expr.Value(&hcl.EvalContext{Functions: c.functions, Variables: unknownCall(c.local)})
}

// unknownCall returns the variables of a condition for a call with one path,
// command and address: unknown values of the types that they have in every call.
func unknownCall(local cty.Value) map[string]cty.Value {
	in := &policy.Input{
		Paths: make([]policy.Path, 1), URLs: make([]string, 1),
		Commands: []policy.Command{{Line: &command.Line{Segments: make([]command.Segment, 1)}}},
	}
	all := map[string]cty.Value{"local": local, "args": cty.DynamicVal}
	for name := range names() {
		if _, known := all[name]; known {
			continue
		}
		value := variable(in, name)
		if !value.Type().IsTupleType() {
			all[name] = cty.UnknownVal(value.Type())
			continue
		}
		all[name] = cty.TupleVal([]cty.Value{cty.UnknownVal(value.Type().TupleElementType(0))})
	}
	return all
}

// checkLiterals reports invalid patterns, and folders that can hold no path.
func checkLiterals(call *hclsyntax.FunctionCallExpr) hcl.Diagnostics {
	if len(call.Args) != 2 {
		return nil
	}
	switch call.Name {
	case "regex":
		if pattern, ok := diag.Literal(call.Args[0]); ok {
			if _, err := regexp.Compile(pattern); err != nil {
				return hcl.Diagnostics{diag.Mistake(call.Args[0].Range(), "Not a pattern", "It is not a regular expression: %v.", err)}
			}
		}
	case "glob":
		if pattern, ok := diag.Literal(call.Args[0]); ok && !doublestar.ValidatePattern(pattern) {
			return hcl.Diagnostics{diag.Mistake(call.Args[0].Range(), "Not a pattern", "It is not a glob: brackets or braces do not match.")}
		}
	case "under":
		of, ok := call.Args[0].(*hclsyntax.ScopeTraversalExpr)
		folder, literal := diag.Literal(call.Args[1])
		if !ok || !literal || path.IsAbs(folder) || len(of.Traversal) != 2 {
			return nil
		}
		root := of.Traversal.RootName()
		// Only an element of paths has an attribute named path.
		if step, ok := of.Traversal[1].(hcl.TraverseAttr); ok && step.Name == "path" && root != "args" && root != "local" {
			return hcl.Diagnostics{diag.Mistake(call.Range(), "Never holds", "%s.path is absolute, and %q is not. For a folder of the workspace, write under(%s.rel, %q).",
				root, folder, root, folder)}
		}
	}
	return nil
}
