package config

import (
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// TestReachableIsExact holds what the index finds against each rule being held against
// each other one.
func TestReachableIsExact(t *testing.T) {
	shadowed := 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		rules := someRules(random, 1+random.IntN(60))
		certain := newCertain(rules)
		for i := range rules {
			want := ""
			for j := range rules {
				if shadows(rules, i, j) {
					want = rules[j].Name
					break
				}
			}
			got := ""
			if other := certain.decides(i); other != nil {
				got = other.Name
				shadowed++
			}
			if got != want {
				t.Fatalf("seed %d: %+v never decides because of %q, want %q, of %+v", seed, rules[i], got, want, rules)
			}
		}
	}
	if shadowed < 1000 {
		t.Errorf("%d rules never decide: the test proves little", shadowed)
	}
}

// TestCovers: what covers says of two patterns holds for every name.
func TestCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := make([]string, 300)
	for i := range names {
		names[i] = someText(random, "ab_", 5)
	}
	covering := 0
	for range 5000 {
		other, pattern := somePattern(random), somePattern(random)
		if !covers(other, pattern) {
			continue
		}
		covering++
		for _, name := range names {
			one, _ := path.Match(pattern, name)
			if all, _ := path.Match(other, name); one && !all {
				t.Fatalf("covers(%q, %q), but %q matches the second only", other, pattern, name)
			}
		}
	}
	if covering < 100 {
		t.Errorf("%d patterns cover others: the test proves little", covering)
	}
}

// someRules makes rules about few tools, so that they meet.
func someRules(random *rand.Rand, n int) []policy.Rule {
	rules := make([]policy.Rule, n)
	for i := range rules {
		rule := &rules[i]
		rule.Name = fmt.Sprint("r", i)
		rule.Verdict = policy.Allow + policy.Verdict(random.IntN(4))
		rule.Shadow = random.IntN(8) == 0
		rule.Locked = random.IntN(4) == 0
		if random.IntN(3) == 0 {
			rule.When = func(*policy.Input) (bool, error) { return false, nil }
		}
		for range 1 + random.IntN(3) {
			rule.Tools = append(rule.Tools, somePattern(random))
		}
	}
	return rules
}

// somePattern makes a valid pattern.
func somePattern(random *rand.Rand) string {
	for {
		text := someText(random, "ab_", 4)
		switch random.IntN(4) {
		case 0:
			text += "*"
		case 1:
			text = someText(random, `ab*?[]^\-`, 6)
		}
		if _, err := path.Match(text, ""); err == nil && text != "" {
			return text
		}
	}
}

func someText(random *rand.Rand, letters string, most int) string {
	text := make([]byte, random.IntN(most+1))
	for i := range text {
		text[i] = letters[random.IntN(len(letters))]
	}
	return string(text)
}

// BenchmarkReachable checks 10,000 rules without conditions: about a tool each, about
// patterns each, and all about the same.
func BenchmarkReachable(b *testing.B) {
	for name, tools := range map[string]func(i int) []string{
		"names":     func(i int) []string { return []string{fmt.Sprint("tool_", i)} },
		"prefixes":  func(i int) []string { return []string{fmt.Sprintf("tool_%d_*", i)} },
		"parts":     func(i int) []string { return []string{[]string{fmt.Sprint("tool_", i), fmt.Sprintf("*x%dx*", i)}[i%2]} },
		"one":       func(int) []string { return []string{"write_file", "edit_*"} },
		"one of it": func(i int) []string { return []string{"write_file", fmt.Sprint("tool_", i)} },
	} {
		b.Run(name, func(b *testing.B) {
			rules := make([]policy.Rule, maxRules)
			for i := range rules {
				rules[i] = policy.Rule{Name: fmt.Sprint(i), Tools: tools(i), Verdict: policy.Allow + policy.Verdict(i%4)}
			}
			for b.Loop() {
				certain := newCertain(rules)
				for i := range rules {
					certain.decides(i)
				}
			}
		})
	}
}
