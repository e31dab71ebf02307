package config

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/toolhost/toolhost/host/internal/config/condition"
	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// rules reads the rule blocks.
func (d *decoder) rules(blocks []ruleBlock) []policy.Rule {
	firsts := map[string]hcl.Range{}
	var rules []policy.Rule
	var at []hcl.Range
	conditions := condition.NewCompiler(d.ctx.Variables["local"])
	for _, b := range blocks {
		if first, taken := firsts[b.Name]; taken {
			d.mistake(b.NameRange, "Duplicate rule", "There is a rule %q at %s already; each needs a name of its own.", b.Name, diag.Place(first))
			continue
		}
		firsts[b.Name] = b.NameRange
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

	labelExpected = "%s show this name in a line: expected 1 to %d bytes, all of which can be seen, without space around them."
)

// rule reads one rule.
func (d *decoder) rule(b ruleBlock, conditions *condition.Compiler) (policy.Rule, bool) {
	before := len(d.mistakes)
	rule := policy.Rule{
		Name: b.Name, Place: diag.Place(b.NameRange), Locked: d.flag(b.Locked, false), Shadow: d.flag(b.Shadow, false),
	}
	if b.When != nil {
		if expr, ok := b.When.Expr.(hclsyntax.Expression); ok {
			d.warnCondition(expr)
		}
		var diags hcl.Diagnostics
		rule.When, rule.Arguments, diags = conditions.Compile(b.When.Expr)
		rule.Text = d.written(b.When.Expr.Range())
		d.mistakes = append(d.mistakes, diags...)
	}
	rule.Tests = d.ruleTests(b.Tests)
	switch {
	case strings.TrimSpace(b.Name) == "":
		d.mistake(b.NameRange, "Rule without a name", "Expected a name such as \"no-network\", by which refusals speak of the rule.")
	case !isLabel(b.Name, maxLabel):
		d.mistake(b.NameRange, "Invalid rule name", labelExpected, "Refusals and approvals", maxLabel)
	}
	rule.Reason, _ = d.text(b.Reason, "a text")
	if d.secrets.in(rule.Reason) != rule.Reason {
		d.mistake(b.Reason.Expr.Range(), "A secret in a reason", "It holds what env() or file() returned, and whoever makes the call reads it. Leave that out.")
	}
	if tool.Visible(rule.Reason) != rule.Reason || len(rule.Reason) > maxReason {
		d.mistake(b.Reason.Expr.Range(), "Invalid reason", "Whoever makes the call reads it: expected at most %d bytes, all of which can be seen.", maxReason)
	}
	rule.Tools, rule.ToolsPlace = d.toolPatterns(b), rule.Place
	if b.Tools != nil {
		rule.ToolsPlace = diag.Place(b.Tools.Expr.Range())
	}
	if b.Verdict == nil {
		d.mistake(b.NameRange, "Rule without a verdict", `Say what is to happen: verdict = "deny", or "allow", "ask" or "confirm".`)
	}
	rule.Verdict, _ = d.verdict(b.Verdict)
	if rule.Locked && (rule.Verdict == policy.Allow || rule.Verdict == policy.Deny) {
		d.mistake(b.Locked.NameRange, "Useless locked", "It keeps the mode and grants from softening ask and confirm. What is allowed or denied stays so anyway.")
	}
	return rule, len(d.mistakes) == before
}

// ruleTests reads the tests of a rule.
func (d *decoder) ruleTests(blocks []testBlock) []policy.RuleTest {
	firsts := map[string]hcl.Range{}
	var tests []policy.RuleTest
	for _, b := range blocks {
		if first, taken := firsts[b.Name]; taken {
			d.mistake(b.NameRange, "Duplicate test", "There is a test %q at %s already; each needs a name of its own.", b.Name, diag.Place(first))
		}
		firsts[b.Name] = b.NameRange
		if !isLabel(b.Name, maxLabel) {
			d.mistake(b.NameRange, "Invalid test name", labelExpected, "Reports", maxLabel)
		}
		test := policy.RuleTest{Name: b.Name, Place: diag.Place(b.NameRange), Arguments: json.RawMessage("{}")}
		test.Tool, _ = d.text(b.Tool, "the name of a tool")
		test.User, _ = d.text(b.User, "the name of a user")
		test.Expect, _ = d.verdict(b.Expect)
		if b.Expect == nil {
			d.mistake(b.NameRange, "Test without a verdict", `Say what is to happen to the call: expect = "deny", or "allow", "ask" or "confirm".`)
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

// toolPattern is what the name of a tool can match: another one would be of no use.
var toolPattern = regexp.MustCompile(`^[a-z0-9_*?\[\]^\\-]{1,200}$`)

// toolPatterns reads which tools a rule is about.
func (d *decoder) toolPatterns(b ruleBlock) []string {
	const expected = `a list of tools such as ["shell_*", "write_file"]`
	if b.Tools == nil {
		d.mistake(b.NameRange, "Rule without tools", `Say which tools it is about: tools = ["shell_*"], or ["*"] for all.`)
		return nil
	}
	var patterns []string
	words := d.words(b.Tools, expected)
	for _, w := range words {
		if _, err := path.Match(w.text, ""); err != nil || !toolPattern.MatchString(w.text) {
			d.mistake(w.expr.Range(), "Not a pattern", "Expected the name of a tool, of lower-case letters, digits and _, in which * stands for any part, not %s.", quote(w.expr, w.text))
			continue
		}
		patterns = d.addTo(patterns, w.text, w)
	}
	if len(words) == 0 {
		d.mistake(b.Tools.Expr.Range(), "Rule without tools", "The list is empty, so that the rule is about no tool. Name one, or remove the rule.")
	}
	return patterns
}

// written is a part of a file as it is written.
func (d *decoder) written(at hcl.Range) string {
	file := d.files[at.Filename]
	if file == nil {
		return ""
	}
	return string(at.SliceBytes(file.Bytes))
}
