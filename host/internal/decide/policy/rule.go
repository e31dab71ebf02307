package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
)

// Rule is one rule of the administrator: a verdict on calls of certain tools if a condition holds.
type Rule struct {
	Name string `json:"name"`
	// Tools are patterns of tool names; "*" matches any part of a name.
	Tools []string `json:"tools"`
	// When is the condition; nil always holds. If it returns an error, a rule that allows does not
	// apply, and any other does.
	When Condition `json:"-"`
	// Text is the condition as written; "" for none.
	Text    string  `json:"when,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Approvers is how many different people must approve a call that the rule confirms; 0 means one.
	Approvers int `json:"approvers,omitempty"`
	// Reason is for the caller; "" for none.
	Reason string `json:"reason,omitempty"`
	// Locked keeps the mode and grants from softening the verdict.
	Locked bool `json:"locked,omitempty"`
	// Shadow keeps the rule from deciding; its verdict is only reported.
	Shadow bool `json:"shadow,omitempty"`
	// Place is where it is configured, and ToolsPlace where its Tools are.
	Place      string `json:"-"`
	ToolsPlace string `json:"-"`
	// Arguments are the arguments that the condition names.
	Arguments []RuleArgument `json:"-"`
	// Tests are calls with the verdicts that the whole policy must give.
	Tests []RuleTest `json:"-"`
}

// RuleArgument is an argument that a condition names.
type RuleArgument struct{ Name, Place string }

// RuleTest is a call with its expected verdict.
type RuleTest struct {
	Name string
	// Tool is the tool's name; "" is any that the rule is about.
	Tool string
	// Arguments are a JSON object; User is the caller, with these Groups.
	Arguments json.RawMessage
	User      string
	Groups    []string
	Expect    Verdict
	Place     string
}

// Condition reports whether a rule applies to a call.
type Condition func(*Input) (bool, error)

// check refuses rules that no configuration produces.
func (r *Rule) check() error {
	if r.Name == "" || len(r.Tools) == 0 {
		return errors.New("policy: a rule has a name and tools")
	}
	if r.Verdict < Allow || r.Verdict > Deny {
		return fmt.Errorf("policy: rule %q has no verdict", r.Name)
	}
	for _, pattern := range r.Tools {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("policy: rule %q: the pattern %q: %w", r.Name, pattern, err)
		}
	}
	return nil
}

// Covers reports whether the rule covers a tool.
func (r *Rule) Covers(tool string) bool {
	return slices.ContainsFunc(r.Tools, func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok && err == nil
	})
}

// Applies reports whether the rule's condition holds for a call. If it cannot be evaluated, Applies
// returns the error, and true unless the rule allows.
func (r *Rule) Applies(in *Input) (bool, error) {
	if r.When == nil {
		return true, nil
	}
	holds, err := r.When(in)
	if err != nil {
		return r.Verdict != Allow, err
	}
	return holds, nil
}

// decision returns the rule's decision about a call.
func (r *Rule) decision(in *Input) Decision {
	d := Decision{Verdict: r.Verdict, Rule: fmt.Sprintf("rule %q", r.Name), Where: r.Place, Reason: r.Reason}
	switch r.Verdict { //nolint:exhaustive // the others say nothing more
	case Allow:
		d.By = ByConfig
	case Deny:
		d.Change = fmt.Sprintf("another verdict or condition of rule %q", r.Name)
		if d.Reason == "" {
			d.Reason = fmt.Sprintf("the configuration denies %s", in.Tool)
		}
	}
	return d
}

// rulesOf returns the rules for a tool, in the order of the configuration.
func (r *Rules) rulesOf(tool string) []*Rule {
	if len(r.opts.Rules) == 0 {
		return nil
	}
	if known, ok := r.byTool.Load(tool); ok {
		about, _ := known.([]*Rule) // nothing else is stored
		return about
	}
	var about []*Rule
	for i := range r.opts.Rules {
		if rule := &r.opts.Rules[i]; rule.Covers(tool) {
			about = append(about, rule)
		}
	}
	r.byTool.Store(tool, about) // bounded: only existing tools are decided about
	return about
}

// outcome is the result of the rules for a call.
type outcome struct {
	deny, ask, allow *Decision // the first of each, of ask the strictest
	approvers        int       // the most that a rule wants
	locked           bool      // the source of ask cannot be softened
	notes            []string  // the effects of shadows, and conditions that could not be evaluated
}

// consult evaluates the rules for a call.
func (r *Rules) consult(in *Input) outcome {
	var o outcome
	for _, rule := range r.rulesOf(in.Tool) {
		applies, err := rule.Applies(in)
		if err != nil {
			o.notes = append(o.notes, fmt.Sprintf("the condition of rule %q at %s cannot be evaluated for this call: %v", rule.Name, rule.Place, err))
		}
		if !applies {
			continue
		}
		d := rule.decision(in)
		if rule.Shadow {
			o.notes = append(o.notes, fmt.Sprintf("rule %q at %s would %s", rule.Name, rule.Place, rule.Verdict))
			continue
		}
		o.approvers = max(o.approvers, rule.Approvers)
		switch {
		case d.Verdict == Deny && o.deny == nil:
			o.deny = &d
		case (d.Verdict == Ask || d.Verdict == Confirm) && (o.ask == nil || d.Verdict > o.ask.Verdict):
			o.ask, o.locked = &d, o.locked || rule.Locked
		case d.Verdict == Ask || d.Verdict == Confirm:
			o.locked = o.locked || rule.Locked
		case d.Verdict == Allow && o.allow == nil:
			o.allow = &d
		}
	}
	return o
}
