package pipeline_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// busySession is a plugin whose first call runs until leave is closed.
type busySession struct {
	counter

	inside, leave chan struct{}
}

func newBusySession() *busySession {
	return &busySession{inside: make(chan struct{}), leave: make(chan struct{})}
}

func (b *busySession) Run(ctx context.Context, plugin, digest string, call tool.Call, sink tool.Sink) (tool.Result, bool, error) {
	if string(call.Arguments) == `{"text":"first"}` {
		close(b.inside)
		<-b.leave
		return tool.TextResult("done"), true, nil
	}
	return b.counter.Run(ctx, plugin, digest, call, sink)
}

// oneAtATime is the spec of a tool that runs one call at a time.
func oneAtATime() tool.Spec {
	spec := addSpec()
	spec.MaxConcurrency = 1
	return spec
}

// waitForTurn has a call with an unused approval wait for its turn at its tool.
func waitForTurn(t *testing.T, h *host, b *busySession) (waiting *operation.Operation, approvalID string) {
	t.Helper()
	first := h.Start(t.Context(), request("add", `{"text":"first"}`))
	t.Cleanup(first.Release)
	h.answer(t, h.nextQuestion(t).ID, true)
	<-b.inside
	waiting = h.Start(t.Context(), request("add", `{"text":"second"}`))
	t.Cleanup(waiting.Release)
	id := h.nextQuestion(t).ID
	h.answer(t, id, true)
	until(t, func() bool { return waiting.Info().State == operation.Running })
	return waiting, id
}

// until waits until so returns true.
func until(t *testing.T, so func() bool) {
	t.Helper()
	for !so() {
		if t.Context().Err() != nil {
			t.Fatal("it is never so")
		}
		runtime.Gosched()
	}
}

// TestCanceledCallLeavesNoApproval cancels an approved call that waits for its turn: the same
// call needs a new approval.
func TestCanceledCallLeavesNoApproval(t *testing.T) {
	b := newBusySession()
	h := newHost(t, pipeline.Options{Runner: b}, oneAtATime())
	f, id := waitForTurn(t, h, b)
	f.Cancel()
	if got := f.Wait(t.Context(), operation.Forever).Result.Error; got == nil || got.Code != tool.Canceled {
		t.Fatalf("Wait = %v, want %s", got, tool.Canceled)
	}
	close(b.leave)
	if record := h.record(t, id); !record.State.Closed() {
		t.Errorf("the approval is %s: it could be used", record.State)
	}
	if _, question := h.begin(t, request("add", `{"text":"second"}`)); question.ID == id || b.calls() != "" {
		t.Errorf("the same call made again asks %s, and %q ran", question.ID, b.calls())
	}
}

