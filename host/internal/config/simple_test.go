package config

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// compiled compiles a condition.
func compiled(t *testing.T, text string) *condition {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(text), "x", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%s: %v", text, diags)
	}
	s := simplifier{functions: textFunctions()}
	d := newDecoder(&source{}, LoadOptions{})
	c := &condition{functions: conditionFunctions(d.functions(), s.functions), local: cty.EmptyObjectVal}
	for _, traversal := range expr.Variables() {
		c.note(traversal)
	}
	c.simple, c.expr = s.truth(expr), measured(expr)
	return c
}

// TestSimpleIsExact holds conditions that are compiled to Go against HCL, for calls with
// texts, other values and nothing in their arguments.
func TestSimpleIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	simple, known, holding := 0, 0, 0
	for range 3000 {
		text := someCondition(random, "", 3)
		c := compiled(t, text)
		if c.simple == nil {
			continue
		}
		simple++
		byHCL := *c
		byHCL.simple = nil
		for range 10 {
			in := someCall(random)
			alone := in
			got, gotErr := c.holds(&in)
			want, wantErr := byHCL.holds(&alone)
			if got != want || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Fatalf("%s of %+v: %t, %v, but HCL says %t, %v", text, in, got, gotErr, want, wantErr)
			}
			if _, ok := c.simple(evaluationOf(&in, c), nil); ok {
				known++
			}
			if got {
				holding++
			}
		}
	}
	if simple < 1500 || known < 5*simple || holding < simple || holding > 9*simple {
		t.Errorf("%d conditions are simple, %d of %d calls known, %d hold: the test proves little", simple, known, 10*simple, holding)
	}
}

// TestNotSimple: what HCL alone can say is left to it.
func TestNotSimple(t *testing.T) {
	simple := []string{
		`args.path == "x"`,
		`!(tool.name != "x" || session == "y")`,
		`anytrue([for p in paths : under(p.rel, "x")])`,
		`contains(["a", "b"], caller.user)`,
	}
	others := []string{
		`args.n == 1`,
		`args.force`,
		`args.path == null`,
		`args["path"] == "x"`,
		`args.a.b == "x"`,
		`"${args.path}" == "x"`,
		`try(args.path == "x", false)`,
		`contains([], args.path)`,
		`contains(caller.roles, "agent")`,
		`anytrue([for p in paths : p.rel == "x" if p.base == "y"])`,
		`anytrue([for i, p in paths : p.rel == "x"])`,
		`anytrue([for p in args.list : p.rel == "x"])`,
		`anytrue([for c in commands : anytrue([for p in paths : p.rel == c.name])])`,
	}
	for i, text := range slices.Concat(simple, others) {
		if got, want := compiled(t, text).simple != nil, i < len(simple); got != want {
			t.Errorf("%s is simple: %t, want %t", text, got, want)
		}
	}
}

// someCondition makes a condition, in a loop with a variable.
func someCondition(random *rand.Rand, loop string, depth int) string {
	inner := func() string { return someCondition(random, loop, depth-1) }
	choices := 8
	if depth <= 0 {
		choices = 4
	}
	switch random.IntN(choices) {
	case 0, 1:
		f := []string{"startswith", "endswith", "under", "glob", "regex", "cidr_contains"}[random.IntN(6)]
		return fmt.Sprintf("%s(%s, %s)", f, someOperand(random, loop), someOperand(random, loop))
	case 2:
		return fmt.Sprintf("contains([%q, %q], %s)", someOf(random), someOf(random), someOperand(random, loop))
	case 3:
		return fmt.Sprintf("%s %s %s", someOperand(random, loop), []string{"==", "!="}[random.IntN(2)], someOperand(random, loop))
	case 4:
		return "!(" + inner() + ")"
	case 5, 6:
		return "(" + inner() + []string{" && ", " || "}[random.IntN(2)] + inner() + ")"
	}
	if loop != "" {
		return inner()
	}
	variable := []string{"p", "args", "paths"}[random.IntN(3)]
	return fmt.Sprintf("%s([for %s in %s : %s])", []string{"anytrue", "alltrue"}[random.IntN(2)], variable,
		[]string{"paths", "commands", "urls"}[random.IntN(3)], someCondition(random, variable, depth-1))
}

// someOperand makes a text of a condition.
func someOperand(random *rand.Rand, loop string) string {
	if loop != "" && random.IntN(2) == 0 {
		return loop + "." + []string{"name", "name", "rel", "path", "base", "host", "risk", "url", "argv"}[random.IntN(9)]
	}
	if random.IntN(3) == 0 {
		return fmt.Sprintf("%q", someOf(random))
	}
	return []string{"args.a", "args.a", "args.b", "tool.name", "caller.user", "session", "tool.tier"}[random.IntN(7)]
}

// someOf is a text that conditions and calls have in common.
func someOf(random *rand.Rand) string {
	return []string{"a", "b", "a/b", "a/*", "/ws/a", "", "ls", "(", "10.0.0.0/8", "10.1.2.3", "e\u0301", "\u00e9", "read_only"}[random.IntN(13)]
}

func someCall(random *rand.Rand) policy.Input {
	in := policy.Input{
		Tool: someOf(random), Plugin: "p", Tier: tool.ReadOnly, Folders: []string{"/ws"}, Arguments: map[string]any{},
		Caller: policy.Caller{User: someOf(random), Session: someOf(random)},
	}
	for _, name := range []string{"a", "b"} {
		switch random.IntN(8) {
		case 0: // absent
		case 1:
			in.Arguments[name] = []any{nil, true, 1.5, []any{"a"}, "\xff"}[random.IntN(5)]
		default:
			in.Arguments[name] = someOf(random)
		}
	}
	for range random.IntN(3) {
		name := strings.TrimPrefix(someOf(random), "/")
		in.Paths = append(in.Paths, policy.Path{Name: name, Absolute: "/ws/" + name})
		in.URLs = append(in.URLs, "http://"+someOf(random)+":80/x")
		in.Commands = append(in.Commands, policy.Command{Line: command.Parse(someOf(random), command.Options{})})
	}
	return in
}
