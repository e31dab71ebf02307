package pipeline

import (
	"errors"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestDeniedNamesNoFolder checks that the error of a denied call names the rule but no folder
// of the host.
func TestDeniedNamesNoFolder(t *testing.T) {
	for where, want := range map[string]string{
		"":                                `decided by rule "r"; to change it: c`,
		"config/40-late.hcl:2":            `decided by rule "r" at config/40-late.hcl:2; to change it: c`,
		"/home/ada/toolhost/config.hcl:7": `decided by rule "r" at config.hcl:7; to change it: c`,
	} {
		var told *tool.Error
		if err := denied(policy.Decision{Rule: `rule "r"`, Where: where, Change: "c"}); !errors.As(err, &told) || told.Hint != want {
			t.Errorf("a rule at %q: %v, want the hint %q", where, err, want)
		}
	}
}
