package pipeline_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestDrain stops a host during a call that finishes, one that does not, and one that waits
// for a person, and then makes another call.
func TestDrain(t *testing.T) {
	t.Parallel()
	inside, finish := make(chan struct{}, 2), make(chan struct{})
	spec := addSpec()
	spec.HasPreview = false
	h := newHost(t, pipeline.Options{
		Policy: rules(t, policy.Options{Plugins: map[string]policy.Plugin{"test": {Tools: map[string]policy.Level{"add": {Verdict: policy.Allow}}}}}),
		Runner: fakeRunner{run: func(ctx context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
			inside <- struct{}{}
			if strings.Contains(string(call.Arguments), "finishes") {
				<-finish
				return tool.TextResult("done"), nil
			}
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}},
	}, spec, echoSpec())
	begin := func(name, arguments, session string) *operation.Operation {
		req := request(name, arguments)
		req.Caller.Session = session
		f := h.Start(t.Context(), req)
		t.Cleanup(f.Release)
		return f
	}
	finishes, hangs := begin("add", `{"text":"finishes"}`, "1"), begin("add", `{"text":"hangs"}`, "2")
	<-inside
	<-inside
	waits, question := h.begin(t, request("echo", `{"text":"a","create":"x"}`))

	ctx, cancel := context.WithCancel(t.Context())
	drained := make(chan struct{})
	go func() { // ends with cancel
		defer close(drained)
		h.Drain(ctx)
	}()
	ends := func(f *operation.Operation, want string) {
		t.Helper()
		if got := ending(f.Wait(t.Context(), operation.Forever)); !strings.HasPrefix(got, want) {
			t.Errorf("the call ends with %q, want %q", got, want)
		}
	}
	ends(waits, "unavailable: the host is stopping, and the call has not run")
	ends(begin("add", `{"text":"late"}`, "3"), "unavailable: the host is stopping, and the call was not begun")
	close(finish)
	ends(finishes, "done")
	select {
	case <-drained:
		t.Error("Drain() returned under a call")
	default:
	}
	cancel()
	<-drained
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	ends(hangs, "unknown_outcome: the outcome of add (call "+hangs.ID()+") is unknown: the host is stopping")
	if record := h.record(t, question.ID); record.State.Closed() {
		t.Errorf("the question is %s, want it open for the next host", record.State)
	}
	rows := h.rows(t, hangs.ID(), 2)
	if end := rows[1]; end.Kind != journal.End || end.Code != string(tool.UnknownOutcome) {
		t.Errorf("the journal has %+v, want an unknown outcome", end)
	}
}

// TestDrainEndsWithTheLastCall drains a host without calls under way.
func TestDrainEndsWithTheLastCall(t *testing.T) {
	t.Parallel()
	h := newHost(t, pipeline.Options{Runner: fakeRunner{}}, echoSpec())
	h.Drain(context.WithoutCancel(t.Context())) // returns, although its context never ends
}

// TestDrainWhileAKeyIsRecorded stops the host while it records a call's key: the call has not
// begun, and its error says so. The caller may repeat it at the next host.
func TestDrainWhileAKeyIsRecorded(t *testing.T) {
	t.Parallel()
	h := newHost(t, pipeline.Options{
		Runner: fakeRunner{},
		Policy: rules(t, policy.Options{Plugins: map[string]policy.Plugin{"test": {Tools: map[string]policy.Level{"add": {Verdict: policy.Allow}}}}}),
	}, addSpec())
	writing, release := make(chan struct{}), make(chan struct{})
	go func() { // ends when release is closed
		_ = h.opts.Store.Do(context.WithoutCancel(t.Context()), func(*sql.Tx) error {
			close(writing)
			<-release
			return nil
		})
	}()
	<-writing
	req := request("add", `{"text":"a"}`)
	req.IdempotencyKey = "k"
	f := h.Start(t.Context(), req)
	t.Cleanup(f.Release)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	h.Drain(gone) // does not wait for the call
	close(release)
	const want = "unavailable: the host is stopping"
	if got := ending(f.Wait(t.Context(), operation.Forever)); !strings.HasPrefix(got, want) {
		t.Errorf("the call ends with %q, want %q", got, want)
	}
}
