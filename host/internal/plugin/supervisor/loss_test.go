package supervisor

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestNoCallIsLost changes plugins ten times under 200 callers, each of whom
// does as the pipeline does: it takes the digest that is published, and begins
// again if the plugin has not seen the call and another digest is published.
func TestNoCallIsLost(t *testing.T) {
	const callers = 200
	changes := soak.Rounds(6, 30)
	calm, other := configured(t, "calm", `{}`), configured(t, "connected", `{}`)
	k := keepPlugins(t, calm, other)
	k.mustCall(t, "calm", "echo")
	k.mustCall(t, "connected", "echo")
	k.publishing = func() { // as a catalog does, it takes its time
		for range 1000 {
			runtime.Gosched()
		}
	}

	var calls, again atomic.Int64
	var running sync.WaitGroup
	done := make(chan struct{})
	for n := range callers {
		running.Go(func() { // ends with the changes
			for !isClosed(done) {
				rounds, err := k.callAsPublished(t, []string{"calm", "connected"}[n%2])
				if err != nil {
					t.Errorf("a call is lost: %v", err)
					return
				}
				calls.Add(1)
				again.Add(rounds - 1)
			}
		})
	}
	settings := []string{`{}`, `{"list":"more"}`}
	for n := range changes {
		calm = calm.with(settings[(n+1)%2])
		if n%3 == 0 {
			other.Limits.OpenFiles++
		}
		before := calls.Load()
		k.change(t, calm, other)
		eventually(t, "calls go on", func() bool { return calls.Load() > before || t.Failed() })
	}
	close(done)
	running.Wait()
	if again.Load() == 0 {
		t.Error("no call came between a change and its publication: the test has tested nothing")
	}
	t.Logf("%d calls, %d of them begun again, in %d changes", calls.Load(), again.Load(), changes)
	for _, s := range k.Plugins() {
		if s.Crashes != 0 {
			t.Errorf("state is %+v, want no crash", s)
		}
	}
}

// callAsPublished makes a call like the pipeline, and returns how often it had to start again.
func (k *kept) callAsPublished(t *testing.T, plugin string) (rounds int64, err error) {
	t.Helper()
	for {
		rounds++
		digest := k.digest(plugin)
		result, sent, err := k.Run(t.Context(), plugin, digest, tool.Call{ID: "tc_1", Tool: "echo", Arguments: []byte(`{}`)}, tool.Sink{})
		switch {
		case err == nil && result.Text() != `{}`:
			return rounds, fmt.Errorf("the result is %q", result.Text())
		case err == nil:
			return rounds, nil
		case sent || k.digest(plugin) == digest:
			return rounds, fmt.Errorf("sent %v: %w (%w)", sent, err, errors.Unwrap(err))
		}
	}
}

// TestCallIsLostWithoutTheGuard is the control of TestNoCallIsLost: if a set takes calls before
// it is published, it refuses calls that were checked against the published set.
func TestCallIsLostWithoutTheGuard(t *testing.T) {
	p := configured(t, "calm", `{}`)
	k := keepPlugins(t, p)
	if _, err := k.callAsPublished(t, "calm"); err != nil {
		t.Fatal(err)
	}
	before := k.managers
	c, err := k.Prepare(t.Context(), []Plugin{p.with(`{"list":"more"}`)})
	if err != nil {
		t.Fatal(err)
	}
	k.managers = c.managers // nothing else runs here
	if _, err := k.callAsPublished(t, "calm"); err == nil {
		t.Error("the call succeeded between the change and its publication: the guard guards nothing")
	}
	k.managers = before
	c.Commit()
	if _, err := k.callAsPublished(t, "calm"); err != nil {
		t.Errorf("a call after Commit: %v", err)
	}
}
