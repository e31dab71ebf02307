package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
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
	if k.Unhidden("calm", "ann", "s") || k.Unhidden("none", "ann", "s") {
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
	if !k.Unhidden("calm", "ann", "s") {
		t.Error("Unhidden is false of a process that may see what is forbidden")
	}
	approved := tool.Call{ID: "c", Tool: "echo", Arguments: []byte(`{}`), Context: tool.Context{User: "ann", ApprovalID: "ap"}}
	if _, _, err := k.Run(t.Context(), "calm", "", approved, tool.Sink{}); err != nil {
		t.Errorf("an approved call: %v, want success", err)
	}
}

// TestUnhiddenOfOneUser: what one user's process may see concerns no other user.
func TestUnhiddenOfOneUser(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	c := sandbox.Confinement{Isolation: sandbox.Isolated, Workspace: sandbox.WriteWorkspace, Exec: []string{sandbox.ExecSystem}}
	k := keepUnder(t, t.TempDir(), workspace.Dirs{Parent: parent}, Plugin{
		Name: "calm", Path: program(t, "calm"), Confinement: c, Limits: sandbox.DefaultLimits(), Forbidden: []string{"**/*.key"}, Scope: PerUser,
	})
	if err := os.Mkdir(filepath.Join(parent, "ada"), 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // root's directory would be worked in as root
		if err := os.Chown(filepath.Join(parent, "ada"), 60578, 60578); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 501 { // one more than can be hidden
		write(t, filepath.Join(parent, "ada", fmt.Sprintf("%d.key", i)), "")
	}
	if _, err := k.callAs(t.Context(), "ada", "echo", `{}`); err == nil {
		t.Error("a call of the user with the files runs")
	}
	if _, err := k.callAs(t.Context(), "bob", "echo", `{}`); err != nil {
		t.Errorf("a call of another user: %v", err)
	}
	if !k.Unhidden("calm", "ada", "") || k.Unhidden("calm", "bob", "") || k.Unhidden("calm", "eve", "") {
		t.Error("Unhidden is not that of each user's process")
	}
}
