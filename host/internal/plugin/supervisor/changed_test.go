package supervisor

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// lists returns the arguments of the tool "change".
func lists(t *testing.T, unread bool, of ...[]string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Lists": of, "Unread": unread})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestToolsChange checks that the tools of a running plugin change for the host, for calls and for the
// next host.
func TestToolsChange(t *testing.T) {
	t.Parallel()
	stateDir := t.TempDir()
	p := Plugin{Name: "asking", Path: program(t, "asking"), Confinement: plain, Limits: sandbox.DefaultLimits()}
	k := keepIn(t, stateDir, p)
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.mustCall(t, "asking", "echo")
	before := k.digest("asking")
	if _, err := k.call(t, "asking", "change", lists(t, false, []string{"echo", "new"})); err != nil {
		t.Fatal(err)
	}
	want := []string{"echo", "new"}
	if diff := cmp.Diff(want, k.names("asking")); diff != "" {
		t.Errorf("published tools (-want +got):\n%s", diff)
	}
	if _, _, err := k.Run(t.Context(), "asking", before, tool.Call{ID: "tc_1", Tool: "echo"}, tool.Sink{}); tool.AsError(err).Code != tool.Unavailable {
		t.Errorf("a call that was checked against the tools before: %v", err)
	}
	if _, _, err := k.Run(t.Context(), "asking", k.digest("asking"), tool.Call{ID: "tc_1", Tool: "echo"}, tool.Sink{}); err != nil {
		t.Errorf("a call that was checked against the present tools: %v", err)
	}
	after := keepIn(t, stateDir, p)
	if err := after.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, after.names("asking")); diff != "" || after.state(t, "asking").PID != 0 {
		t.Errorf("the next host publishes (-want +got):\n%s", diff)
	}
}

// TestToolsChangeOften checks that the last of many changes counts, and that the same tools are no
// change.
func TestToolsChangeOften(t *testing.T) {
	t.Parallel()
	k := keep(t, "asking")
	k.timing.change = 100 * time.Millisecond
	var published atomic.Int64
	k.publishing = func() { published.Add(1) }
	const rounds = 12
	var all [][]string
	for i := range rounds {
		all = append(all, []string{"echo", "change", fmt.Sprintf("t%d", i), fmt.Sprintf("u%d", i)})
	}
	for part := range 3 { // fewer at once than the plugin may send
		if _, err := k.call(t, "asking", "change", lists(t, false, all[part*4:part*4+4]...)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(all[rounds-1], k.names("asking")); diff != "" {
		t.Errorf("published tools (-want +got):\n%s", diff)
	}
	before := published.Load()
	if _, err := k.call(t, "asking", "change", lists(t, false, all[rounds-1], all[rounds-1], all[rounds-1])); err != nil {
		t.Fatal(err)
	}
	if published.Load() != before {
		t.Error("the same tools were published again")
	}
}

// TestToolsChangeFlood checks that a few changes take effect at once, that the log says once that more
// came, and that a plugin ends which does not wait for the host.
func TestToolsChangeFlood(t *testing.T) {
	t.Parallel()
	k := keep(t, "asking")
	k.timing.change = time.Hour
	var published atomic.Int64
	k.publishing = func() { published.Add(1) }
	var all [][]string
	for i := range 60 {
		all = append(all, []string{"echo", fmt.Sprintf("t%d", i)})
	}
	_, _ = k.call(t, "asking", "change", lists(t, true, all...)) // the process ends meanwhile, or after it
	eventually(t, "the process has ended", func() bool { return k.state(t, "asking").Crashes > 0 })
	if crash := k.state(t, "asking").LastCrash; crash == nil || !strings.Contains(crash.Cause+crash.Detail, "changed its tools again and again") {
		t.Errorf("the crash is %+v", crash)
	}
	if n := strings.Count(k.log.String(), "changes its tools often"); n > 1 {
		t.Errorf("the log says %d times that the tools change often", n)
	}
	if most := int64(1 + changesAtOnce); published.Load() > most {
		t.Errorf("%d publications, want at most %d", published.Load(), most)
	}
}

// TestToolsChangeByAUser checks that the process of a user cannot change the tools for everybody.
func TestToolsChangeByAUser(t *testing.T) {
	t.Parallel()
	k := keepPlugins(t, Plugin{Name: "asking", Path: program(t, "asking"), Confinement: plain, Limits: sandbox.DefaultLimits(), Scope: PerUser})
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := k.names("asking")
	call := tool.Call{ID: "tc_1", Tool: "change", Arguments: []byte(lists(t, false, []string{"evil"})), Context: tool.Context{User: "ann", Session: "one"}}
	said, _, err := k.Run(t.Context(), "asking", "", call, tool.Sink{})
	if err != nil || !strings.Contains(said.Text(), "permission_denied") {
		t.Errorf("said %q, %v", said.Text(), err)
	}
	if diff := cmp.Diff(before, k.names("asking")); diff != "" {
		t.Errorf("published tools (-want +got):\n%s", diff)
	}
}

// TestToolsChangeIsSlowed checks that the change after the first few waits, and that the log says so
// once.
func TestToolsChangeIsSlowed(t *testing.T) {
	t.Parallel()
	k := keep(t, "asking")
	k.timing.change = time.Hour
	for i := range changesAtOnce {
		if _, err := k.call(t, "asking", "change", lists(t, false, []string{"echo", fmt.Sprintf("t%d", i)})); err != nil {
			t.Fatal(err)
		}
	}
	want := k.names("asking")
	for i := range 3 {
		if _, err := k.call(t, "asking", "change", lists(t, true, []string{"echo", fmt.Sprintf("u%d", i)})); err != nil {
			t.Fatal(err)
		}
	}
	k.log.await(t, "changes its tools often")
	if diff := cmp.Diff(want, k.names("asking")); diff != "" || len(want) != 2 || want[1] != fmt.Sprintf("t%d", changesAtOnce-1) {
		t.Errorf("published tools (-want +got):\n%s", diff)
	}
	if n := strings.Count(k.log.String(), "changes its tools often"); n != 1 {
		t.Errorf("the log says %d times that the tools change often", n)
	}
}
