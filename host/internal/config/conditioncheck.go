package config

import (
	"path"
	"regexp"
	"slices"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
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

// unknownCall is what a condition speaks of, with what is the same for all calls.
func unknownCall(local cty.Value) map[string]cty.Value {
	text, all := cty.UnknownVal(cty.String), cty.UnknownVal(cty.List(cty.String))
	object := func(names ...string) map[string]cty.Value {
		attributes := map[string]cty.Value{}
		for _, name := range names {
			attributes[name] = text
		}
		return attributes
	}
	caller, command := object("user", "client"), object("name", "risk", "why")
	caller["roles"], command["argv"], command["files"] = all, all, all
	one := func(attributes map[string]cty.Value) cty.Value {
		return cty.ListVal([]cty.Value{cty.ObjectVal(attributes)})
	}
	return map[string]cty.Value{
		"tool": cty.ObjectVal(object("name", "plugin", "tier")), "caller": cty.ObjectVal(caller), "session": text, "args": cty.DynamicVal, "local": local,
		"paths": one(object("name", "path", "rel", "base")), "commands": one(command), "urls": one(object("url", "scheme", "host", "port")),
	}
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
