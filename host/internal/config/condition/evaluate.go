package condition

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// condition is a compiled expression.
type condition struct {
	expr      hclsyntax.Expression
	functions functionTable
	local     cty.Value
	// names are the variables that it uses, except local.
	names []string
	// arguments are the properties of args that it names.
	arguments []string
	whole     bool // it uses args as a whole, e.g. keys(args)
}

// note records what a traversal uses. It returns the name of a single argument,
// or "".
func (c *condition) note(traversal hcl.Traversal) string {
	root := traversal.RootName()
	if root != "local" && !slices.Contains(c.names, root) {
		c.names = append(c.names, root)
	}
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

// holds implements [policy.Condition]. It converts only the variables that the
// condition uses. Its errors hold no part of the call: arguments may be secret.
func (c *condition) holds(in *policy.Input) (holds bool, err error) {
	e := evaluationOf(in, c)
	e.meter.left = maxSteps
	defer func() { // a function may panic for unexpected arguments
		value := recover()
		switch {
		case e.meter.spent(): // also if try() hid the error
			holds, err = false, errTooCostly
		case value != nil:
			holds, err = false, fmt.Errorf("it panics: %T", value)
		}
	}()
	value, diags := c.expr.Value(e.prepare(c))
	if diags.HasErrors() {
		return false, firstSummary(diags)
	}
	if value.IsNull() || !value.IsKnown() || value.Type() != cty.Bool {
		return false, errNoBool
	}
	return value.True(), nil
}

// firstSummary returns the summary of the first error. The details quote values.
func firstSummary(diags hcl.Diagnostics) error {
	for _, diag := range diags {
		if diag.Severity == hcl.DiagError {
			return errors.New(diag.Summary)
		}
	}
	return errors.New("it is wrong")
}

// evaluation is shared by the conditions about one call: each part of the call
// is converted once.
type evaluation struct {
	in        *policy.Input
	ctx       *hcl.EvalContext
	meter     *meter
	arguments map[string]cty.Value // converted arguments by name
}

// evaluationOf returns the evaluation that the conditions about a call share.
func evaluationOf(in *policy.Input, c *condition) *evaluation {
	if e, ok := in.Shared.(*evaluation); ok {
		return e
	}
	m := &meter{}
	e := &evaluation{
		in: in, meter: m, arguments: map[string]cty.Value{},
		ctx: &hcl.EvalContext{Functions: c.functions, Variables: map[string]cty.Value{"local": c.local, meterName: cty.CapsuleVal(meterType, m)}},
	}
	in.Shared = e
	return e
}

// prepare returns a context with the variables that a condition uses.
func (e *evaluation) prepare(c *condition) *hcl.EvalContext {
	for _, name := range c.names {
		if name == "args" {
			e.ctx.Variables[name] = e.args(c)
		} else if _, known := e.ctx.Variables[name]; !known {
			e.ctx.Variables[name] = variable(e.in, name)
		}
	}
	return e.ctx
}

// args returns the arguments that a condition uses. An argument that the call
// does not have is null.
func (e *evaluation) args(c *condition) cty.Value {
	properties := make(map[string]cty.Value, len(c.arguments))
	if c.whole {
		for name := range e.in.Arguments {
			properties[name] = e.argument(name)
		}
	}
	for _, name := range c.arguments {
		properties[name] = e.argument(name)
	}
	return cty.ObjectVal(properties)
}

// argument converts one argument.
func (e *evaluation) argument(name string) cty.Value {
	value, known := e.arguments[name]
	if !known {
		value = ctyOf(e.in.Arguments[name])
		e.arguments[name] = value
	}
	return value
}
