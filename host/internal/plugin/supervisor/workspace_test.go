package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestWorkspaceIsReplaced: a process does not go on in a workspace that was moved away; without a
// workspace calls fail and say so, and with a new one they work again by themselves.
func TestWorkspaceIsReplaced(t *testing.T) {
	t.Parallel()
	k := keep(t, "calm")
	first := k.mustCall(t, "calm", "pid")
	if err := os.Rename(k.workspace, filepath.Join(t.TempDir(), "elsewhere")); err != nil {
		t.Fatal(err)
	}
	_, err := k.call(t, "calm", "pid", `{}`)
	if e := tool.AsError(err); e.Code != tool.Unavailable || !e.Retryable || !strings.Contains(e.Message, "the workspace does not exist") || strings.Contains(e.Error(), k.workspace) {
		t.Errorf("a call without a workspace = %v, want an error that says so without its path", err)
	}
	if s := k.state(t, "calm"); s.LastCrash == nil || !strings.Contains(s.LastCrash.Detail, k.workspace+"; make it again") || s.Refused != "" {
		t.Errorf("without a workspace, the state is %+v", s)
	}
	if err := os.Mkdir(k.workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	if second := k.mustCall(t, "calm", "pid"); second == first {
		t.Errorf("the process %s still runs in the workspace that was moved away", first)
	}
}

// TestUserWithoutWorkspace: a user whose name no directory can have gets calls to a process for
// everybody, which sees no workspace, and no process.
func TestUserWithoutWorkspace(t *testing.T) {
	t.Parallel()
	const user = "auth0|1"
	dirs := workspace.Dirs{Parent: t.TempDir()}
	for _, scope := range []Scope{Shared, PerUser} {
		k := keepUnder(t, t.TempDir(), dirs, Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits(), Scope: scope})
		if err := k.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := k.callAs(t.Context(), user, "pid", `{}`)
		switch {
		case scope == Shared && err != nil:
			t.Errorf("a call to a process for everybody = %v", err)
		case scope == PerUser && err == nil:
			t.Error("a call to a process for each user got one")
		}
	}
}
