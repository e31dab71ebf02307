package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/toolhost/toolhost/host/internal/config/condition"
	"github.com/toolhost/toolhost/host/internal/config/diag"
)

// locals evaluates the locals blocks of all files. A local may use any other local,
// so it evaluates in rounds until a round finds nothing new.
func (d *decoder) locals(blocks []localsBlock) {
	waiting := make(hcl.Attributes)
	for _, block := range blocks {
		for name, attr := range block.Arguments {
			if first := waiting[name]; first != nil {
				d.mistake(attr.NameRange, "Duplicate local", "local.%s is also set at %s. Remove one of them.", name, diag.Place(first.NameRange))
				continue
			}
			waiting[name] = attr
		}
	}
	d.localNames = slices.Sorted(maps.Keys(waiting))
	known := make(map[string]cty.Value)
	for {
		var ready []string
		for name, attr := range waiting {
			if !usesAny(attr.Expr, waiting) {
				ready = append(ready, name)
			}
		}
		if len(ready) == 0 {
			break
		}
		for _, name := range ready {
			value, ok := d.eval(waiting[name].Expr)
			if !ok {
				value = cty.DynamicVal // expressions that use it are not reported
			}
			known[name] = value
			delete(waiting, name)
		}
		d.ctx.Variables["local"] = cty.ObjectVal(known)
	}
	for name, attr := range waiting {
		known[name] = cty.DynamicVal
		d.mistake(attr.NameRange, "Circular local", "The value of local.%s depends on itself, or on a local that depends on itself.", name)
	}
	d.ctx.Variables["local"] = cty.ObjectVal(known)
}

// usesAny reports whether expr refers to one of the locals.
func usesAny(expr hcl.Expression, locals hcl.Attributes) bool {
	for _, traversal := range expr.Variables() {
		if traversal.RootName() != "local" {
			continue
		}
		if len(traversal) < 2 {
			return len(locals) > 0
		}
		if step, ok := traversal[1].(hcl.TraverseAttr); ok && locals[step.Name] != nil {
			return true
		}
		if _, ok := traversal[1].(hcl.TraverseIndex); ok {
			return len(locals) > 0
		}
	}
	return false
}

// eval evaluates an expression. If there is no value, it records the reason and
// returns false.
func (d *decoder) eval(expr hcl.Expression) (cty.Value, bool) {
	if d.usesUnknownLocal(expr) {
		return cty.NilVal, false
	}
	v, diags := expr.Value(d.ctx)
	for _, found := range diags {
		if unknown, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](found); ok {
			name := unknown.CalledFunctionName() // HCL suggests one of the nearest names at random
			found.Summary = "Unknown function"
			found.Detail = fmt.Sprintf("There is no function named %q.%s", name, diag.NearestOrAll(name, slices.Sorted(maps.Keys(d.ctx.Functions))))
		}
		switch word := hcl.ExprAsKeyword(found.Expression); {
		case word == "" || found.Summary != "Unknown variable":
		case isTemplate(expr):
			found.Detail = fmt.Sprintf("There is no variable %q here. For a variable of the environment, write ${env(%q)}.", word, word)
		case switches[strings.ToLower(word)] != "":
			found.Summary = "Not true or false"
			found.Detail = fmt.Sprintf("Write %s, or a text in quotes: %q.", switches[strings.ToLower(word)], word)
		default:
			found.Summary = "Missing quotes"
			found.Detail = fmt.Sprintf("Write a text in quotes: %q. A word without quotes is a name, such as local.name.", word)
		}
	}
	d.mistakes = append(d.mistakes, diags...)
	return v, !diags.HasErrors() && v.IsWhollyKnown()
}

// switches are the words that other formats have for true and false.
var switches = map[string]string{"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}

// isTemplate reports whether an expression is a text with parts in ${}.
func isTemplate(expr hcl.Expression) bool {
	switch expr.(type) {
	case *hclsyntax.TemplateExpr, *hclsyntax.TemplateWrapExpr:
		return true
	}
	return false
}

// usesUnknownLocal reports whether expr uses a local that does not exist, and
// records a mistake for each.
func (d *decoder) usesUnknownLocal(expr hcl.Expression) bool {
	found := false
	for _, traversal := range expr.Variables() {
		if traversal.RootName() != "local" || len(traversal) < 2 {
			continue
		}
		if step, ok := traversal[1].(hcl.TraverseAttr); ok && !slices.Contains(d.localNames, step.Name) {
			d.mistake(traversal.SourceRange(), "Unknown local", "There is no local named %q.%s", step.Name, diag.DidYouMean(step.Name, d.localNames))
			found = true
		}
	}
	return found
}

// functions returns the functions that an expression in a configuration may call.
// Conditions have their own: see package condition.
func (d *decoder) functions() map[string]function.Function {
	all := condition.CommonFunctions()
	all["env"], all["file"], all["pathexpand"] = d.envFunction(), d.fileFunction(), d.pathexpandFunction()
	all["registry"] = d.registryFunction()
	return all
}

// envFunction is env("NAME") and env("NAME", "default").
func (d *decoder) envFunction() function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "name", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.String},
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if len(args) > 2 {
				return cty.NilVal, function.NewArgErrorf(2, `expected one name and at most one default: env("NAME", "default")`)
			}
			name := args[0].AsString()
			if value, set := d.opts.LookupEnv(name); set {
				d.secrets.add(value)
				return cty.StringVal(value), nil
			}
			if len(args) == 2 {
				return args[1], nil
			}
			return cty.NilVal, function.NewArgErrorf(0,
				"the environment variable %s is not set; set it, or give a default: env(%q, \"\")", name, name)
		},
	})
}

// fileFunction is file("path"): the content of a text file.
func (d *decoder) fileFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path := d.src.abs(args[0].AsString())
			b, err := readBounded(path, maxTextBytes)
			if pathError, ok := errors.AsType[*fs.PathError](err); ok {
				err = pathError.Err // the file names the path
			}
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			d.read = append(d.read, path)
			d.secrets.add(string(b))
			return cty.StringVal(string(b)), nil
		},
	})
}

// pathexpandFunction is pathexpand("~/dir").
func (d *decoder) pathexpandFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path := args[0].AsString()
			rest, tilde := strings.CutPrefix(path, "~")
			if !tilde || (rest != "" && rest[0] != '/') {
				return args[0], nil
			}
			home, _ := d.opts.LookupEnv("HOME")
			if !filepath.IsAbs(home) {
				return cty.NilVal, function.NewArgError(0, errors.New("there is no home directory: HOME is not set to an absolute path"))
			}
			return cty.StringVal(filepath.Join(home, rest)), nil
		},
	})
}
