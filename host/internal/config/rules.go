package config

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/toolhost/toolhost/host/internal/policy"
)

// maxRules bounds the rules of a configuration.
const maxRules = 10_000

// rules reads the rule blocks.
func (d *decoder) rules(blocks []ruleBlock) []policy.Rule {
	firsts := map[string]hcl.Range{}
	var rules []policy.Rule
	var at []hcl.Range
	for i, b := range blocks {
		if i == maxRules {
			d.mistake(b.Range, "Too many rules", "There are more than %d rules. One rule can name several tools, with patterns.", maxRules)
			break
		}
		if first, taken := firsts[b.Name]; taken {
			d.mistake(b.NameRange, "Duplicate rule", "There is a rule %q at %s already; each needs a name of its own.", b.Name, place(first))
			continue
		}
		firsts[b.Name] = b.NameRange
		if rule, ok := d.rule(b); ok {
			rules, at = append(rules, rule), append(at, b.NameRange)
		}
	}
	for i := range rules {
		d.checkReachable(rules, i, at[i])
	}
	return rules
}

// rule reads one rule.
func (d *decoder) rule(b ruleBlock) (policy.Rule, bool) {
	before := len(d.mistakes)
	rule := policy.Rule{
		Name: b.Name, Place: place(b.NameRange), Locked: d.flag(b.Locked, false), Shadow: d.flag(b.Shadow, false),
	}
	rule.When, rule.Arguments = d.condition(b.When)
	rule.Tests = d.ruleTests(b.Tests)
	if strings.TrimSpace(b.Name) == "" {
		d.mistake(b.NameRange, "Rule without a name", "Expected a name such as \"no-network\", by which refusals speak of the rule.")
	}
	if b.When != nil {
		rule.Text = d.written(b.When.Expr.Range())
	}
	rule.Reason, _ = d.text(b.Reason, "a text")
	rule.Tools = d.toolPatterns(b)
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
			d.mistake(b.NameRange, "Duplicate test", "There is a test %q at %s already; each needs a name of its own.", b.Name, place(first))
		}
		firsts[b.Name] = b.NameRange
		test := policy.RuleTest{Name: b.Name, Place: place(b.NameRange), Arguments: json.RawMessage("{}")}
		test.Tool, _ = d.text(b.Tool, "the name of a tool")
		test.User, _ = d.text(b.User, "the name of a user")
		test.Expect, _ = d.verdict(b.Expect)
		if b.Expect == nil {
			d.mistake(b.NameRange, "Test without a verdict", `Say what is to happen to the call: expect = "deny", or "allow", "ask" or "confirm".`)
		}
		if b.Args != nil {
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
		if _, err := path.Match(w.text, ""); err != nil || w.text == "" {
			d.mistake(w.expr.Range(), "Not a pattern", "Expected the name of a tool, in which * stands for any part, not %s.", quote(w.expr, w.text))
			continue
		}
		patterns = d.addTo(patterns, w.text, w)
	}
	if len(words) == 0 {
		d.mistake(b.Tools.Expr.Range(), "Rule without tools", "The list is empty, so that the rule is about no tool. Name one, or remove the rule.")
	}
	return patterns
}

// checkReachable finds out whether a rule can never decide, since another one without a
// condition decides all that it is about: a stricter one, or an equal one before it.
func (d *decoder) checkReachable(rules []policy.Rule, i int, at hcl.Range) {
	rule := &rules[i]
	if rule.Shadow {
		return
	}
	for j := range rules {
		other := &rules[j]
		decides := other.Verdict > rule.Verdict || other.Verdict == rule.Verdict && j < i
		if j == i || other.When != nil || other.Shadow || !decides || !coversAll(other.Tools, rule.Tools) {
			continue
		}
		if rule.Locked && !other.Locked && other.Verdict != policy.Deny {
			continue // it still keeps grants out
		}
		d.mistake(at, "Unreachable rule", "Rule %q at %s says %q of all these tools, whatever their arguments, so that this rule never decides. Remove one of them, or give that one a condition.",
			other.Name, other.Place, other.Verdict)
		return
	}
}

// coversAll reports whether each pattern of tools is covered by one of others.
func coversAll(others, patterns []string) bool {
	for _, pattern := range patterns {
		covered := false
		for _, other := range others {
			covered = covered || covers(other, pattern)
		}
		if !covered {
			return false
		}
	}
	return true
}

// covers reports whether every name that matches pattern is known to match other.
func covers(other, pattern string) bool {
	if other == pattern || other == "*" {
		return true
	}
	if prefix, ok := strings.CutSuffix(other, "*"); ok && !strings.ContainsAny(prefix, `*?[\`) {
		return strings.HasPrefix(pattern, prefix) && !strings.ContainsAny(pattern[:len(prefix)], `*?[\`)
	}
	if strings.ContainsAny(pattern, `*?[\`) {
		return false
	}
	ok, err := path.Match(other, pattern)
	return ok && err == nil
}

// written is a part of a file as it is written.
func (d *decoder) written(at hcl.Range) string {
	file := d.files[at.Filename]
	if file == nil {
		return ""
	}
	return string(at.SliceBytes(file.Bytes))
}
