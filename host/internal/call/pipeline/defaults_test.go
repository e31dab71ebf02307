package pipeline_test

import (
	"encoding/json"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// TestDefaultsAreJudged omits an argument that has a default: the rule about it applies,
// explain and the approver see it, and the tool receives it. The control sets another value.
func TestDefaultsAreJudged(t *testing.T) {
	spec := addSpec()
	spec.InputSchema = json.RawMessage(`{"type":"object","properties":{
		"text":{"type":"string","description":"d"},
		"place":{"type":"string","description":"d","default":"here"}}}`)
	here := policy.Rule{Name: "here", Tools: []string{"add"}, Verdict: policy.Confirm, When: func(in *policy.Input) (bool, error) {
		return in.Arguments["place"] == "here", nil
	}}
	plugin := &counter{}
	h := newHost(t, pipeline.Options{Runner: plugin, Policy: rules(t, policy.Options{Mode: policy.Autonomous, Rules: []policy.Rule{here}})}, spec)
	const whole = `{"place":"here","text":"a"}`
	if e, err := h.Explain(request("add", `{"text":"a"}`)); err != nil || e.Verdict != policy.Confirm || string(e.Arguments) != whole {
		t.Errorf("Explain = %v of %s, %v; want %v of %s", e.Verdict, e.Arguments, err, policy.Confirm, whole)
	}
	f, question := h.begin(t, request("add", `{"text":"a"}`))
	if record := h.record(t, question.ID); string(record.Arguments) != whole || !record.Repeatable() {
		t.Errorf("the approver sees %s, want %s", record.Arguments, whole)
	}
	h.answer(t, question.ID, true)
	f.Wait(t.Context(), operation.Forever)
	if got := plugin.calls(); got != whole {
		t.Errorf("%s ran, want %s", got, whole)
	}
	if o := h.Call(t.Context(), request("add", `{"text":"a","place":"there"}`)); o.Result.Error != nil {
		t.Errorf("control: a call of which the rule says nothing: %v", o.Result.Error)
	}
}
