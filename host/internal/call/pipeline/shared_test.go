package pipeline_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestFirstRequestGivesUp cancels the request that began a call while another request with the
// same key waits for it.
func TestFirstRequestGivesUp(t *testing.T) {
	runner, inside, leave := held()
	h := newHost(t, pipeline.Options{Policy: rules(t, policy.Options{Mode: policy.Autonomous}), Runner: runner}, addSpec())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan operation.Outcome, 1)
	go func() { ended <- h.Call(ctx, keyed("k", `{"text":"a"}`)) }() // ends with cancel
	<-inside
	second := h.Start(t.Context(), keyed("k", `{"text":"a"}`))
	defer second.Release()
	until(t, func() bool { return second.Info().State == operation.Done }) // it waits for the first
	cancel()
	if got := (<-ended).Result.Error; got == nil || got.Code != tool.Canceled {
		t.Errorf("the request that gave up: %v, want %s", got, tool.Canceled)
	}
	if f, ok := h.Operations().Find(second.ID(), auth.Caller{User: "ann"}); !ok {
		t.Error("the id of the second request leads nowhere")
	} else {
		f.Release()
	}
	close(leave)
	if got := second.Wait(t.Context(), operation.Forever).Result; got.Error != nil || got.Text() != "done" {
		t.Errorf("the other request: %+v, want the result", got)
	}
}

// unsent is a plugin that does not receive its first call before the host stops.
type unsent struct {
	counter

	waiting chan struct{}
}

func (u *unsent) Run(ctx context.Context, plugin, digest string, call tool.Call, sink tool.Sink) (tool.Result, bool, error) {
	select {
	case <-u.waiting:
		return u.counter.Run(ctx, plugin, digest, call, sink)
	default:
	}
	close(u.waiting)
	<-ctx.Done()
	return tool.Result{}, false, ctx.Err()
}

// TestKeyOfACallThatWasNotSent stops the host before the plugin is ready: the next host runs
// the call.
func TestKeyOfACallThatWasNotSent(t *testing.T) {
	dir := t.TempDir()
	plugin := &unsent{waiting: make(chan struct{})}
	spec := addSpec()
	spec.HasPreview = false
	opts := pipeline.Options{Runner: plugin, Policy: rules(t, policy.Options{Mode: policy.Autonomous}), Catalog: newCatalog(t, spec)}
	first, err := openHost(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	f := first.Start(t.Context(), keyed("k", `{"text":"a"}`))
	defer f.Release()
	<-plugin.waiting
	first.stop()
	if got := f.Wait(t.Context(), operation.Forever).Result.Error; got == nil || !strings.HasPrefix(got.Message, operation.Stopping) {
		t.Fatalf("Wait = %v, want %q", got, operation.Stopping)
	}
	second, err := openHost(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer second.stop()
	if got := second.Call(t.Context(), keyed("k", `{"text":"a"}`)).Result.Error; got != nil || plugin.calls() != `{"text":"a"}` {
		t.Errorf("the next host: %v, and %q ran; want it to run once", got, plugin.calls())
	}
}

// TestKeyOfACallThatBeginsAnew kills a host while a call with a key asks again because the
// approved state changed: at the next host, the same call asks a person, too. Renaming the key
// in the database simulates the next host.
func TestKeyOfACallThatBeginsAnew(t *testing.T) {
	plugin := &counter{value: "1"}
	h := newHost(t, pipeline.Options{Runner: plugin}, addSpec())
	_, question := h.begin(t, keyed("k", `{"text":"a"}`))
	plugin.set("2")
	h.answer(t, question.ID, true)
	h.nextQuestion(t)
	err := h.opts.Store.Do(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `UPDATE idempotency SET key = 'left' WHERE key = 'k'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f := h.Start(t.Context(), keyed("left", `{"text":"a"}`)) // as a client would repeat it at the next host
	defer f.Release()
	if got := f.Wait(t.Context(), 0); !got.Pending {
		t.Errorf("the key answers %v, want the call to be asked about", got.Result.Error)
	}
}

// TestKeyOfARevokedCredential repeats a call with a valid credential.
func TestKeyOfARevokedCredential(t *testing.T) {
	h := newHost(t, pipeline.Options{Runner: &counter{}}, addSpec())
	req := keyed("k", `{"text":"a"}`)
	req.Caller.Token = "old"
	f, _ := h.begin(t, req)
	h.Operations().Revoke(func(c auth.Caller) bool { return c.Token != "old" })
	f.Wait(t.Context(), operation.Forever)
	req.Caller.Token = "new"
	h.begin(t, req)
}

// TestAskedCallsAreNotCached makes a read that needs approval twice, and a read after the
// settings were replaced.
func TestAskedCallsAreNotCached(t *testing.T) {
	look := echoSpec()
	look.Cacheable, look.Asks, look.TierWhen = true, true, nil
	plugin := fakeRunner{run: func(_ context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
		return tool.TextResult(call.Context.Roots[0]), nil
	}}
	h := newHost(t, pipeline.Options{Runner: plugin, Roots: []string{"/project/a"}}, look)
	for range 2 {
		f, question := h.begin(t, request("echo", `{"text":"a"}`))
		h.answer(t, question.ID, true)
		f.Wait(t.Context(), operation.Forever)
		if record := h.record(t, question.ID); record.State != approval.Spent {
			t.Errorf("the approval is %s, want it spent", record.State)
		}
	}
	allow := rules(t, policy.Options{Plugins: map[string]policy.Plugin{"test": {Tools: map[string]policy.Level{"echo": {Verdict: policy.Allow}}}}})
	for _, root := range []string{"/project/b", "/project/c"} {
		h.Apply(pipeline.Settings{Policy: allow, Roots: []string{root}})
		if got := h.Call(t.Context(), request("echo", `{"text":"a"}`)).Result.Text(); got != root {
			t.Errorf("in %s the call answers for %s", root, got)
		}
	}
}
