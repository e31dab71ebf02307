package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestRepairedArgumentsAreJudged gives arguments that the host repairs: rules,
// command lists and the tier must see the repaired value, which the tool gets.
func TestRepairedArgumentsAreJudged(t *testing.T) {
	t.Parallel()
	spec := echoSpec()
	spec.Name, spec.Aliases, spec.Tier = "run", nil, tool.Privileged
	spec.TierWhen = []tool.TierRule{{Property: "mode", Equals: json.RawMessage(`"LOOK"`), Tier: tool.ReadOnly}}
	spec.InputSchema = json.RawMessage(`{"type":"object","properties":{
		"mode":{"type":"string","enum":["LOOK","FORCE"],"description":"how"},
		"times":{"type":"integer","description":"how often","x-aliases":["count"]},
		"command":{"type":"string","description":"what to run","x-role":"command"}}}`)
	when := func(name string, value any) policy.Condition {
		return func(in *policy.Input) (bool, error) {
			return fmt.Sprintf("%T %v", in.Arguments[name], in.Arguments[name]) == fmt.Sprintf("%T %v", value, value), nil
		}
	}
	rules := rules(t, policy.Options{Commands: lists(), Mode: policy.Autonomous, Rules: []policy.Rule{
		{Name: "force", Tools: []string{"run"}, When: when("mode", "FORCE"), Text: "x", Verdict: policy.Deny},
		{Name: "often", Tools: []string{"run"}, When: when("times", json.Number("9")), Text: "x", Verdict: policy.Deny},
	}})
	for _, tt := range []struct{ given, rule, got string }{
		{`{"mode":"force"}`, "force", ""},
		{`{"times":"9"}`, "often", ""},
		{`{"count":"9"}`, "often", ""},
		{`{"command":["sudo","ls"]}`, "sudo", ""},
		{`{"command":["bash","-lc","sudo ls"]}`, "sudo", ""},
		{`{"mode":"look","times":"8"}`, "", `{"mode":"LOOK","times":8}`}, // read_only: not asked about
	} {
		var got string
		run := func(_ context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
			got = string(call.Arguments)
			return tool.TextResult("done"), nil
		}
		h := newHost(t, pipeline.Options{Runner: fakeRunner{run: run}, Policy: rules}, spec)
		op := h.Start(t.Context(), request("run", tt.given))
		result := op.Wait(t.Context(), 0).Result // a call that a person is asked about is pending
		op.Release()
		if denied := result.Error != nil && result.Error.Code == tool.PermissionDenied; denied != (tt.rule != "") || got != tt.got {
			t.Errorf("%s: %v, and the tool gets %q; want it denied by %q, or %q", tt.given, result.Error, got, tt.rule, tt.got)
		}
	}
}
