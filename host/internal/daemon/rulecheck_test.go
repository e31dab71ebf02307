package daemon

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// TestRuleCheckHides: what env() returned may be an argument of a test, and is quoted in
// no report.
func TestRuleCheckHides(t *testing.T) {
	const secret = "hunter2hunter2"
	said := fmt.Sprintf("expected integer, got string %q", secret)
	check := pipeline.RuleCheck{
		Mistakes: []pipeline.RuleMistake{{Place: "config.hcl:1", Text: said}},
		Tests: []pipeline.TestResult{
			{Name: "wrong", Problem: said},
			{Name: "decided", Decision: &policy.Decision{Reason: said, Rule: said}},
		},
	}
	hide(&check, &config.Config{Secrets: []string{secret}})
	for _, text := range []string{
		check.Mistakes[0].Text, check.Tests[0].Problem, check.Tests[1].Decision.Reason, check.Tests[1].Decision.Rule,
	} {
		if strings.Contains(text, secret) || !strings.Contains(text, "expected integer") {
			t.Errorf("the report says %q", text)
		}
	}
}
