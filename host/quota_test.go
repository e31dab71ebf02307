package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/front/client"
)

// TestFullWorkspace: when the workspace of a user is full, what may change something in it waits for
// a person, who sees why, until files were deleted and it was measured again.
func TestFullWorkspace(t *testing.T) {
	t.Parallel()
	files := "plugin \"fs\" {\n  tier = \"privileged\"\n  claims = \"trust\"\n  approval {\n    side_effecting = \"allow\"\n    privileged = \"allow\"\n  }\n}\n"
	configured := writeConfig(t, listening+files+"workspace_template = \"skel\"\nworkspace_quota = \"1MiB\"\n")
	text, err := os.ReadFile(configured)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(string(text), `workspace  = "ws"`, `workspace  = "ws/${caller.user}"`, 1)
	if err := os.WriteFile(configured, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	skel := filepath.Join(filepath.Dir(configured), "skel")
	if err := os.Mkdir(skel, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(skel, "large"), []byte(strings.Repeat("x", 2<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	h := serve(t, configured)
	write := map[string]any{"path": "note", "content": "x"}
	if o := h.post(t, "write_file", write); o.Status != client.Success {
		t.Fatalf("the first call, for which the workspace is made: %+v", o)
	}
	approver := h.approver(t)
	eventually(t, "the workspace was measured", func() bool {
		e, err := approver.Explain(t.Context(), client.Call{Tool: "write_file", Arguments: []byte(asJSON(write))})
		return err == nil && e.Verdict == policy.Confirm
	})
	if o := h.post(t, "read_file", map[string]any{"path": "note"}); o.Status != client.Success {
		t.Errorf("a read: %+v", o)
	}
	id, asked := h.begin(t, "delete_file", map[string]any{"path": "large"})
	seen, err := approver.Approval(t.Context(), asked)
	if err != nil || !strings.Contains(seen.Rule, "workspace_quota: the workspace held 3MiB ") || !strings.Contains(seen.Rule, "and may hold 1MiB: files in it must be deleted") {
		t.Errorf("the approver sees %q, %v", seen.Rule, err)
	}
	if _, err := approver.Approve(t.Context(), asked, client.Answer{}.Seen(seen.Record)); err != nil {
		t.Fatal(err)
	}
	if o := h.outcome(t, id); o.Status != client.Success {
		t.Errorf("the approved call: %+v", o)
	}
}
