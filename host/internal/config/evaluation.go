package config

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
	// names are the variables that it speaks of, but for local; arguments the
	// properties of args if it speaks of single ones only, key all of those.
	names     []string
	arguments []string
	key       string
	whole     bool // it speaks of args as a whole
	// simple is the same for most calls, and much faster; nil if there is none.
	simple truth
}

// note remembers what a traversal speaks of, and returns the name of a single
// argument.
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
			c.key += step.Name + "\x00"
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
	e := evaluationOf(in, c)
	if c.simple != nil {
		if holds, known := c.simple(e, nil); known {
			return holds, nil
		}
	}
	e.meter.left = maxSteps
	defer func() { // of a function, over arguments that nobody thought of
		value := recover()
		switch {
		case e.meter.spent(): // whatever try made of it
			holds, err = false, errTooCostly
		case value != nil:
			holds, err = false, fmt.Errorf("it panics: %T", value)
		}
	}()
	value, diags := c.expr.Value(e.prepare(c))
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

// evaluation is what the conditions about one call share: each part of the call is
// converted once.
type evaluation struct {
	in    *policy.Input
	ctx   *hcl.EvalContext
	meter *meter
	// arguments are single arguments, objects those that conditions speak of by
	// their keys.
	arguments, objects map[string]cty.Value
	rows               map[string][]row // paths, commands and urls
}

// evaluationOf returns what the conditions about a call share.
func evaluationOf(in *policy.Input, c *condition) *evaluation {
	if e, ok := in.Shared.(*evaluation); ok {
		return e
	}
	m := &meter{}
	e := &evaluation{
		in: in, meter: m, arguments: map[string]cty.Value{}, objects: map[string]cty.Value{}, rows: map[string][]row{},
		ctx: &hcl.EvalContext{Functions: c.functions, Variables: map[string]cty.Value{"local": c.local, meterName: cty.CapsuleVal(meterType, m)}},
	}
	in.Shared = e
	return e
}

// prepare returns the context that holds what a condition speaks of.
func (e *evaluation) prepare(c *condition) *hcl.EvalContext {
	for _, name := range c.names {
		if name == "args" {
			e.ctx.Variables[name] = e.args(c)
		} else if _, known := e.ctx.Variables[name]; !known {
			e.ctx.Variables[name] = e.part(name)
		}
	}
	return e.ctx
}

// part converts what a condition speaks of by a name.
func (e *evaluation) part(name string) cty.Value {
	switch name {
	case "tool":
		return cty.ObjectVal(map[string]cty.Value{
			"name": cty.StringVal(e.in.Tool), "plugin": cty.StringVal(e.in.Plugin), "tier": cty.StringVal(e.in.Tier.String()),
		})
	case "caller":
		return cty.ObjectVal(map[string]cty.Value{
			"user": cty.StringVal(e.in.Caller.User), "client": cty.StringVal(e.in.Caller.Client), "roles": texts(e.in.Caller.Roles),
		})
	case "session":
		return cty.StringVal(e.in.Caller.Session)
	case "paths", "urls":
		return objects(rowValues(e.rowsOf(name)))
	case "commands":
		return objects(commandValues(e.rowsOf(name), e.in.Commands))
	}
	return cty.DynamicVal // there is no other name: see conditionNames
}

// rowsOf describes the paths, commands or addresses of the call.
func (e *evaluation) rowsOf(name string) []row {
	rows, known := e.rows[name]
	if known {
		return rows
	}
	switch name {
	case "paths":
		rows = pathRows(e.in.Paths, e.in.Folders)
	case "commands":
		rows = commandRows(e.in.Commands)
	case "urls":
		rows = urlRows(e.in.URLs)
	}
	e.rows[name] = rows
	return rows
}

// args are the arguments of a call that a condition speaks of. One that the call does
// not have is null.
func (e *evaluation) args(c *condition) cty.Value {
	key := c.key
	if c.whole {
		key = "*" + c.key
	}
	if object, known := e.objects[key]; known {
		return object
	}
	properties := make(map[string]cty.Value, len(c.arguments))
	if c.whole {
		for name := range e.in.Arguments {
			properties[name] = e.argument(name)
		}
	}
	for _, name := range c.arguments {
		properties[name] = e.argument(name)
	}
	object := cty.ObjectVal(properties)
	e.objects[key] = object
	return object
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
