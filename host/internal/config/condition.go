package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/policy"
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
		d.conditions = conditionFunctions(d.functions())
	}
	d.checkFunctions(expr)
	if len(d.mistakes) > before {
		return nil, nil
	}
	c := &condition{expr: expr, functions: d.conditions, local: d.ctx.Variables["local"], names: map[string]bool{}}
	var arguments []policy.RuleArgument
	for _, traversal := range expr.Variables() {
		if name := c.note(traversal); name != "" {
			arguments = append(arguments, policy.RuleArgument{Name: name, Place: place(traversal.SourceRange())})
		}
	}
	if len(c.names) == 0 || len(c.names) == 1 && c.names["local"] {
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
			all := slices.Sorted(maps.Keys(d.conditions))
			d.mistake(call.NameRange, "Unknown function", "A condition cannot call %s.%s What env() and file() return can be put into locals.", call.Name, didYouMean(call.Name, all))
		}
		return nil
	})
}

// condition is a compiled expression.
type condition struct {
	expr      hclsyntax.Expression
	functions functionTable
	local     cty.Value
	// names are the variables that it speaks of, arguments the properties of args
	// if it speaks of single ones only.
	names     map[string]bool
	arguments []string
	whole     bool // it speaks of args as a whole
}

// note remembers what a traversal speaks of, and returns the name of a single
// argument.
func (c *condition) note(traversal hcl.Traversal) string {
	root := traversal.RootName()
	c.names[root] = true
	if root != "args" {
		return ""
	}
	if len(traversal) > 1 {
		if step, ok := traversal[1].(hcl.TraverseAttr); ok {
			c.arguments = append(c.arguments, step.Name)
			return step.Name
		}
	}
	c.whole = true
	return ""
}

var errNoBool = errors.New("it is neither true nor false")

// holds implements [policy.Condition]. Only what it speaks of is converted. Its errors
// hold nothing of the call: arguments may be secret.
func (c *condition) holds(in *policy.Input) (holds bool, err error) {
	defer func() { // of a function, over arguments that nobody thought of
		if value := recover(); value != nil {
			holds, err = false, fmt.Errorf("it panics: %T", value)
		}
	}()
	ctx := &hcl.EvalContext{Functions: c.functions, Variables: map[string]cty.Value{"local": c.local}}
	for name := range c.names {
		switch name {
		case "tool":
			ctx.Variables[name] = cty.ObjectVal(map[string]cty.Value{
				"name": cty.StringVal(in.Tool), "plugin": cty.StringVal(in.Plugin), "tier": cty.StringVal(in.Tier.String()),
			})
		case "args":
			ctx.Variables[name] = c.args(in)
		case "caller":
			ctx.Variables[name] = cty.ObjectVal(map[string]cty.Value{
				"user": cty.StringVal(in.Caller.User), "client": cty.StringVal(in.Caller.Client), "roles": texts(in.Caller.Roles),
			})
		case "session":
			ctx.Variables[name] = cty.StringVal(in.Caller.Session)
		case "paths":
			ctx.Variables[name] = pathValues(in.Paths, in.Folders)
		case "commands":
			ctx.Variables[name] = commandValues(in.Commands)
		case "urls":
			ctx.Variables[name] = urlValues(in.URLs)
		}
	}
	value, diags := c.expr.Value(ctx)
	if diags.HasErrors() {
		return false, whatIsWrong(diags)
	}
	if value.IsNull() || !value.IsKnown() || value.Type() != cty.Bool {
		return false, errNoBool
	}
	return value.True(), nil
}

// whatIsWrong is the summary of the first mistake: details quote values.
func whatIsWrong(diags hcl.Diagnostics) error {
	for _, diag := range diags {
		if diag.Severity == hcl.DiagError {
			return errors.New(diag.Summary)
		}
	}
	return errors.New("it is wrong")
}

// args are the arguments of a call. One that it does not have is null.
func (c *condition) args(in *policy.Input) cty.Value {
	properties := map[string]cty.Value{}
	if c.whole {
		for name, value := range in.Arguments {
			properties[name] = ctyOf(value)
		}
	}
	for _, name := range c.arguments {
		properties[name] = ctyOf(in.Arguments[name])
	}
	return cty.ObjectVal(properties)
}
