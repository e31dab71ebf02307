package config

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config/condition"
	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/internal/lazyregexp"
	"github.com/toolhost/toolhost/sdk/tool"
)

// rules reads the rule blocks.
func (d *decoder) rules(blocks []ruleBlock) []policy.Rule {
	firsts := map[string]hcl.Range{}
	var rules []policy.Rule
	var at []hcl.Range
	conditions := condition.NewCompiler(d.ctx.Variables["local"], d.pluginNames, d.groupNames())
	for _, b := range blocks {
		if !d.unique("rule", b.Name, b.NameRange, firsts) {
			continue
		}
		if rule, ok := d.rule(b, conditions); ok {
			rules, at = append(rules, rule), append(at, b.NameRange)
		}
	}
	d.checkReachable(rules, at)
	return rules
}

const (
	// maxLabel bounds the name of a rule or a test, in bytes.
	maxLabel = 128
	// maxReason bounds the reason of a rule, in bytes.
	maxReason = 2000

	labelExpected = "%s show this name in a line. Expected 1 to %d bytes of visible characters, without space around them."
)

// rule reads one rule.
func (d *decoder) rule(b ruleBlock, conditions *condition.Compiler) (policy.Rule, bool) {
	before := len(d.mistakes)
	rule := policy.Rule{
		Name: b.Name, Place: diag.Place(b.NameRange), Locked: d.flag(b.Locked, false), Shadow: d.flag(b.Shadow, false),
	}
	if b.When != nil {
		if expr, ok := b.When.Expr.(hclsyntax.Expression); ok {
			d.namesIn(b.Name, expr)
		}
		var diags hcl.Diagnostics
		rule.When, rule.Arguments, diags = conditions.Compile(b.When.Expr)
		rule.Text = d.written(b.When.Expr.Range())
		d.mistakes = append(d.mistakes, diags...)
	}
	rule.Tests = d.ruleTests(b.Tests)
	switch {
	case strings.TrimSpace(b.Name) == "":
		d.mistake(b.NameRange, "Rule without a name", "Expected a name such as \"no-network\". Refusals show it.")
	case !isLabel(b.Name, maxLabel):
		d.mistake(b.NameRange, "Invalid rule name", labelExpected, "Refusals and approvals", maxLabel)
	}
	rule.Reason, _ = d.text(b.Reason, "a text")
	if d.secrets.in(rule.Reason) != rule.Reason {
		d.mistake(b.Reason.Expr.Range(), "A secret in a reason", "The reason holds a value of env() or file(), and callers read it. Remove the value.")
	}
	if tool.Visible(rule.Reason) != rule.Reason || len(rule.Reason) > maxReason {
		d.mistake(b.Reason.Expr.Range(), "Invalid reason", "Callers read it. Expected at most %d bytes of visible characters.", maxReason)
	}
	rule.Tools, rule.ToolsPlace = d.toolPatterns(b), rule.Place
	if b.Tools != nil {
		rule.ToolsPlace = diag.Place(b.Tools.Expr.Range())
	}
	if b.Verdict == nil {
		d.mistake(b.NameRange, "Rule without a verdict", `Add the verdict: verdict = "deny", or "allow", "ask" or "confirm".`)
	}
	rule.Verdict, _ = d.verdict(b.Verdict)
	rule.Approvers = d.approvers(b.Approvers, rule.Verdict == policy.Confirm)
	if rule.Locked && (rule.Verdict == policy.Allow || rule.Verdict == policy.Deny) {
		d.mistake(b.Locked.NameRange, "Useless locked", "It keeps the mode and grants from softening ask and confirm. They never change allow and deny. Remove it.")
	}
	return rule, len(d.mistakes) == before
}

