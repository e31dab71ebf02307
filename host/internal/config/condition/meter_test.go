//go:build !race

package condition

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// compiled compiles a condition without checking it.
func compiled(t *testing.T, text string) *condition {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(text), "x", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%s: %v", text, diags)
	}
	c, _ := NewCompiler(cty.EmptyObjectVal, nil, nil).compile(expr)
	return c
}

// TestCostlyConditions: large arguments cannot keep a condition busy. It fails as too
// costly.
func TestCostlyConditions(t *testing.T) {
	list := "[" + strings.Repeat("1,", 40_000) + "1]"
	text := strings.Repeat("x", 100_000)
	args := fmt.Sprintf(`{"list": %s, "texts": %s, "text": %q, "short": [1, 2, 3], "x": "x"}`,
		list, strings.ReplaceAll(list, "1", `"abcdefgh"`), text)
	for _, tt := range []struct {
		when   string
		broken bool
	}{
		{`length([for a in args.list : [for b in args.list : a]]) > 1`, true},
		{`anytrue([for a in args.list : contains(args.list, a + 1)])`, true},
		{`try(length([for a in args.list : [for b in args.list : a]]) > 1, false)`, true},
		{`can([for a in args.list : try([for b in args.list : a], 1)]) && false`, true},
		{`length([for a in args.list : try([for b in args.list : a], 1)]) == 0`, true},
		{`length(args.list[*][*]) == 0 && length({ for a in args.list : "${a}${args.text}" => args.list... }) == 0`, true},
		{`length([for a in args.list : "${args.text}${a}"]) == 0`, true},
		{`length([for a in args.list : args.list == args.texts]) == 0`, true},
		{`length(replace(args.text, "x", args.text)) == 0`, true},
		{`length(join(args.text, args.texts)) == 0`, true},
		{`max(args.list...) == 0`, true},
		{`coalesce(args.texts...) == ""`, true},
		{`glob("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}c", args.text)`, true},
		{`format("%1000000000s", args.x) == ""`, true},
		{`format("%.1000000000f", 1) == ""`, true},
		{`strlen(replace(args.text, "x", "yy")) == 200000`, false},
		{`strlen(join(",", args.texts)) > 100000`, false},
		{`alltrue([for a in args.list : a == 1])`, false},
		{`length([for a in args.short : [for b in args.list : b]]) == 3`, false},
		{`length(distinct(args.short)) == 3 && distinct([2, 1, 2]) == distinct([2, 1])`, false},
		{`length(distinct(args.list)) == 1 && length(distinct(args.texts)) == 1 && length(distinct([])) == 0`, false},
		{`length(sort(args.texts)) == length(compact(args.texts)) && sort(["b", "a"])[0] == "a"`, false},
		{`join("-", [1, true, "x"], []) == "1-true-x" && !anytrue([]) && anytrue(["true"]) && alltrue([])`, false},
		{`join(",", split("x", "1x2")) == "1,2" && distinct(["1", 1, true]) == distinct(["1", "true"])`, false},
		{`length(distinct(concat(args.list, args.texts))) == 2`, true},
		{`anytrue("x")`, true},
		{`anytrue(args.nothing)`, true},
		{`max(args.short...) == 3 && glob("{a,b}{a,b}c", "abc")`, false},
		{`replace("abab", "a", "") == "bb" && replace("ab", "/b+/", "x") == "ab"`, false},
		{`format("%05d %s %.2f", 1, "a", 1.5) == "00001 a 1.50"`, false},
	} {
		var in policy.Input
		if err := json.Unmarshal([]byte(args), &in.Arguments); err != nil {
			t.Fatal(err)
		}
		holds, err := compiled(t, tt.when).holds(&in)
		if (err != nil) != tt.broken || err == nil && !holds {
			t.Errorf("%s: %t, %v, want it to be too costly: %t", tt.when, holds, err, tt.broken)
		}
	}
}

// TestStepsAreCounted: each part of an expression counts each time, so that none evades the
// bound. A literal counts nothing.
func TestStepsAreCounted(t *testing.T) {
	const times = 500
	args := `{"list": [` + strings.Repeat("0,", times-1) + `0], "o": {"a": 1}}`
	spent := func(part string) int {
		t.Helper()
		var in policy.Input
		if err := json.Unmarshal([]byte(args), &in.Arguments); err != nil {
			t.Fatal(err)
		}
		if holds, err := compiled(t, "[for a in args.list : "+part+"] == 1").holds(&in); holds || err != nil {
			t.Fatalf("%s: %t, %v", part, holds, err)
		}
		return maxSteps - in.Shared.(*evaluation).meter.left
	}
	without := spent("1")
	for _, part := range []string{
		"(a)", "-a", "a + 1", "a == 0 ? 1 : 2", "[a]", "{ x = a }", "\"x${a}y\"", "args.list[a]", "args.list[*]", "max(a, 1)", "try(a, 1)",
		"{ for b in [1, 2, 3] : b => a if a == 0 }", "\"%{ for b in [1, 2] }${b}%{ endfor }\"",
	} {
		if steps := spent(part) - without; steps < times {
			t.Errorf("%s, %d times, counts %d steps, want at least one each time", part, times, steps)
		}
	}
}