// TestReplacedToolIsDecidedAnew changes a tool's tier, or removes the tool, while an approved
// call waits for its turn.
func TestReplacedToolIsDecidedAnew(t *testing.T) {
	b := newBusySession()
	h := newHost(t, pipeline.Options{Runner: b}, oneAtATime())
	f, _ := waitForTurn(t, h, b)
	err := h.opts.Catalog.Apply(catalog.Options{Plugins: []catalog.Plugin{{
		Name: "test", Ceiling: tool.Privileged, TrustClaims: true, Tools: []catalog.ToolOptions{{Name: "add", Disabled: true}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	close(b.leave)
	got := f.Wait(t.Context(), operation.Forever).Result.Error
	if got == nil || got.Code != tool.NotFound || b.calls() != "" {
		t.Errorf("Wait = %v, and %q ran; want that the tool is not offered", got, b.calls())
	}
}

// TestRevokedCredential revokes the credential of a call that waits for a person.
func TestRevokedCredential(t *testing.T) {
	plugin := &counter{}
	h := newHost(t, pipeline.Options{Runner: plugin}, addSpec())
	revoked, kept := request("add", `{"text":"a"}`), request("add", `{"text":"b"}`)
	revoked.Caller.Token, kept.Caller.Token = "old", "new"
	f, question := h.begin(t, revoked)
	other, _ := h.begin(t, kept)
	h.Operations().Revoke(func(c auth.Caller) bool { return c.Token != "old" })
	if got := f.Wait(t.Context(), operation.Forever).Result.Error; got == nil || got.Code != tool.PermissionDenied {
		t.Errorf("Wait = %v, want %s", got, tool.PermissionDenied)
	}
	if record := h.record(t, question.ID); record.State != approval.Canceled {
		t.Errorf("the question is %s, want it canceled", record.State)
	}
	if !other.Wait(t.Context(), 0).Pending || plugin.calls() != "" {
		t.Error("another credential's call has ended too")
	}
}

// TestLookingDoesNotCollect looks at a call by its id after its client was told to repeat it:
// the client still gets the result.
func TestLookingDoesNotCollect(t *testing.T) {
	plugin := &counter{}
	h := newHost(t, pipeline.Options{Runner: plugin}, addSpec())
	f := h.Start(t.Context(), request("add", `{"text":"a"}`))
	f.Wait(t.Context(), 0)
	f.KeepForRetry()
	question := h.nextQuestion(t)
	f.Release()
	h.answer(t, question.ID, true)
	look, ok := h.Operations().Find(f.ID(), auth.Caller{User: "ann"})
	if !ok {
		t.Fatal("the call is not known")
	}
	look.Wait(t.Context(), operation.Forever)
	look.Release()
	again := h.Start(t.Context(), request("add", `{"text":"a"}`))
	defer again.Release()
	if got := again.Wait(t.Context(), operation.Forever); got.ID != f.ID() || plugin.calls() != `{"text":"a"}` {
		t.Errorf("the call made again is %s, and %q ran; want the result of %s", got.ID, plugin.calls(), f.ID())
	}
}

// TestRefusalIsRecorded checks that the journal names the approver who refused a call.
func TestRefusalIsRecorded(t *testing.T) {
	h := newHost(t, pipeline.Options{Runner: &counter{}}, addSpec())
	f, question := h.begin(t, request("add", `{"text":"a"}`))
	h.answer(t, question.ID, false)
	f.Wait(t.Context(), operation.Forever)
	row := h.rows(t, f.ID(), 1)[0]
	if row.Approval != question.ID || row.Approver != "ann" || row.ApprovedBy != "" {
		t.Errorf("the row says %+v, want the question and who refused it", row)
	}
}

// TestReplayLeavesNoTrace repeats a call with a key: it adds no journal row and no event.
func TestReplayLeavesNoTrace(t *testing.T) {
	h := newKeyHost(t, answer(tool.Result{Effects: []tool.Effect{{Kind: "file.changed", Target: "a"}}}))
	first := h.Call(t.Context(), keyed("k", `{"text":"a"}`))
	events := h.opts.Events.Subscribe("")
	again := h.Call(t.Context(), keyed("k", `{"text":"a"}`))
	if again.ID != first.ID {
		t.Errorf("the repeated call is %s, want %s", again.ID, first.ID)
	}
	h.Call(t.Context(), keyed("l", `{"text":"b"}`))
	e, err := events.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if call, ok := e.Data.(event.ToolCall); !ok || string(call.Params) != `{"text":"b"}` {
		t.Errorf("the first event after the repetition is %+v, want the call after it", e)
	}
}

// TestDoneIsDone looks at calls at the moment when they end: a call that is done has its
// outcome, and counts among the kept results.
func TestDoneIsDone(t *testing.T) {
	h := newHost(t, pipeline.Options{Runner: answer(tool.TextResult("x")), Policy: rules(t, policy.Options{})}, echoSpec())
	now, cancel := context.WithCancel(t.Context())
	cancel()
	for range 500 {
		f := h.Start(t.Context(), request("echo", `{"text":"a"}`))
		until(t, func() bool { return f.Info().State == operation.Done })
		if f.Wait(now, operation.Forever).Pending {
			t.Fatal("a call that is done has no outcome")
		}
		f.Release()
	}
}

// TestUncollectedResultsAreBounded leaves ten results of 10 MiB uncollected.
func TestUncollectedResultsAreBounded(t *testing.T) {
	spec := echoSpec()
	spec.MaxOutput = 16 * tool.MiB
	h := newHost(t, pipeline.Options{
		Runner: answer(tool.TextResult(strings.Repeat("x", 10<<20))), Policy: rules(t, policy.Options{}),
	}, spec)
	var last *operation.Operation
	for range 10 {
		last = h.Start(t.Context(), request("echo", `{"text":"a"}`))
		until(t, func() bool { return last.Info().State == operation.Done })
		last.Release()
	}
	until(t, func() bool { return h.Operations().Count("ann") == 6 }) // the last 6 of 10 MiB each
	if f, ok := h.Operations().Find(last.ID(), auth.Caller{User: "ann"}); !ok {
		t.Error("the last result is not kept")
	} else {
		f.Release()
	}
}
