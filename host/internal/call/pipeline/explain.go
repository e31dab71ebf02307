package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Explanation is the decision about a call, without making the call.
type Explanation struct {
	policy.Decision

	Tool      string          `json:"tool"`
	Plugin    string          `json:"plugin"`
	Tier      tool.Tier       `json:"tier"`
	Arguments json.RawMessage `json:"arguments"`
	// Stopped is why the call would not run now, whatever the decision: an admin's stop covers it.
	Stopped string `json:"stopped,omitempty"`
	// Repairs are the changes that made the arguments fit the schema.
	Repairs []schema.Repair `json:"repairs,omitempty"`
	// Commands are the simple commands in arguments that are shell commands. Problems say why
	// other commands may run, too.
	Commands []command.Segment `json:"commands,omitempty"`
	Problems []command.Problem `json:"problems,omitempty"`
}

// Explain decides about a call without running it, asking a person or charging a rate limit.
// If the tool or its arguments are wrong, it returns the error that the call would return.
func (p *Pipeline) Explain(req Request) (Explanation, error) {
	c := &call{Request: p.Unwrap(req)}
	if err := p.lookUp(c); err != nil {
		return Explanation{}, err
	}
	if err := c.check(); err != nil {
		return Explanation{}, err
	}
	e := Explanation{
		Decision: p.decision(c), Tool: c.entry.Spec.Name, Plugin: c.entry.Plugin, Tier: c.tier,
		Arguments: p.recordable(c), Repairs: c.arguments.Repairs,
	}
	if err := p.refuseStopped(c); err != nil {
		e.Stopped = tool.AsError(err).Message
	}
	if e.Verdict != policy.Deny {
		e.Notes = append(e.Notes, p.outside(c)...)
	}
	for _, read := range c.commands {
		e.Commands, e.Problems = append(e.Commands, read.Line.Segments...), append(e.Problems, read.Line.Problems...)
	}
	return e, nil
}

// Usual is the decision about calls of one tier, unless a rule or something in their arguments
// decides otherwise.
type Usual struct {
	Tier    tool.Tier      `json:"tier"`
	Verdict policy.Verdict `json:"verdict"`
	Rule    string         `json:"rule"`
	Where   string         `json:"where,omitempty"`
}

// Usual returns the usual decision for each tier of a tool, and the rules that may decide
// otherwise.
func (p *Pipeline) Usual(e *catalog.Entry) (usual []Usual, rules []string) {
	for _, tier := range e.Tiers() {
		d, about := p.settings.Load().Policy.Usual(policy.Input{Plugin: e.Plugin, Tool: e.Spec.Name, Tier: tier, Asks: e.Spec.Asks})
		usual, rules = append(usual, Usual{tier, d.Verdict, d.Rule, d.Where}), about
	}
	return usual, rules
}

// outside describes the paths of a call that its plugin probably refuses. The host cannot be
// certain, because the plugin decides; those that open files with the sdk refuse them all.
func (p *Pipeline) outside(c *call) (notes []string) {
	settings := p.current(c)
	in := policy.Input{Plugin: c.entry.Plugin, Folders: settings.resolved, Paths: settings.paths(c)}
	named := map[string]bool{}
	for _, path := range settings.Policy.Outside(&in) {
		what := tool.VisibleName(path.Name)
		if named[path.Name] {
			continue // the target of its link
		}
		named[path.Name] = true
		if path.Absolute != settings.absolute(path.Name) {
			what += ", which leads to " + tool.VisibleName(path.Absolute)
		}
		notes = append(notes, fmt.Sprintf("the plugin %s probably refuses %s: it is outside of the workspace", c.entry.Plugin, what))
	}
	return notes
}

// RuleCheck is the result of checking rules and their tests against the tools.
type RuleCheck struct {
	// Mistakes are wrong rules and failed tests.
	Mistakes []RuleMistake `json:"mistakes"`
	// Tests are all tests, in the order of the configuration.
	Tests []TestResult `json:"tests"`
	// NotChecked are the rules and tests about unknown tools, whose plugins have never
	// started.
	NotChecked []string `json:"not_checked"`
}

