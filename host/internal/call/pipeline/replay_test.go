package pipeline_test

import (
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestReplayIsDecidedForWhoAsks gives a key of one client to another, which a rule
// denies the call: it does not get the result. The control is a third client.
func TestReplayIsDecidedForWhoAsks(t *testing.T) {
	spec := addSpec()
	spec.HasPreview = false
	denied := policy.Rule{Name: "no", Tools: []string{"add"}, Verdict: policy.Deny, When: func(in *policy.Input) (bool, error) {
		return in.Caller.Client == "denied", nil
	}}
	plugin := &counter{}
	h := newHost(t, pipeline.Options{Runner: plugin, Policy: rules(t, policy.Options{Mode: policy.Autonomous, Rules: []policy.Rule{denied}})}, spec)
	if o := h.Call(t.Context(), keyed("k", `{"text":"a"}`)); o.Result.Error != nil {
		t.Fatal(o.Result.Error)
	}
	for client, want := range map[string]tool.Code{"denied": tool.PermissionDenied, "third": ""} {
		again := keyed("k", `{"text":"a"}`)
		again.Caller.Client = client
		got := tool.Code("")
		if failed := h.Call(t.Context(), again).Result.Error; failed != nil {
			got = failed.Code
		}
		if got != want {
			t.Errorf("the key from the client %q = %q, want %q", client, got, want)
		}
	}
	if got := plugin.calls(); got != `{"text":"a"}` {
		t.Errorf("%s ran, want one call", got)
	}
}
