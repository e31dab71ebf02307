package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

var errTestStop = errors.New("an admin looks into it")

// halted makes a supervisor obey a stop that the test sets.
type halted struct {
	*kept
	scope atomic.Pointer[func(user, plugin string) bool]
}

func haltable(t *testing.T, plugins ...Plugin) *halted {
	t.Helper()
	h := &halted{kept: keepPlugins(t, plugins...)}
	h.opts.Stopped = func(user, plugin string) error {
		if covers := h.scope.Load(); covers != nil && (*covers)(user, plugin) {
			return errTestStop
		}
		return nil
	}
	return h
}

// halt sets the stop and kills what it covers.
func (h *halted) halt(t *testing.T, covers func(user, plugin string) bool) (killed int) {
	t.Helper()
	h.scope.Store(&covers)
	killed, left := h.Kill(t.Context(), covers)
	if left > 0 {
		t.Errorf("%d processes have not ended", left)
	}
	return killed
}

func (h *halted) resume(ctx context.Context) {
	h.scope.Store(nil)
	h.Revive(ctx)
}

func everything(string, string) bool { return true }

// TestKillOneUser kills the process of one user while both work.
func TestKillOneUser(t *testing.T) {
	t.Parallel()
	h := haltable(t, Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits(), Scope: PerUser})
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	release, bob := h.holdAs(t, "bob")
	_, ada := h.holdAs(t, "ada")
	if killed := h.halt(t, func(user, _ string) bool { return user == "ada" }); killed != 1 {
		t.Errorf("Kill() = %d, want 1", killed)
	}
	if err := <-ada; err == nil {
		t.Error("the call of ada goes on")
	}
	if got := h.instances(t); got != "bob" {
		t.Errorf("processes are left of %q, want bob's", got)
	}
	if _, err := h.callAs(t.Context(), "ada", "pid", `{}`); !errors.Is(err, errTestStop) {
		t.Errorf("a call of ada = %v, want that she is stopped", err)
	}
	release()
	if err := <-bob; err != nil {
		t.Errorf("the call of bob = %v", err)
	}
	if s := h.state(t, "calm"); s.Crashes > 0 || s.LastCrash != nil {
		t.Errorf("a killed process counts as a crash: %+v", s.LastCrash)
	}
	h.resume(t.Context())
	h.as(t, "ada", "pid")
}

// TestKillAll kills a shared process, and nothing starts it until the stop ends: no call, no restart,
// no reload and not that it is eager. Its tools stay published.
func TestKillAll(t *testing.T) {
	t.Parallel()
	calm := Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits(), Eager: true}
	h := haltable(t, calm)
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := h.state(t, "calm").PID
	if killed := h.halt(t, everything); killed != 1 {
		t.Errorf("Kill() = %d, want 1", killed)
	}
	stays := func(after string) {
		t.Helper()
		if s := h.state(t, "calm"); s.PID != 0 || s.Phase != Stopped || s.Crashes > 0 {
			t.Errorf("after %s the plugin is %v with the process %d and %d crashes", after, s.Phase, s.PID, s.Crashes)
		}
	}
	stays("the stop")
	if _, err := h.callAs(t.Context(), "ada", "pid", `{}`); !errors.Is(err, errTestStop) {
		t.Errorf("a call = %v", err)
	}
	if err := h.Restart(t.Context(), "calm"); !errors.Is(err, errTestStop) {
		t.Errorf("Restart() = %v", err)
	}
	stays("a restart")
	calm.IdleTimeout = defaultIdleTimeout * 2 // an option that has changed
	change, err := h.Prepare(t.Context(), []Plugin{calm})
	if err != nil {
		t.Fatalf("Prepare() = %v", err)
	}
	change.Commit()
	stays("a reload")
	if got := len(h.names("calm")); got != len(testTools) {
		t.Errorf("%d tools are published, want %d", got, len(testTools))
	}
	h.halt(t, everything) // again
	h.resume(t.Context())
	eventually(t, "the eager plugin runs again", func() bool { return h.state(t, "calm").PID > 0 })
	if now := h.state(t, "calm").PID; now == before {
		t.Errorf("the process is still %d", before)
	}
}

// TestKillWhileStarting stops a plugin that never finishes its start.
func TestKillWhileStarting(t *testing.T) {
	t.Parallel()
	h := haltable(t, Plugin{Name: "silent", Path: program(t, "silent"), Confinement: plain, Limits: sandbox.DefaultLimits()})
	h.timing.start = defaultTiming().hang // longer than the test waits
	ended := make(chan error, 1)
	ctx := t.Context()
	go func() { // ends with the stop
		_, _, err := h.Run(ctx, "silent", "", tool.Call{ID: "tc_1", Tool: "echo", Arguments: []byte(`{}`)}, tool.Sink{})
		ended <- err
	}()
	eventually(t, "the plugin starts", func() bool { return h.state(t, "silent").Phase == Starting })
	if killed := h.halt(t, everything); killed != 1 {
		t.Errorf("Kill() = %d, want 1", killed)
	}
	if err := <-ended; !errors.Is(err, errTestStop) {
		t.Errorf("the call that waited = %v", err)
	}
	if s := h.state(t, "silent"); s.Phase != Stopped || s.LastCrash != nil {
		t.Errorf("the plugin is %v after the crash %+v", s.Phase, s.LastCrash)
	}
}

// TestStoppedFromTheStart starts a supervisor with plugins of which none may start.
func TestStoppedFromTheStart(t *testing.T) {
	t.Parallel()
	h := haltable(t, Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits()})
	h.Revive(t.Context()) // before Start: nothing
	all := everything
	h.scope.Store(&all)
	if err := h.Start(t.Context()); err != nil {
		t.Errorf("Start() = %v", err)
	}
	if s := h.state(t, "calm"); s.Phase != Stopped || len(h.names("calm")) > 0 {
		t.Errorf("the plugin is %v with the tools %v", s.Phase, h.names("calm"))
	}
	h.resume(t.Context())
	eventually(t, "its tools are known", func() bool { return len(h.names("calm")) == len(testTools) })
	if log := fmt.Sprint(h.log); strings.Contains(log, "crashed") {
		t.Errorf("the log is\n%s", log)
	}
}

// TestReloadWhileStopped: a stop does not keep operators from a reload that repairs its cause, with a
// new plugin and another program of a stopped one. Both start when the stop ends.
func TestReloadWhileStopped(t *testing.T) {
	t.Parallel()
	calm := Plugin{Name: "calm", Path: copyProgram(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits()}
	comes := Plugin{Name: "comes", Path: program(t, "comes"), Confinement: plain, Limits: sandbox.DefaultLimits()}
	h := haltable(t, calm)
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := h.digest("calm")
	h.halt(t, everything)
	rebuild(t, calm.Path)
	h.change(t, calm, comes)
	for _, s := range h.Plugins() {
		if s.PID != 0 || s.Phase != Stopped {
			t.Errorf("after the reload %s is %v with the process %d", s.Name, s.Phase, s.PID)
		}
	}
	if h.digest("calm") != before || len(h.names("comes")) > 0 {
		t.Errorf("after the reload the tools of comes are %v, and calm has others: %v", h.names("comes"), h.digest("calm") != before)
	}
	h.resume(t.Context())
	eventually(t, "the tools of both are known", func() bool { return len(h.names("comes")) == len(testTools) && h.digest("calm") != before })
}
