// Package condition compiles the conditions of policy rules: HCL expressions
// over a call, such as args.force == true.
//
// A condition is trusted; the arguments of the call are not. Evaluating one is
// therefore bounded in steps and in the text that functions may build, and its
// errors never quote the call. Conditions read nothing but the call and the
// locals of the configuration.
package condition

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// names returns the variables of a condition, with the attributes of each that
// has a fixed set of them.
func names() map[string][]string {
	return map[string][]string{
		"tool":     {"name", "plugin", "tier"},
		"args":     nil,
		"caller":   {"user", "client", "roles", "groups"},
		"session":  nil,
		"paths":    nil,
		"commands": nil,
		"urls":     nil,
		"local":    nil,
	}
}

// Compiler compiles conditions that share functions and locals.
type Compiler struct {
	functions functionTable
	local     cty.Value
	plugins   []string
	groups    []string
}

// NewCompiler returns a compiler. local is an object with the locals of the
// configuration, and plugins and groups are the names of all plugins and groups.
func NewCompiler(local cty.Value, plugins, groups []string) *Compiler {
	return &Compiler{functions: conditionFunctions(), local: local, plugins: plugins, groups: groups}
}

// Compile checks an expression and compiles it. It also returns the arguments
// of the call that the condition names. If the diagnostics have errors, there is
// no condition. Compile changes the expression: the caller must not use it again.
func (c *Compiler) Compile(expr hcl.Expression) (policy.Condition, []policy.RuleArgument, hcl.Diagnostics) {
	native, ok := expr.(hclsyntax.Expression)
	if !ok {
		return nil, nil, hcl.Diagnostics{diag.Mistake(expr.Range(), "Not an expression", "Expected a condition such as args.force == true.")}
	}
	diags := append(checkNames(native), c.checkFunctions(native)...)
	if diags.HasErrors() {
		return nil, nil, diags
	}
	if diags = c.checkTypes(native); diags.HasErrors() {
		return nil, nil, diags
	}
	if diags = c.checkComparisons(native); diags.HasErrors() {
		return nil, nil, diags
	}
	compiled, arguments := c.compile(native)
	if len(compiled.names) == 0 {
		diags = compiled.checkConstant(native.Range())
	}
	return compiled.holds, arguments, diags
}

// compile compiles an expression without mistakes.
func (c *Compiler) compile(expr hclsyntax.Expression) (*condition, []policy.RuleArgument) {
	compiled := &condition{functions: c.functions, local: c.local}
	var arguments []policy.RuleArgument
	for _, traversal := range expr.Variables() {
		if name := compiled.note(traversal); name != "" {
			arguments = append(arguments, policy.RuleArgument{Name: name, Place: diag.Place(traversal.SourceRange())})
		}
	}
	compiled.expr = measured(expr)
	return compiled, arguments
}

// checkConstant checks a condition that does not depend on the call.
func (c *condition) checkConstant(at hcl.Range) hcl.Diagnostics {
	switch holds, err := c.holds(&policy.Input{}); {
	case err != nil:
		return hcl.Diagnostics{diag.Mistake(at, "Wrong condition", "It cannot be evaluated: %v.", err)}
	case !holds:
		return hcl.Diagnostics{diag.Mistake(at, "Unreachable rule", "The condition is always false. Remove the rule, or make the condition depend on the call.")}
	}
	return nil
}

// checkNames reports names that conditions do not have.
func checkNames(expr hclsyntax.Expression) (diags hcl.Diagnostics) {
	known := names()
	for _, traversal := range expr.Variables() {
		root := traversal.RootName()
		attributes, ok := known[root]
		if !ok {
			all := slices.Sorted(maps.Keys(known))
			diags = append(diags, diag.Mistake(traversal.SourceRange(), "Unknown name", "Expected %s in a condition, not %q.%s",
				diag.Words(all), root, diag.DidYouMean(root, all)))
			continue
		}
		if len(attributes) == 0 || len(traversal) < 2 {
			continue
		}
		if step, ok := traversal[1].(hcl.TraverseAttr); ok && !slices.Contains(attributes, step.Name) {
			diags = append(diags, diag.Mistake(step.SrcRange, "Unknown name", "%s has %s, not %q.%s",
				root, diag.Words(attributes), step.Name, diag.DidYouMean(step.Name, attributes)))
		}
	}
	return diags
}

// checkFunctions reports functions that conditions do not have, and wrong
// literal arguments.
func (c *Compiler) checkFunctions(expr hclsyntax.Expression) (diags hcl.Diagnostics) {
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		call, ok := node.(*hclsyntax.FunctionCallExpr)
		if !ok {
			return nil
		}
		_, known := c.functions[call.Name]
		switch {
		case known:
		case slices.Contains([]string{"env", "file", "pathexpand", "registry"}, call.Name):
			diags = append(diags, diag.Mistake(call.NameRange, "Unknown function", "A condition cannot call %s. Put its value into locals.", call.Name))
		default:
			diags = append(diags, diag.Mistake(call.NameRange, "Unknown function",
				"A condition cannot call %s.%s", call.Name, diag.NearestOrAll(call.Name, slices.Sorted(maps.Keys(c.functions)))))
		}
		diags = append(diags, checkLiterals(call)...)
		return nil
	})
	return diags
}