// RuleMistake is a mistake at a place of the configuration.
type RuleMistake struct {
	Place string `json:"place"`
	Text  string `json:"text"`
	// Summary is the kind of mistake. Word is the quoted name at its place.
	Summary string `json:"-"`
	Word    string `json:"-"`
}

// TestResult is the result of the test of a rule.
type TestResult struct {
	Rule   string         `json:"rule"`
	Name   string         `json:"name"`
	Place  string         `json:"place"`
	Expect policy.Verdict `json:"expect"`
	// Decision is the policy's decision; nil if there is none.
	Decision *policy.Decision `json:"decision,omitempty"`
	// Problem says why the test fails; "" if it passes or was not checked.
	Problem    string `json:"problem,omitempty"`
	NotChecked bool   `json:"not_checked,omitempty"`
}

// CheckRules checks the rules of a configuration against the tools, and runs their
// tests. disabled are the names of further tools, of plugins that are disabled. complete reports
// that the tools of all plugins are known.
func CheckRules(rules []policy.Rule, tools *catalog.Catalog, settings Settings, disabled []string, complete bool) RuleCheck {
	settings.resolve()
	check := RuleCheck{Mistakes: []RuleMistake{}, Tests: []TestResult{}, NotChecked: []string{}}
	for i := range rules {
		rule := &rules[i]
		about := slices.DeleteFunc(slices.Clone(tools.Entries()), func(e *catalog.Entry) bool { return !rule.Covers(e.Spec.Name) })
		if complete {
			check.names(rule, tools, disabled)
		} else if len(about) == 0 {
			check.NotChecked = append(check.NotChecked, fmt.Sprintf("rule %q", rule.Name))
		} else {
			check.unknown(rule, about)
		}
		if !waiting(rule, tools) { // its arguments may be those of a tool that waits
			check.arguments(rule, about)
		}
		for _, test := range rule.Tests {
			result := settings.test(rule, &test, about, tools, complete)
			check.Tests = append(check.Tests, result)
			if result.Problem != "" {
				check.mistake("Test that fails", test.Place, test.Name, "rule %q, test %q: %s", rule.Name, test.Name, result.Problem)
			}
			if result.NotChecked {
				check.NotChecked = append(check.NotChecked, fmt.Sprintf("test %q of rule %q", test.Name, rule.Name))
			}
		}
	}
	return check
}

// waiting reports whether a tool that a rule is about may be offered later.
func waiting(rule *policy.Rule, tools *catalog.Catalog) bool {
	return slices.ContainsFunc(tools.Refused(), func(refusal catalog.Refusal) bool { return refusal.Waits() && rule.Covers(refusal.Tool) })
}

func (r *RuleCheck) mistake(summary, place, word, text string, args ...any) {
	r.Mistakes = append(r.Mistakes, RuleMistake{Place: place, Text: fmt.Sprintf(text, args...), Summary: summary, Word: word})
}

// unknown adds to NotChecked the names in a rule that no known tool has.
func (r *RuleCheck) unknown(rule *policy.Rule, about []*catalog.Entry) {
	for _, name := range rule.Tools {
		one := policy.Rule{Tools: []string{name}}
		if !slices.ContainsFunc(about, func(e *catalog.Entry) bool { return one.Covers(e.Spec.Name) }) {
			r.NotChecked = append(r.NotChecked, fmt.Sprintf("%q of rule %q", name, rule.Name))
		}
	}
}

