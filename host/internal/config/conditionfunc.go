package config

import (
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// functionTable holds functions by name.
type functionTable = map[string]function.Function

// conditionFunctions are what a condition may call: of the functions of a file those
// that read nothing, those of two texts, and some more.
func conditionFunctions(ofFiles functionTable, ofTwo map[string]func(a, b string) (bool, error)) functionTable {
	all := maps.Clone(ofFiles)
	for _, reads := range []string{"env", "file", "pathexpand"} {
		delete(all, reads)
	}
	all["try"], all["can"] = tryfunc.TryFunc, tryfunc.CanFunc
	all["anytrue"], all["alltrue"] = overBools(false), overBools(true)
	for name, f := range ofTwo {
		all[name] = ofTexts(f)
	}
	boundFunctions(all)
	return all
}

// textFunctions are the functions of two texts that are true or false.
func textFunctions() map[string]func(a, b string) (bool, error) {
	return map[string]func(a, b string) (bool, error){
		"startswith": func(text, prefix string) (bool, error) { return strings.HasPrefix(text, prefix), nil },
		"endswith":   func(text, suffix string) (bool, error) { return strings.HasSuffix(text, suffix), nil },
		"under": func(name, folder string) (bool, error) {
			return policy.Within(path.Clean(name), path.Clean(folder)), nil
		},
		"glob":  globMatch,
		"regex": newPatterns().match,
		"cidr_contains": func(network, address string) (bool, error) {
			prefix, err := netip.ParsePrefix(network)
			if err != nil {
				return false, fmt.Errorf("expected a network such as \"10.0.0.0/8\"")
			}
			addr, err := netip.ParseAddr(strings.Trim(address, "[]"))
			return err == nil && prefix.Contains(addr.Unmap()), nil // what is no address lies in no network
		},
	}
}

// ofTexts makes one of [textFunctions] one of HCL.
func ofTexts(f func(a, b string) (bool, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "first", Type: cty.String}, {Name: "second", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			result, err := f(args[0].AsString(), args[1].AsString())
			return cty.BoolVal(result), err
		},
	})
}

// overBools makes a function of a list of bools: whether all of them are true, or
// one is.
func overBools(all bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			for _, v := range args[0].AsValueSlice() {
				if holds := !v.IsNull() && v.True(); holds != all {
					return cty.BoolVal(!all), nil
				}
			}
			return cty.BoolVal(all), nil
		},
	})
}

// maxPatterns bounds the regular expressions that are kept compiled: one may come
// with a call.
const maxPatterns = 256

// patterns keeps regular expressions compiled.
type patterns struct {
	mu       sync.Mutex
	compiled map[string]*regexp.Regexp
}

func newPatterns() *patterns { return &patterns{compiled: map[string]*regexp.Regexp{}} }

func (p *patterns) match(pattern, text string) (bool, error) {
	p.mu.Lock()
	re := p.compiled[pattern]
	p.mu.Unlock()
	if re == nil {
		var err error
		if re, err = regexp.Compile(pattern); err != nil {
			return false, fmt.Errorf("it is not a regular expression")
		}
		p.mu.Lock()
		if len(p.compiled) >= maxPatterns {
			clear(p.compiled)
		}
		p.compiled[pattern] = re
		p.mu.Unlock()
	}
	return re.MatchString(text), nil
}
