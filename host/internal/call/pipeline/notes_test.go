package pipeline_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// TestShadowRulesAreLogged checks that the log says what a shadow rule would have decided, so
// that an admin can assess the rule.
func TestShadowRulesAreLogged(t *testing.T) {
	var log bytes.Buffer
	shadow := policy.Rule{Name: "ghost", Tools: []string{"add"}, Verdict: policy.Deny, Shadow: true, Place: "config.hcl:7"}
	h := newHost(t, pipeline.Options{
		Runner: &counter{}, Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Info}),
		Policy: rules(t, policy.Options{Mode: policy.Autonomous, Rules: []policy.Rule{shadow}}),
	}, addSpec())
	if o := h.Call(t.Context(), request("add", `{"text":"a"}`)); o.Result.Error != nil {
		t.Errorf("the shadow decided: %v", o.Result.Error)
	}
	if !strings.Contains(log.String(), `rule \"ghost\" at config.hcl:7 would deny`) {
		t.Errorf("the log is %q, want what the shadow would do", &log)
	}
}