// names reports names and patterns in a rule that match no tool and so have no effect.
func (r *RuleCheck) names(rule *policy.Rule, tools *catalog.Catalog, disabled []string) {
	var all []string
	plugins := false // whether any plugin has tools
	for _, entry := range tools.Entries() {
		all = append(all, entry.Spec.Name)
		plugins = plugins || !entry.OfHost()
	}
	for _, name := range rule.Tools {
		if name == catalog.CallTool {
			r.mistake("Rule without effect", rule.ToolsPlace, name, "rule %q: no call is one of %s: rules decide about the tool that it calls; name that tool", rule.Name, name)
			continue
		}
		one := policy.Rule{Tools: []string{name}}
		if slices.ContainsFunc(all, one.Covers) || slices.ContainsFunc(disabled, one.Covers) || slices.ContainsFunc(tools.Refused(), func(refusal catalog.Refusal) bool {
			return !refusal.Unknown && one.Covers(refusal.Tool) // it exists, and is left out
		}) {
			continue
		}
		if strings.ContainsAny(name, `*?[\`) {
			if plugins {
				r.mistake("Unknown tool", rule.ToolsPlace, name, "rule %q: there is no tool that %q matches", rule.Name, name)
			}
			continue
		}
		r.mistake("Unknown tool", rule.ToolsPlace, name, "rule %q: there is no tool %q%s", rule.Name, name, nearest(name, append(all, disabled...)))
	}
}

// nearest suggests a similar name.
func nearest(name string, all []string) string {
	if near := schema.Nearest(name, all); len(near) > 0 {
		return fmt.Sprintf("; did you mean %q?", near[0])
	}
	return ""
}

// arguments reports arguments in a rule that none of its tools has.
func (r *RuleCheck) arguments(rule *policy.Rule, about []*catalog.Entry) {
	if len(about) == 0 {
		return
	}
	all := map[string]bool{}
	for _, entry := range about {
		for name := range entry.Schema.Names() {
			all[name] = true
		}
	}
	for _, argument := range rule.Arguments {
		if all[argument.Name] {
			continue
		}
		var names []string
		for name := range all {
			names = append(names, name)
		}
		r.mistake("Unknown argument", argument.Place, "", "rule %q: none of its tools has an argument %q%s", rule.Name, argument.Name, nearest(argument.Name, names))
	}
}

// test runs one test: it decides about the call by the whole policy, without grants.
func (s *Settings) test(rule *policy.Rule, test *policy.RuleTest, about []*catalog.Entry, tools *catalog.Catalog, complete bool) TestResult {
	result := TestResult{Rule: rule.Name, Name: test.Name, Place: test.Place, Expect: test.Expect}
	c := &call{Request: Request{Caller: auth.Caller{User: test.User, Roles: auth.Agent, Groups: test.Groups}, Arguments: test.Arguments}}
	switch {
	case test.Tool == "" && len(about) > 0:
		c.entry = about[0]
	case test.Tool != "" && !rule.Covers(test.Tool):
		result.Problem = fmt.Sprintf("the rule is not about the tool %s", test.Tool)
		return result
	case test.Tool != "":
		c.entry, _ = tools.Lookup(test.Tool) // an unknown tool is handled below
	}
	if c.entry == nil {
		waits := slices.ContainsFunc(tools.Refused(), func(refusal catalog.Refusal) bool {
			return refusal.Waits() && rule.Covers(refusal.Tool) && (test.Tool == "" || test.Tool == refusal.Tool)
		})
		if result.NotChecked = !complete || waits; !result.NotChecked {
			result.Problem = "there is no such tool"
		}
		return result
	}
	if s.Own != nil {
		dir, err := s.Own(cmp.Or(c.Caller.User, "somebody"))
		if err != nil {
			result.Problem = err.Error()
			return result
		}
		s = s.in(dir)
	}
	if err := c.check(); err != nil {
		result.Problem = fmt.Sprintf("the tool %s does not take these arguments: %v", c.entry.Spec.Name, err)
		return result
	}
	in := s.input(c)
	decision := s.deferred(c, s.Policy.Decide(in))
	result.Decision = &decision
	if applies, _ := rule.Applies(&in); test.Expect == rule.Verdict && !rule.Shadow && !applies { // the notes contain the error
		result.Problem = fmt.Sprintf("the rule does not apply to the call, so that the test says nothing of it; the call is decided %q by %s", decision.Verdict, decidedBy(decision))
		return result
	}
	if decision.Verdict != test.Expect {
		result.Problem = fmt.Sprintf("the call is decided %q by %s, expected %q", decision.Verdict, decidedBy(decision), test.Expect)
		for _, note := range decision.Notes {
			result.Problem += "; " + note
		}
	}
	return result
}
