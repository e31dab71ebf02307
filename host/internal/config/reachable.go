package config

import (
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

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
