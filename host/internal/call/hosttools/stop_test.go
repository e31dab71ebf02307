package hosttools_test

import (
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestToolsGoOnWhileStopped stops everything: a model still finds tools, and learns what became of
// its calls. It cannot make one through call_tool, or through call_wait, which repeats calls.
func TestToolsGoOnWhileStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, options{dir: dir})
	_, left := first.ask(t, "add", "left to the next host")
	first.stop()

	h := open(t, options{dir: dir})
	call, question := h.ask(t, "add", "a")
	h.decide(t, left, true, "")
	stop, err := h.Stop(t.Context(), pipeline.StopRequest{Reason: "an incident", By: auth.Caller{User: "root"}})
	must(t, err)
	if stop.CanceledCalls != 1 || stop.RejectedApprovals != 2 || len(stop.Problems) > 0 {
		t.Errorf("Stop() = %+v, want a canceled call and two rejected approvals", stop)
	}
	const why = "an administrator has stopped all calls: an incident"
	wantError(t, "the wait for the stopped call", h.wait(t, ann, call).Error, tool.Unavailable, why)
	wantError(t, "the wait for its approval", h.wait(t, ann, question).Error, tool.Unavailable, why)
	wantError(t, "the wait for an approval of the last host", h.wait(t, ann, left).Error, tool.Rejected, why)
	wantError(t, "call_tool", h.call(t, ann, catalog.CallTool, map[string]any{"name": "look"}).Result.Error, tool.Unavailable, why)
	if found := h.call(t, ann, catalog.FindTool, map[string]any{"query": "look"}).Result; found.Error != nil {
		t.Errorf("find_tool = %v", found.Error)
	}
	if n := h.calls(); n > 0 {
		t.Errorf("%d calls reached the plugin", n)
	}
}
