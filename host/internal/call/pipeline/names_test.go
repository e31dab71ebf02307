package pipeline_test

import (
	"encoding/json"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestFilesInPatches checks that the policy treats files in patches like files in paths. A
// call with an unreadable patch ends before any decision.
func TestFilesInPatches(t *testing.T) {
	spec := addSpec()
	spec.Tier, spec.HasPreview = tool.ReadOnly, false
	spec.InputSchema = json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"a patch","x-role":"patch"}}}`)
	forbidden := policy.PathRule{Pattern: "**/.env"}
	for _, tt := range []struct {
		name, patch string
		want        tool.Code // "" means that the call runs
	}{
		{"a file that may be named", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", ""},
		{"a forbidden one", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/sub/.env\n+++ b/sub/.env\n@@ -1 +1 @@\n-a\n+b\n", tool.PermissionDenied},
		{"a forbidden one that is moved", "*** Begin Patch\n*** Update File: .env\n*** Move to: x\n*** End Patch\n", tool.PermissionDenied},
		{"one of which not all can be read", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n*** Begin Patch\n*** Delete File: .env\n", tool.InvalidArgument},
		{"what is no patch", "x", tool.InvalidArgument},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plugin := &counter{value: "1"}
			h := newHost(t, pipeline.Options{Runner: plugin, Roots: []string{"/project"}, Policy: rules(t, policy.Options{Paths: policy.Paths{Forbidden: []policy.PathRule{forbidden}}})}, spec)
			text, err := json.Marshal(map[string]string{"text": tt.patch})
			if err != nil {
				t.Fatal(err)
			}
			got := h.Call(t.Context(), request("add", string(text))).Result.Error
			switch {
			case tt.want == "" && got == nil:
			case got == nil || got.Code != tt.want:
				t.Errorf("the call ends with %v, want %q", got, tt.want)
			}
			if ran := plugin.calls() != ""; ran != (tt.want == "") {
				t.Errorf("the plugin was called: %v", ran)
			}
		})
	}
}

// TestNamesWithNUL checks that names with a NUL byte are refused: some programs read only up
// to it, and so open another file than the policy decided about.
func TestNamesWithNUL(t *testing.T) {
	spec := addSpec()
	spec.Tier, spec.HasPreview = tool.ReadOnly, false
	spec.InputSchema = json.RawMessage(`{"type":"object","properties":{"file":{"type":"string","description":"a file","x-role":"path"}}}`)
	plugin := &counter{value: "1"}
	h := newHost(t, pipeline.Options{Runner: plugin, Roots: []string{"/project"}}, spec)
	got := h.Call(t.Context(), request("add", `{"file":"sec\u0000ret"}`)).Result.Error
	if got == nil || got.Code != tool.InvalidArgument || plugin.calls() != "" {
		t.Errorf("the call ends with %v, the plugin got %q", got, plugin.calls())
	}
}
