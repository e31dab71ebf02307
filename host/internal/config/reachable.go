package config

import (
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// checkReachable finds rules that can never decide, since another one without a
// condition decides all that they are about.
func (d *decoder) checkReachable(rules []policy.Rule, at []hcl.Range) {
	certain := newCertain(rules)
	for i := range rules {
		if other := certain.decides(i); other != nil {
			d.mistake(at[i], "Unreachable rule", "Rule %q at %s says %q of all these tools, whatever their arguments, so that this rule never decides. Remove one of them, or give that one a condition.",
				other.Name, other.Place, other.Verdict)
		}
	}
}

// shadows reports whether rule i never decides because of rule j: a stricter one, or an
// equal one before it, which holds for all that rule i is about.
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

// certain holds the rules without a condition by their patterns of tools, so that not
// every rule must be held against each of them.
type certain struct {
	rules    []policy.Rule
	byText   map[string][]int // by each pattern as it is written
	byPrefix map[string][]int // by what stands before the * that ends a pattern
	others   []pattern        // with * and the like elsewhere
}

// pattern is one that covers no more than single names that are known.
type pattern struct {
	text string
	// part is the longest part of it that stands for itself.
	part string
	rule int
}

func newCertain(rules []policy.Rule) *certain {
	c := &certain{rules: rules, byText: map[string][]int{}, byPrefix: map[string][]int{}}
	type kind struct {
		tools   string
		verdict policy.Verdict
		locked  bool
	}
	seen := map[kind]bool{}
	for i := range rules {
		rule := &rules[i]
		same := kind{strings.Join(rule.Tools, "\x00"), rule.Verdict, rule.Locked}
		if rule.When != nil || rule.Shadow || seen[same] {
			continue // of several of a kind the first one decides
		}
		seen[same] = true
		for _, text := range rule.Tools {
			c.byText[text] = append(c.byText[text], i)
			if prefix, ok := prefixOf(text); ok {
				c.byPrefix[prefix] = append(c.byPrefix[prefix], i)
			} else if isPattern(text) {
				c.others = append(c.others, pattern{text: text, part: longestPart(text), rule: i})
			}
		}
	}
	return c
}

// decides returns the first rule because of which rule i never decides, or nil.
func (c *certain) decides(i int) *policy.Rule {
	found := -1
	for _, j := range c.about(c.rules[i].Tools) {
		if (found < 0 || j < found) && shadows(c.rules, i, j) {
			found = j
		}
	}
	if found < 0 {
		return nil
	}
	return &c.rules[found]
}

// about returns the rules that cover one of the patterns, of all patterns that which
// the fewest cover.
func (c *certain) about(tools []string) []int {
	var fewest []int
	for n, text := range tools {
		rules := slices.Clone(c.byText[text])
		for end := range len(literal(text)) + 1 {
			rules = append(rules, c.byPrefix[text[:end]]...)
		}
		if !isPattern(text) {
			for _, other := range c.others {
				if strings.Contains(text, other.part) && covers(other.text, text) {
					rules = append(rules, other.rule)
				}
			}
		}
		if n == 0 || len(rules) < len(fewest) {
			fewest = rules
		}
		if len(fewest) == 0 {
			break
		}
	}
	return fewest
}

// coversAll reports whether each pattern of tools is covered by one of others.
func coversAll(others, patterns []string) bool {
	for _, pattern := range patterns {
		if !slices.ContainsFunc(others, func(other string) bool { return covers(other, pattern) }) {
			return false
		}
	}
	return true
}

// covers reports whether every name that matches pattern is known to match other.
func covers(other, pattern string) bool {
	if other == pattern {
		return true
	}
	if prefix, ok := prefixOf(other); ok {
		return strings.HasPrefix(literal(pattern), prefix)
	}
	if isPattern(pattern) {
		return false
	}
	ok, err := path.Match(other, pattern)
	return ok && err == nil
}

// signs are what a pattern has beside text that stands for itself.
const signs = `*?[\`

func isPattern(text string) bool { return strings.ContainsAny(text, signs) }

// prefixOf returns what stands before the * that ends a pattern, if that is the only
// sign in it.
func prefixOf(text string) (string, bool) {
	prefix, ok := strings.CutSuffix(text, "*")
	return prefix, ok && !isPattern(prefix)
}

// literal is the beginning of a pattern that stands for itself.
func literal(text string) string {
	if i := strings.IndexAny(text, signs); i >= 0 {
		return text[:i]
	}
	return text
}

// longestPart returns the longest part of a pattern that stands for itself, but for
// those beside [ and \, which may be inside brackets.
func longestPart(text string) string {
	if strings.ContainsAny(text, `[\`) {
		return ""
	}
	longest := ""
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(signs, r) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}
