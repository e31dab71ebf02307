package pipeline_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// keyed returns a call with an idempotency key.
func keyed(key, arguments string) pipeline.Request {
	req := request("add", arguments)
	req.IdempotencyKey = key
	return req
}

// newKeyHost returns a host whose tool add needs no approval.
func newKeyHost(t *testing.T, plugin pipeline.Runner) *host {
	t.Helper()
	spec := addSpec()
	spec.HasPreview = false
	return newHost(t, pipeline.Options{Runner: plugin, Policy: rules(t, policy.Options{Mode: policy.Autonomous})}, spec)
}

func TestIdempotencyKey(t *testing.T) {
	plugin := &counter{}
	h := newKeyHost(t, plugin)
	first := h.Call(t.Context(), keyed("k", `{"text":"a"}`))
	again := h.Call(t.Context(), keyed("k", `{"text":"a"}`))
	if first.Result.Error != nil || again.Result.Error != nil || again.Result.Text() != "added" || plugin.calls() != `{"text":"a"}` {
		t.Fatalf("the call and its repetition: %+v, %+v; %q ran, want it once", first, again, plugin.calls())
	}
	for _, tt := range []struct {
		name string
		req  pipeline.Request
		want tool.Code
	}{
		{"other arguments", keyed("k", `{"text":"b"}`), tool.Conflict},
		{"a key that is too long", keyed(strings.Repeat("k", 201), `{"text":"b"}`), tool.InvalidArgument},
		{"a key that is not UTF-8", keyed("\xff", `{"text":"b"}`), tool.InvalidArgument},
		{"another key", keyed("l", `{"text":"c"}`), ""},
	} {
		got := h.Call(t.Context(), tt.req).Result.Error
		if (got == nil) != (tt.want == "") || got != nil && got.Code != tt.want {
			t.Errorf("%s: %v, want %q", tt.name, got, tt.want)
		}
	}
	stranger := keyed("k", `{"text":"d"}`)
	stranger.Caller.User = "bob"
	if got := h.Call(t.Context(), stranger).Result.Error; got != nil {
		t.Errorf("another user's key of the same name: %v", got)
	}
	if got, want := plugin.calls(), `{"text":"a"} {"text":"c"} {"text":"d"}`; got != want {
		t.Errorf("%s ran, want %s", got, want)
	}
}

// TestIdempotencyKeyAtOnce sends one call a hundred times at the same time.
func TestIdempotencyKeyAtOnce(t *testing.T) {
	const senders = 100
	send := func(key func(i int) string) (*counter, int) {
		plugin := &counter{}
		h := newKeyHost(t, plugin)
		var mu sync.Mutex
		var done sync.WaitGroup
		added := 0
		for i := range senders {
			done.Go(func() {
				outcome := h.Call(t.Context(), keyed(key(i), `{"text":"a"}`))
				mu.Lock()
				defer mu.Unlock()
				if outcome.Result.Error == nil && outcome.Result.Text() == "added" {
					added++
				}
			})
		}
		done.Wait()
		return plugin, added
	}
	plugin, added := send(func(int) string { return "k" })
	if len(plugin.ran) != 1 || added != senders {
		t.Errorf("it ran %d times for %d senders of %d", len(plugin.ran), added, senders)
	}
	if plugin, _ := send(func(i int) string { return fmt.Sprint(i) }); len(plugin.ran) != senders {
		t.Errorf("with keys of their own it ran %d times: the control shows nothing", len(plugin.ran))
	}
}

// TestIdempotencyKeyAfterACrash repeats a call of a host that was killed.
func TestIdempotencyKeyAfterACrash(t *testing.T) {
	for _, tt := range []struct {
		name, state string
		ended       bool // the journal has the call's end
		want        tool.Code
		runs        string
	}{
		{"admitted", "admitted", false, "", `{"text":"a"}`},
		{"started", "started", false, tool.UnknownOutcome, ""},
		{"started, and ended just before the crash", "started", true, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plugin := &counter{}
			h := newKeyHost(t, plugin)
			probe := h.Call(t.Context(), keyed("probe", `{"text":"a"}`)) // to learn the hash
			plugin.ran = nil
			err := h.opts.Store.Do(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(t.Context(), `UPDATE idempotency SET key = 'k', state = ?, call = iif(?, call, 'tc_lost'), result = NULL WHERE key = 'probe'`,
					tt.state, tt.ended)
				return err
			})
			if err != nil || probe.Result.Error != nil {
				t.Fatal(err, probe.Result.Error)
			}
			got := h.Call(t.Context(), keyed("k", `{"text":"a"}`)).Result.Error
			if (got == nil) != (tt.want == "") || got != nil && got.Code != tt.want || plugin.calls() != tt.runs {
				t.Errorf("Call = %v, and %q ran; want %q, %q", got, plugin.calls(), tt.want, tt.runs)
			}
		})
	}
}

// TestIdempotencyKeyOfARefusedCall repeats a call with the key of one that never began.
func TestIdempotencyKeyOfARefusedCall(t *testing.T) {
	calls := 0
	plugin := fakeRunner{run: func(context.Context, string, tool.Call, tool.Sink) (tool.Result, error) {
		calls++
		return tool.TextResult("added"), nil
	}}
	h := newHost(t, pipeline.Options{Runner: plugin, Policy: rules(t, policy.Options{Mode: policy.Autonomous}), ActionsPerHour: 1}, addSpec())
	h.Call(t.Context(), keyed("first", `{"text":"a"}`))
	got := h.Call(t.Context(), keyed("k", `{"text":"a"}`)).Result.Error
	if got == nil || got.Code != tool.RateLimited {
		t.Fatalf("the second call of an hour: %v, want %s", got, tool.RateLimited)
	}
	h.Apply(pipeline.Settings{Policy: rules(t, policy.Options{Mode: policy.Autonomous})})
	if got := h.Call(t.Context(), keyed("k", `{"text":"a"}`)).Result.Error; got != nil || calls != 2 {
		t.Errorf("the same call later: %v after %d runs, want it to run", got, calls)
	}
}

// TestReplayIsDecidedForWhoAsks repeats a call with another client's key. The policy denies
// that client the call, so it does not get the result. The control is a third client.
func TestReplayIsDecidedForWhoAsks(t *testing.T) {
	spec := addSpec()
	spec.HasPreview = false
	denied := policy.Rule{Name: "no", Tools: []string{"add"}, Verdict: policy.Deny, When: func(in *policy.Input) (bool, error) {
		return in.Caller.Client == "denied", nil
	}}
	plugin := &counter{}
	h := newHost(t, pipeline.Options{Runner: plugin, Policy: rules(t, policy.Options{Mode: policy.Autonomous, Rules: []policy.Rule{denied}})}, spec)
	if o := h.Call(t.Context(), keyed("k", `{"text":"a"}`)); o.Result.Error != nil {
		t.Fatal(o.Result.Error)
	}
	for client, want := range map[string]tool.Code{"denied": tool.PermissionDenied, "third": ""} {
		again := keyed("k", `{"text":"a"}`)
		again.Caller.Client = client
		got := tool.Code("")
		if failed := h.Call(t.Context(), again).Result.Error; failed != nil {
			got = failed.Code
		}
		if got != want {
			t.Errorf("the key from the client %q = %q, want %q", client, got, want)
		}
	}
	if got := plugin.calls(); got != `{"text":"a"}` {
		t.Errorf("%s ran, want one call", got)
	}
}