// ruleTests reads the tests of a rule.
func (d *decoder) ruleTests(blocks []testBlock) []policy.RuleTest {
	firsts := map[string]hcl.Range{}
	var tests []policy.RuleTest
	for _, b := range blocks {
		d.unique("test", b.Name, b.NameRange, firsts)
		if !isLabel(b.Name, maxLabel) {
			d.mistake(b.NameRange, "Invalid test name", labelExpected, "Reports", maxLabel)
		}
		test := policy.RuleTest{Name: b.Name, Place: diag.Place(b.NameRange), Arguments: json.RawMessage("{}")}
		test.Tool, _ = d.text(b.Tool, "the name of a tool")
		test.User, _ = d.text(b.User, "the name of a user")
		test.Groups = d.groups.Join(auth.Caller{User: test.User}).Groups
		test.Expect, _ = d.verdict(b.Expect)
		if b.Expect == nil {
			d.mistake(b.NameRange, "Test without a verdict", `Add the expected verdict: expect = "deny", or "allow", "ask" or "confirm".`)
		}
		if !d.absent(b.Args) {
			if value, ok := d.eval(b.Args.Expr); ok {
				text, err := ctyjson.Marshal(value, value.Type())
				if err != nil || !value.Type().IsObjectType() {
					d.mistake(b.Args.Expr.Range(), "Wrong type", "Expected the arguments of a call such as { path = \"a.txt\" } for args, not %s.", typeName(value))
					continue
				}
				test.Arguments = text
			}
		}
		tests = append(tests, test)
	}
	return tests
}

// toolPattern matches the patterns that can match the name of a tool.
var toolPattern = lazyregexp.New(`^[a-z0-9_*?\[\]^\\-]{1,200}$`)

// toolPatterns reads the tools of a rule.
func (d *decoder) toolPatterns(b ruleBlock) []string {
	const expected = `a list of tools such as ["shell_*", "write_file"]`
	if b.Tools == nil {
		d.mistake(b.NameRange, "Rule without tools", `Add the tools that the rule applies to: tools = ["shell_*"], or ["*"] for all.`)
		return nil
	}
	var patterns []string
	before := len(d.mistakes)
	words := d.words(b.Tools, expected)
	for _, w := range words {
		if _, err := path.Match(w.text, ""); err != nil || !toolPattern().MatchString(w.text) {
			d.mistake(w.expr.Range(), "Not a pattern", "Expected the name of a tool: lower-case letters, digits and _, and * for any part, not %s.", quote(w.expr, w.text))
			continue
		}
		patterns = d.addTo(patterns, w.text, w)
	}
	if len(words) == 0 && len(d.mistakes) == before {
		d.mistake(b.Tools.Expr.Range(), "Rule without tools", "The list is empty, so the rule applies to no tool. Name one, or remove the rule.")
	}
	return patterns
}

// written returns a part of a file as it is written.
func (d *decoder) written(at hcl.Range) string {
	file := d.files[at.Filename]
	if file == nil {
		return ""
	}
	return string(at.SliceBytes(file.Bytes))
}

// checkReachable reports rules that can never decide, because a rule without a
// condition decides every call that they apply to.
func (d *decoder) checkReachable(rules []policy.Rule, at []hcl.Range) {
	for i := range rules {
		for j := range rules {
			if other := &rules[j]; shadows(rules, i, j) {
				d.mistake(at[i], "Unreachable rule", "This rule never decides: rule %q at %s says %q for all its tools, whatever their arguments. Remove one of them, or add a condition to that one.",
					other.Name, other.Place, other.Verdict)
				break
			}
		}
	}
}

// shadows reports whether rule i never decides because of rule j: j has no
// condition, covers all tools of i, and is stricter, or as strict and earlier.
func shadows(rules []policy.Rule, i, j int) bool {
	rule, other := &rules[i], &rules[j]
	decides := other.Verdict > rule.Verdict || other.Verdict == rule.Verdict && j < i
	if i == j || rule.Shadow || other.When != nil || other.Shadow || !decides {
		return false
	}
	if rule.Locked && !other.Locked && other.Verdict != policy.Deny {
		return false // it still keeps grants out
	}
	return coversAll(other.Tools, rule.Tools)
}

// coversAll reports whether one of others covers each of the patterns.
func coversAll(others, patterns []string) bool {
	for _, pattern := range patterns {
		if !slices.ContainsFunc(others, func(other string) bool { return covers(other, pattern) }) {
			return false
		}
	}
	return true
}

// covers reports whether every name that matches pattern also matches other, as
// far as it can tell.
func covers(other, pattern string) bool {
	const wildcards = `*?[\`
	if other == pattern {
		return true
	}
	prefix, open := strings.CutSuffix(other, "*")
	if open && !strings.ContainsAny(prefix, wildcards) {
		if i := strings.IndexAny(pattern, wildcards); i >= 0 {
			pattern = pattern[:i] // every name begins with it
		}
		return strings.HasPrefix(pattern, prefix)
	}
	if strings.ContainsAny(pattern, wildcards) {
		return false
	}
	ok, err := path.Match(other, pattern)
	return ok && err == nil
}
