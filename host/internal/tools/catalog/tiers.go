package catalog

import (
	"fmt"
	"slices"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// tiers decides the tier of single calls.
type tiers struct {
	base  tool.Tier
	floor tool.Tier // no rule goes below: the admin's setting, or the ceiling
	rules []tierRule
}

// tierRule is a compiled [tool.TierRule].
type tierRule struct {
	property string
	equals   any
	present  bool // its presence is enough
	tier     tool.Tier
}

// compileTiers reads the tier rules of a tool. The error completes a sentence that ends with
// "refused because".
func compileTiers(rules []tool.TierRule, base, floor tool.Tier, properties map[string]bool) (tiers, error) {
	t := tiers{base: base, floor: floor}
	for _, rule := range rules {
		compiled := tierRule{property: rule.Property, present: rule.Equals == nil, tier: rule.Tier}
		if rule.Tier < tool.ReadOnly || rule.Tier > tool.Privileged {
			return tiers{}, fmt.Errorf("the tier rule for %q states no tier", rule.Property)
		}
		if !properties[rule.Property] {
			return tiers{}, fmt.Errorf("a tier rule names %q, which is no property of the input schema", rule.Property)
		}
		if rule.Equals != nil {
			value, err := schema.Read(rule.Equals)
			if err != nil {
				return tiers{}, fmt.Errorf("the tier rule for %q compares with a value that is not JSON: %s", rule.Property, err.Message)
			}
			compiled.equals = value
		}
		t.rules = append(t.rules, compiled)
	}
	return t, nil
}

// raised returns the tiers if only the claim read_only counts: calls with another tier have at least
// the ceiling.
func (t tiers) raised(ceiling tool.Tier) tiers {
	raise := func(claim tool.Tier) tool.Tier {
		if claim == tool.ReadOnly {
			return claim
		}
		return max(claim, ceiling)
	}
	t.base = raise(t.base)
	for i := range t.rules {
		t.rules[i].tier = raise(t.rules[i].tier)
	}
	return t
}

// of returns the tier of a call; the first matching rule counts.
func (t *tiers) of(arguments map[string]any) tool.Tier {
	for _, rule := range t.rules {
		value, given := arguments[rule.property]
		if given && (rule.present || schema.Equal(value, rule.equals)) {
			return max(rule.tier, t.floor)
		}
	}
	return t.base
}

// highest returns the highest tier of any call.
func (t *tiers) highest() tool.Tier {
	highest := t.base
	for _, rule := range t.rules {
		highest = max(highest, rule.tier)
	}
	return highest
}

// Tiers returns the tiers that calls of the tool can have and run, the lowest first.
func (e *Entry) Tiers() []tool.Tier {
	all := []tool.Tier{e.Tier}
	for _, rule := range e.tiers.rules {
		if tier := max(rule.tier, e.tiers.floor); tier <= e.ceiling {
			all = append(all, tier)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TierOf returns the tier of a call with arguments that have passed [schema.Schema.Check]. The
// error, of code [tool.PermissionDenied], says that the tier is above the plugin's ceiling.
func (e *Entry) TierOf(arguments map[string]any) (tool.Tier, *tool.Error) {
	tier := e.tiers.of(arguments)
	if reason := tooHigh(tier, e.ceiling); reason != "" {
		return tier, tool.Errorf(tool.PermissionDenied, "%s with these arguments is not allowed: %s", e.Spec.Name, reason)
	}
	return tier, nil
}

// tooHighError is the reason of [tooHigh] for a tool that is not offered.
type tooHighError string

func (e tooHighError) Error() string { return string(e) }

// tooHigh returns why a tier is not allowed, or "".
func tooHigh(tier, ceiling tool.Tier) string {
	if tier <= ceiling {
		return ""
	}
	return fmt.Sprintf("its tier %s is above %s, which is the most that the configuration lets its plugin do", tier, ceiling)
}
