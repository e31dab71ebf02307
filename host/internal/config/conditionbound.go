package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// The functions of a condition get arguments of a call, as long as the caller likes.
// Those that would take more than time in proportion, or make something much longer,
// are bounded here; that they are called often is the business of the [meter].

const (
	// maxMade bounds the text that a function makes, in bytes.
	maxMade = 4 << 20
	// maxExpanded bounds the elements of a list that becomes the arguments of a
	// function: cty compares their types pairwise.
	maxExpanded = 1000
	// maxAlternatives bounds the ways to read a glob with {a,b}, all of which are tried.
	maxAlternatives = 1000
)

var errTooLong = fmt.Errorf("the text would have more than %d bytes", maxMade)

// boundFunctions puts bounded forms in the place of functions that have none.
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
		if wideVerb.MatchString(args[0].AsString()) {
			return errors.New("a width or precision may have three digits")
		}
		return nil
	})
	all["distinct"] = distinct()
	for name, f := range all {
		all[name] = overLists(f)
	}
}

// wideVerb finds a verb of format with a number of more than three digits.
var wideVerb = regexp.MustCompile(`%[^a-zA-Z%]*[0-9]{4}`)

func made(length int) error {
	if length > maxMade {
		return errTooLong
	}
	return nil
}

// checked makes a function that is called only if its arguments pass a check.
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

// distinct is that of cty, which compares all elements with each other.
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

// overLists makes a function that takes the lists of HCL, each element of which has a
// type of its own, without leaving their conversion to cty: that compares the types
// pairwise, which takes minutes for what one call can hold.
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

// listsOf converts the arguments of f that are to be lists.
func listsOf(f function.Function, args []cty.Value) (converted []cty.Value, err error) {
	params, rest := f.Params(), f.VarParam()
	for i, arg := range args {
		var want cty.Type
		if i < len(params) {
			want = params[i].Type
		} else {
			want = rest.Type // or there would not be so many
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
		return convert.Convert(value, cty.List(element)) // which takes no time, or fails
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

// commonType is the type of all elements of a list, cty.NilType if they differ.
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

// globMatch is the function glob.
func globMatch(pattern, text string) (bool, error) {
	if alternatives(pattern) > maxAlternatives {
		return false, fmt.Errorf("the pattern has more than %d alternatives", maxAlternatives)
	}
	return doublestar.Match(pattern, text)
}

// alternatives returns how many ways there are to read a pattern with {a,b}, or more.
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
