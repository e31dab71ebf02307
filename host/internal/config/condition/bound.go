package condition

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/toolhost/toolhost/internal/lazyregexp"
)

// The functions of a condition take arguments of a call, which may be large. The
// functions here bound those that would take more than linear time, or build a
// much longer text. The [meter] bounds how often functions are called.

const (
	// maxMade bounds the text that a function builds, in bytes.
	maxMade = 4 << 20
	// maxExpanded bounds the elements of a list that is expanded to the arguments
	// of a function: cty compares their types pairwise.
	maxExpanded = 1000
	// maxAlternatives bounds the alternatives of a glob with {a,b}, all of which are
	// tried.
	maxAlternatives = 1000
)

var errTooLong = fmt.Errorf("the text would have more than %d bytes", maxMade)

// boundFunctions replaces unbounded functions by bounded ones.
func boundFunctions(all functionTable) {
	all["replace"] = checked(stdlib.ReplaceFunc, func(args []cty.Value) error {
		text, old, with := args[0].AsString(), args[1].AsString(), args[2].AsString()
		return made(len(text) + strings.Count(text, old)*(len(with)-len(old)))
	})
	all["join"] = checked(stdlib.JoinFunc, func(args []cty.Value) error {
		length := 0
		for _, list := range args[1:] {
			for it := list.ElementIterator(); it.Next() && length <= maxMade; {
				length += len(args[0].AsString())
				if _, element := it.Element(); element.Type() == cty.String && !element.IsNull() {
					length += len(element.AsString())
				}
			}
		}
		return made(length)
	})
	all["format"] = checked(stdlib.FormatFunc, func(args []cty.Value) error {
		if wideVerb().MatchString(args[0].AsString()) {
			return errors.New("a width or precision may have three digits")
		}
		return nil
	})
	all["distinct"] = distinct()
	for name, f := range all {
		all[name] = overLists(f)
	}
}

// wideVerb matches a verb of format with a number of more than three digits.
var wideVerb = lazyregexp.New(`%[^a-zA-Z%]*[0-9]{4}`)

func made(length int) error {
	if length > maxMade {
		return errTooLong
	}
	return nil
}

// checked returns a function that calls f only if the arguments pass a check.
func checked(f function.Function, check func(args []cty.Value) error) function.Function {
	return function.New(&function.Spec{
		Params: f.Params(), VarParam: f.VarParam(), Type: f.ReturnTypeForValues,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if err := check(args); err != nil {
				return cty.NilVal, err
			}
			return f.Call(args)
		},
	})
}

// distinct is a linear version of the function distinct: cty's compares all elements with each
// other.
func distinct() function.Function {
	return function.New(&function.Spec{
		Params: stdlib.DistinctFunc.Params(), Type: stdlib.DistinctFunc.ReturnTypeForValues,
		Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
			seen := map[int][]cty.Value{} // by their hashes
			var list []cty.Value
			for it := args[0].ElementIterator(); it.Next(); {
				_, element := it.Element()
				hash := element.Hash()
				if slices.ContainsFunc(seen[hash], element.RawEquals) {
					continue
				}
				seen[hash] = append(seen[hash], element)
				list = append(list, element)
			}
			if len(list) == 0 {
				return cty.ListValEmpty(result.ElementType()), nil
			}
			return cty.ListVal(list), nil
		},
	})
}

// overLists returns a form of f that converts the lists of HCL itself. Each of their
// elements has its own type, and cty would compare these types pairwise: that takes
// minutes for the largest calls.
func overLists(f function.Function) function.Function {
	params, rest, found := f.Params(), f.VarParam(), false
	open := func(p *function.Parameter) {
		if p.Type.IsListType() {
			p.Type, found = cty.DynamicPseudoType, true
		}
	}
	for i := range params {
		open(&params[i])
	}
	if rest != nil {
		copied := *rest
		rest = &copied
		open(rest)
	}
	if !found {
		return f
	}
	return function.New(&function.Spec{
		Params: params, VarParam: rest,
		Type: func(args []cty.Value) (cty.Type, error) {
			args, err := listsOf(f, args)
			if err != nil {
				return cty.NilType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			args, err := listsOf(f, args)
			if err != nil {
				return cty.NilVal, err
			}
			return f.Call(args)
		},
	})
}

// listsOf converts the arguments for list parameters of f.
func listsOf(f function.Function, args []cty.Value) (converted []cty.Value, err error) {
	params, rest := f.Params(), f.VarParam()
	for i, arg := range args {
		var want cty.Type
		if i < len(params) {
			want = params[i].Type
		} else {
			want = rest.Type // more arguments than params: there is a rest
		}
		if want.IsListType() {
			if arg, err = listOf(arg, want.ElementType()); err != nil {
				return nil, err
			}
		}
		converted = append(converted, arg)
	}
	return converted, nil
}

var errMixed = fmt.Errorf("a list with elements of several types may have at most %d", maxExpanded)

// listOf converts a value to a list.
func listOf(value cty.Value, element cty.Type) (cty.Value, error) {
	if value.IsNull() || !value.IsWhollyKnown() || !value.CanIterateElements() || !value.Type().IsTupleType() && !value.Type().IsListType() || value.LengthInt() == 0 {
		return convert.Convert(value, cty.List(element)) // fast, or an error
	}
	if element == cty.DynamicPseudoType {
		if element = commonType(value); element == cty.NilType {
			if value.LengthInt() > maxExpanded {
				return cty.NilVal, errMixed
			}
			return convert.Convert(value, cty.List(cty.DynamicPseudoType))
		}
	}
	list := make([]cty.Value, 0, value.LengthInt())
	for it := value.ElementIterator(); it.Next(); {
		_, v := it.Element()
		converted, err := convert.Convert(v, element)
		if err != nil {
			return cty.NilVal, err
		}
		list = append(list, converted)
	}
	return cty.ListVal(list), nil
}

// commonType returns the type of all elements of a list, or cty.NilType if they
// differ.
func commonType(value cty.Value) cty.Type {
	common := cty.NilType
	for it := value.ElementIterator(); it.Next(); {
		_, v := it.Element()
		if common != cty.NilType && !common.Equals(v.Type()) {
			return cty.NilType
		}
		common = v.Type()
	}
	return common
}

// globMatch implements the function glob.
func globMatch(pattern, text string) (bool, error) {
	if alternatives(pattern) > maxAlternatives {
		return false, fmt.Errorf("the pattern has more than %d alternatives", maxAlternatives)
	}
	return doublestar.Match(pattern, text)
}

// alternatives returns an upper bound for the number of patterns that a pattern with {a,b}
// expands to.
func alternatives(pattern string) int {
	all := 1
	var groups []int
	for i := 0; i < len(pattern) && all <= maxAlternatives; i++ {
		switch last := len(groups) - 1; {
		case pattern[i] == '\\':
			i++
		case pattern[i] == '{':
			groups = append(groups, 1)
		case pattern[i] == ',' && last >= 0:
			groups[last]++
		case pattern[i] == '}' && last >= 0:
			all *= groups[last]
			groups = groups[:last]
		}
	}
	return all
}
