package condition

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// functionTable holds functions by name.
type functionTable = map[string]function.Function

// CommonFunctions returns the functions that a condition shares with the other
// expressions of a configuration. Their errors never quote their arguments, which
// may be secret: keep it so.
func CommonFunctions() map[string]function.Function {
	return functionTable{
		"coalesce":   stdlib.CoalesceFunc,
		"compact":    stdlib.CompactFunc,
		"concat":     stdlib.ConcatFunc,
		"contains":   stdlib.ContainsFunc,
		"distinct":   stdlib.DistinctFunc,
		"flatten":    stdlib.FlattenFunc,
		"format":     stdlib.FormatFunc,
		"join":       stdlib.JoinFunc,
		"jsonencode": stdlib.JSONEncodeFunc,
		"keys":       stdlib.KeysFunc,
		"length":     stdlib.LengthFunc,
		"lookup":     stdlib.LookupFunc,
		"lower":      stdlib.LowerFunc,
		"max":        stdlib.MaxFunc,
		"merge":      stdlib.MergeFunc,
		"min":        stdlib.MinFunc,
		"replace":    stdlib.ReplaceFunc,
		"sort":       stdlib.SortFunc,
		"split":      stdlib.SplitFunc,
		"strlen":     stdlib.StrlenFunc,
		"substr":     stdlib.SubstrFunc,
		"trim":       stdlib.TrimFunc,
		"trimprefix": stdlib.TrimPrefixFunc,
		"trimspace":  stdlib.TrimSpaceFunc,
		"trimsuffix": stdlib.TrimSuffixFunc,
		"upper":      stdlib.UpperFunc,
		"values":     stdlib.ValuesFunc,
	}
}

// conditionFunctions returns all functions of conditions, bounded.
func conditionFunctions() functionTable {
	all := CommonFunctions()
	all["try"], all["can"] = tryfunc.TryFunc, tryfunc.CanFunc
	all["anytrue"], all["alltrue"] = overBools(false), overBools(true)
	all["startswith"] = ofTexts("text", "prefix", func(text, prefix string) (bool, error) { return strings.HasPrefix(text, prefix), nil })
	all["endswith"] = ofTexts("text", "suffix", func(text, suffix string) (bool, error) { return strings.HasSuffix(text, suffix), nil })
	all["under"] = ofTexts("path", "folder", func(name, folder string) (bool, error) {
		return policy.Within(path.Clean(name), path.Clean(folder)), nil
	})
	all["glob"] = ofTexts("pattern", "text", globMatch)
	all["regex"] = ofTexts("pattern", "text", newPatterns().match)
	all["cidr_contains"] = ofTexts("network", "address", cidrContains)
	boundFunctions(all)
	return all
}

// cidrContains reports whether an address is in a network. A text that is not an
// address is in no network.
func cidrContains(network, address string) (bool, error) {
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return false, fmt.Errorf("expected a network such as \"10.0.0.0/8\"")
	}
	addr, err := netip.ParseAddr(strings.Trim(address, "[]"))
	return err == nil && prefix.Contains(addr.Unmap()), nil
}

// ofTexts returns a function of two strings with the given names.
func ofTexts(first, second string, f func(a, b string) (bool, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: first, Type: cty.String}, {Name: second, Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			result, err := f(args[0].AsString(), args[1].AsString())
			return cty.BoolVal(result), err
		},
	})
}

// overBools returns a function of a list of booleans that reports whether all of
// them are true, or any of them.
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

// maxPatterns bounds the compiled regular expressions that are kept: a pattern
// may be an argument of a call. When there are more, all are dropped.
const maxPatterns = 256

// patterns keeps compiled regular expressions.
type patterns struct {
	mu       sync.Mutex // guards compiled
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
