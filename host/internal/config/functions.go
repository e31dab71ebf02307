package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/toolhost/toolhost/host/internal/config/condition"
)

// functions returns the functions that an expression in a configuration may call.
// Conditions have their own: see package condition.
func (d *decoder) functions() map[string]function.Function {
	all := condition.CommonFunctions()
	all["env"], all["file"], all["pathexpand"] = d.envFunction(), d.fileFunction(), d.pathexpandFunction()
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
