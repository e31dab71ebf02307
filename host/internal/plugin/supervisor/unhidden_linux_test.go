package supervisor

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestUnhidden: if not all forbidden files could be hidden from a process, it gets only calls
// that a person has approved. A process that starts once they can be hidden gets all calls.
func TestUnhidden(t *testing.T) {
	t.Parallel()
	c := sandbox.Confinement{Isolation: sandbox.Isolated, Workspace: sandbox.WriteWorkspace, Exec: []string{sandbox.ExecSystem}}
	k := keepPlugins(t, Plugin{
		Name: "calm", Path: program(t, "calm"), Confinement: c, Limits: sandbox.DefaultLimits(), Forbidden: []string{"**/*.key"},
	})
	k.mustCall(t, "calm", "echo")
	if k.Unhidden("calm") || k.Unhidden("none") {
		t.Error("Unhidden of a process that sees nothing forbidden, or of no plugin")
	}
	for i := range 501 { // one more than can be hidden
		write(t, filepath.Join(k.workspace, fmt.Sprintf("%d.key", i)), "")
	}
	if err := k.Restart(t.Context(), "calm"); err != nil {
		t.Fatal(err)
	}
	_, err := k.call(t, "calm", "echo", `{}`)
	wantUnavailable(t, err, "may see files that paths.forbidden covers: a person must approve the call", true)
	if !k.Unhidden("calm") {
		t.Error("Unhidden is false of a process that may see what is forbidden")
	}
	approved := tool.Call{ID: "c", Tool: "echo", Arguments: []byte(`{}`), Context: tool.Context{User: "ann", ApprovalID: "ap"}}
	if _, _, err := k.Run(t.Context(), "calm", "", approved, tool.Sink{}); err != nil {
		t.Errorf("an approved call: %v, want success", err)
	}
}
