package policy

import "fmt"

// Usual returns the decision about calls of a tool by their tier alone: about those that no rule
// and nothing in their arguments decides. rules are the rules about the tool, with their places.
func (r *Rules) Usual(in Input) (d Decision, rules []string) {
	for i := range r.opts.Rules {
		rule := &r.opts.Rules[i]
		if rule.Shadow || !rule.Covers(in.Tool) {
			continue
		}
		text := fmt.Sprintf("rule %q", rule.Name)
		if rule.Place != "" {
			text += " at " + rule.Place
		}
		rules = append(rules, text)
	}
	bare := Rules{opts: r.opts, secrets: r.secrets}
	bare.opts.Rules = nil
	return bare.Decide(in), rules
}
