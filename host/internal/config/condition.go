package config

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// conditionNames are what a condition may speak of, with the attributes of each that
// has a fixed set of them.
func conditionNames() map[string][]string {
	return map[string][]string{
		"tool":     {"name", "plugin", "tier"},
		"args":     nil,
		"caller":   {"user", "client", "roles"},
		"session":  nil,
		"paths":    nil,
		"commands": nil,
		"urls":     nil,
		"local":    nil,
	}
}

// condition compiles the expression of a rule, and returns the arguments that it
// speaks of. It returns nil for none, and if it is wrong, which is then recorded.
func (d *decoder) condition(attr *hcl.Attribute) (policy.Condition, []policy.RuleArgument) {
	if attr == nil {
		return nil, nil
	}
	expr, ok := attr.Expr.(hclsyntax.Expression)
	if !ok {
		d.mistake(attr.Expr.Range(), "Not an expression", "Expected a condition such as args.force == true.")
		return nil, nil
	}
	before := len(d.mistakes)
	d.checkNames(expr)
	if d.conditions == nil {
		d.simplifier.functions = textFunctions()
		d.conditions = conditionFunctions(d.functions(), d.simplifier.functions)
	}
	d.checkFunctions(expr)
	if len(d.mistakes) > before {
		return nil, nil
	}
	if d.checkTypes(expr); len(d.mistakes) > before {
		return nil, nil
	}
	d.warnCondition(expr)
	c := &condition{functions: d.conditions, local: d.ctx.Variables["local"]}
	var arguments []policy.RuleArgument
	for _, traversal := range expr.Variables() {
		if name := c.note(traversal); name != "" {
			arguments = append(arguments, policy.RuleArgument{Name: name, Place: place(traversal.SourceRange())})
		}
	}
	c.simple = d.simplifier.truth(expr)
	c.expr = measured(expr)
	if len(c.names) == 0 {
		d.constant(attr, c)
	}
	return c.holds, arguments
}

// constant checks a condition that speaks of no call.
func (d *decoder) constant(attr *hcl.Attribute, c *condition) {
	switch holds, err := c.holds(&policy.Input{}); {
	case err != nil:
		d.mistake(attr.Expr.Range(), "Wrong condition", "It cannot be evaluated: %v.", err)
	case !holds:
		d.mistake(attr.Expr.Range(), "Unreachable rule", "The condition never holds. Remove the rule, or let the condition speak of the call.")
	}
}

// checkNames finds names that conditions do not have.
func (d *decoder) checkNames(expr hclsyntax.Expression) {
	names := conditionNames()
	for _, traversal := range expr.Variables() {
		root := traversal.RootName()
		attributes, known := names[root]
		if !known {
			all := slices.Sorted(maps.Keys(names))
			d.mistake(traversal.SourceRange(), "Unknown name", "A condition speaks of %s, and of no %q.%s", listWords(all), root, didYouMean(root, all))
			continue
		}
		if len(attributes) == 0 || len(traversal) < 2 {
			continue
		}
		if step, ok := traversal[1].(hcl.TraverseAttr); ok && !slices.Contains(attributes, step.Name) {
			d.mistake(step.SrcRange, "Unknown name", "There is no %s.%s, but %s.%s", root, step.Name, listWords(attributes), didYouMean(step.Name, attributes))
		}
	}
}

// checkFunctions finds functions that conditions do not have.
func (d *decoder) checkFunctions(expr hclsyntax.Expression) {
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		call, ok := node.(*hclsyntax.FunctionCallExpr)
		if !ok {
			return nil
		}
		if _, known := d.conditions[call.Name]; !known {
			suggestion := ""
			if _, ofFile := d.ctx.Functions[call.Name]; !ofFile {
				suggestion = nearestOrAll(call.Name, slices.Sorted(maps.Keys(d.conditions)))
			}
			d.mistake(call.NameRange, "Unknown function", "A condition cannot call %s.%s What env() and file() return can be put into locals.", call.Name, suggestion)
		}
		d.checkLiterals(call)
		return nil
	})
}
