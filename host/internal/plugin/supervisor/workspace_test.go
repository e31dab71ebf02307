package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestWorkspaceOfUserFails: callers learn in short why a user has no workspace, operators learn
// all, and no plugin is blamed for it.
func TestWorkspaceOfUserFails(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for _, name := range []string{"ws/roots", "skel"} {
		if err := os.MkdirAll(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dirs := workspace.Dirs{Parent: filepath.Join(top, "ws"), Template: filepath.Join(top, "skel")}
	k := keepUnder(t, t.TempDir(), dirs, Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits(), Scope: PerUser})
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "ws", "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(top, strings.Repeat("x", 200), strings.Repeat("x", 200), strings.Repeat("x", 200), strings.Repeat("x", 200), strings.Repeat("x", 200), "gone")
	for _, tt := range []struct {
		user, template string
		brief, detail  string
	}{
		{"ada", filepath.Join(top, "gone"), "the template of the workspace was not copied", filepath.Join(top, "gone")},
		{"eve", deep, "the template of the workspace was not copied", top},
		{"file", "", "the workspace was not made", "file is not a directory: remove it"},
		{"roots", "", "the workspace belongs to root", "give it to another user (chown -R)"},
	} {
		if tt.user == "roots" && os.Geteuid() != 0 {
			continue // its tools run as the host's user
		}
		k.opts.Workspace.Template = tt.template
		_, err := k.callAs(t.Context(), tt.user, "pid", `{}`)
		if e := tool.AsError(err); e.Code != tool.Unavailable || !e.Retryable || !strings.Contains(e.Message, "did not start: it could not be started: "+tt.brief) || strings.Contains(e.Error(), top) {
			t.Errorf("%s: a call = %v, want %q without a path", tt.user, err, tt.brief)
		}
		m := k.managers["calm"]
		m.mu.Lock()
		p := m.poolFor(&tool.Call{Context: tool.Context{User: tt.user}})
		p.backoff.until = time.Now().Add(time.Hour)
		if c := p.lastCrash; p.crashes != 0 || c == nil || c.During != BeforeStart || !strings.Contains(c.Detail, tt.detail) || len(c.Detail) > maxExplanation+10 {
			t.Errorf("%s: %d crashes, the last one %+v, want %q", tt.user, p.crashes, c, tt.detail)
		}
		m.mu.Unlock()
		_, err = k.callAs(t.Context(), tt.user, "pid", `{}`)
		if e := tool.AsError(err); !strings.Contains(e.Message, "is not started again yet: it could not be started: "+tt.brief) || strings.Contains(e.Error(), "crash") {
			t.Errorf("%s: the next call = %v", tt.user, err)
		}
	}
	k.opts.Workspace.Template = ""
	k.as(t, "bob", "pid")
}
