package hosttools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// whole is a result with every field set.
func whole() tool.Result {
	return tool.Result{
		Content:    []tool.Content{tool.Text(strings.Repeat("x", 50_000)), {Kind: tool.KindImage, MediaType: "image/png", Data: []byte{1}}},
		Structured: json.RawMessage(`{"n":1}`),
		Metadata:   map[string]any{"bytes": 7},
		Effects:    []tool.Effect{{Kind: "file.changed", Target: "a.txt", Operation: "create"}},
	}
}

// TestWaitGivesTheOtherResult waits for calls that end in each possible way.
func TestWaitGivesTheOtherResult(t *testing.T) {
	failed := whole()
	failed.Error = tool.Errorf(tool.Failed, "Exit code: 1")
	for _, tt := range []struct {
		name    string
		result  tool.Result
		approve bool
		want    tool.Result
	}{
		{"approved", whole(), true, whole()},
		{"approved, and failed", failed, true, failed},
		{"rejected", whole(), false, tool.ErrorResult(tool.Errorf(tool.Rejected, "User rejected the operation").WithHint("wrong file"))},
	} {
		for _, when := range []string{"before", "after"} { // when the wait begins, relative to the decision
			for _, by := range []string{"approval", "call"} {
				t.Run(fmt.Sprintf("%s %s, by %s", tt.name, when, by), func(t *testing.T) {
					h := open(t, options{run: func(context.Context, tool.Call, tool.Sink) (tool.Result, error) { return tt.result, nil }})
					events := h.events.Subscribe("")
					call, question := h.ask(t, "add", "a")
					id := map[string]string{"approval": question, "call": call}[by]
					got := make(chan tool.Result, 1)
					if when == "before" {
						go func() { got <- h.wait(t, ann, id) }()
						eventually(t, "the wait has begun", func() bool { return len(h.Operations().List(ann)) == 2 })
					}
					h.decide(t, question, tt.approve, "wrong file")
					if when == "after" {
						go func() { got <- h.wait(t, ann, id) }()
					}
					if diff := cmp.Diff(tt.want, <-got, sameResult()); diff != "" {
						t.Errorf("call_wait (-want +got):\n%s", diff)
					}
					// Both ids return the result once more, and the call ran once.
					for _, id := range []string{call, question} {
						if diff := cmp.Diff(tt.want, h.wait(t, ann, id), sameResult()); diff != "" {
							t.Errorf("call_wait of %s again (-want +got):\n%s", id, diff)
						}
					}
					want := map[bool]int{true: 1}[tt.approve]
					if changes := h.changes(t, events); h.calls() != want || changes != want {
						t.Errorf("the call ran %d times and %d changes were told, want %d", h.calls(), changes, want)
					}
				})
			}
		}
	}
}

// sameResult compares results. It compares content as whole byte slices, which is much faster
// than byte by byte.
func sameResult() cmp.Option { return cmp.Options{cmp.Comparer(sameError), cmp.Comparer(bytes.Equal)} }

func sameError(a, b *tool.Error) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Code == b.Code && a.Message == b.Message && a.Hint == b.Hint
}

// changes returns the number of changed files that events have reported so far.
func (h *host) changes(t *testing.T, events *event.Subscription) (n int) {
	t.Helper()
	h.events.Publish("", event.CatalogChanged{}) // marks the end
	ctx := h.bounded(t)
	for {
		e, err := events.Next(ctx)
		must(t, err)
		switch e.Data.(type) {
		case event.FileChanged:
			n++
		case event.CatalogChanged:
			return n
		}
	}
}

// TestWaitIsPatient checks that call_wait returns after its patience, sends reminders until
// then, and tells the caller to wait again.
func TestWaitIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, options{patience: 45 * time.Second})
		defer h.stop()
		call, question := h.ask(t, "add", "a")
		var mu sync.Mutex
		var said []string
		wait := func(id string) tool.Result {
			said = nil
			req := request(ann, catalog.CallWait, map[string]any{"id": id})
			req.IdempotencyKey = "the same each time" // must not keep a pending answer
			last := -1.0
			req.Sink.Progress = func(p tool.Progress) {
				mu.Lock()
				defer mu.Unlock()
				if said = append(said, p.Message); p.Progress < last {
					t.Errorf("the progress goes from %v to %v", last, p.Progress)
				}
				last = p.Progress
			}
			return h.Call(h.bounded(t), req).Result
		}
		for range 2 {
			began := time.Now()
			got := wait(question)
			wantError(t, "call_wait", got.Error, tool.PendingApproval, "waits for a person to approve "+question,
				"  toolhost approvals approve "+question, "  toolhost approvals reject "+question, `call call_wait {"id":"`+question+`"} again`)
			if waited := time.Since(began); waited != 45*time.Second {
				t.Errorf("it waited for %v, want its patience", waited)
			}
			mu.Lock()
			if len(said) < 4 || said[0] != "waiting for a person to approve "+question {
				t.Errorf("meanwhile it said %q, want a reminder every 10 seconds", said)
			}
			mu.Unlock()
		}
		h.decide(t, question, true, "")
		if got := wait(question); got.Text() != `added {"text":"a"}` {
			t.Errorf("once approved call_wait = %q, %v", got.Text(), got.Error)
		}
		if got := h.wait(t, ann, call); got.Text() != `added {"text":"a"}` {
			t.Errorf("once more call_wait = %q, %v", got.Text(), got.Error)
		}
		h.stop()
	})
}

// TestWaitForACallThatRuns waits for an approved call that takes longer than the patience. The
// answer is not an error, and the call's progress is passed on.
func TestWaitForACallThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, options{patience: 5 * time.Second, run: func(_ context.Context, _ tool.Call, sink tool.Sink) (tool.Result, error) {
			<-time.After(time.Second)
			sink.Progress(tool.Progress{Progress: 1, Message: "half"})
			<-time.After(6 * time.Second)
			return tool.TextResult("done"), nil
		}})
		defer h.stop()
		call, question := h.ask(t, "add", "a")
		var said []string
		req := request(ann, catalog.CallWait, map[string]any{"id": question})
		req.Sink.Progress = func(p tool.Progress) { said = append(said, p.Message) }
		f := h.Start(t.Context(), req)
		synctest.Wait()
		h.decide(t, question, true, "")
		got := h.result(t, f)
		f.Release()
		for _, want := range []string{"Still running: add has taken 5s so far.", `call call_wait {"id":"` + call + `"} again`} {
			if got.Error != nil || !strings.Contains(got.Text(), want) {
				t.Errorf("call_wait = %q, %v; want %q", got.Text(), got.Error, want)
			}
		}
		if len(said) == 0 || said[0] != "waiting for a person to approve "+question || said[len(said)-1] != "half" {
			t.Errorf("meanwhile it said %q, want what the call reports", said)
		}
		if got := h.wait(t, ann, question); got.Text() != "done" {
			t.Errorf("then call_wait = %q, %v", got.Text(), got.Error)
		}
		h.stop()
	})
}

// TestSameCallAfterAWait checks that the same call is a new call after call_wait has returned
// the result, and returns the first result before.
func TestSameCallAfterAWait(t *testing.T) {
	h := open(t, options{})
	_, question := h.ask(t, "add", "a")
	h.decide(t, question, true, "")
	if got := h.call(t, ann, "add", map[string]any{"text": "a"}).Result; got.Error != nil || h.calls() != 1 {
		t.Fatalf("the same call made again = %v, and %d ran", got.Error, h.calls())
	}
	_, question = h.ask(t, "add", "b")
	h.decide(t, question, true, "")
	if got := h.wait(t, ann, question); got.Error != nil || h.calls() != 2 {
		t.Fatalf("call_wait = %v, and %d ran", got.Error, h.calls())
	}
	if _, another := h.ask(t, "add", "b"); another == question {
		t.Error("a call that its caller knows the result of is not made anew")
	}
}

// TestCanceledWait checks that canceling a wait does not cancel the call.
func TestCanceledWait(t *testing.T) {
	h := open(t, options{})
	_, question := h.ask(t, "add", "a")
	f := h.Start(t.Context(), request(ann, catalog.CallWait, map[string]any{"id": question}))
	f.Cancel()
	wantError(t, "a canceled call_wait", h.result(t, f).Error, tool.Canceled)
	f.Release()
	h.decide(t, question, true, "")
	if got := h.wait(t, ann, question); got.Error != nil || h.calls() != 1 {
		t.Errorf("afterwards call_wait = %v, and %d ran", got.Error, h.calls())
	}
}

func TestWaitRefuses(t *testing.T) {
	h := open(t, options{})
	call, question := h.ask(t, "add", "a")
	bob := auth.Caller{User: "bob", Client: "test", Roles: auth.Agent}
	root := auth.Caller{User: "root", Client: "test", Roles: auth.Admin}
	limited := ann // another credential of the same user, for some tools
	limited.Token, limited.Toolsets = "limited", []auth.Toolset{{Name: "few", Tools: []string{"look"}}}
	missing := h.wait(t, ann, "ap_01890a5d-ac96-774b-bcce-b302099a8057").Error
	for _, tt := range []struct {
		name, id string
		by       auth.Caller
	}{
		{"another user's approval", question, bob},
		{"another user's call", call, bob},
		{"another user's approval, for an admin", question, root},
		{"another user's call, for an admin", call, root},
		{"the approval of a tool outside of the toolset", question, limited},
		{"the call of a tool outside of the toolset", call, limited},
		{"no call", "tc_01890a5d-ac96-774b-bcce-b302099a8057", ann},
		{"nothing", "", ann},
		{"something else", "gr_01890a5d-ac96-774b-bcce-b302099a8057", ann},
		{"SQL", "ap_' OR 1=1 --", ann},
		{"a long one", "ap_" + strings.Repeat("x", 4096), ann},
		{"hidden characters", "tc_\x00\u202e", ann},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := h.wait(t, tt.by, tt.id).Error
			wantError(t, "call_wait", got, tool.NotFound, "tc_... or ap_...")
			if got != nil && (len(got.Message) > 300 || strings.ContainsAny(got.Message, "\x00\u202e")) {
				t.Errorf("call_wait says %q", got.Message)
			}
			if got != nil && tt.by.User != "ann" && strings.Replace(got.Message, tt.id, "ap_01890a5d-ac96-774b-bcce-b302099a8057", 1) != missing.Message {
				t.Errorf("call_wait says %q, and %q of none: they can be told apart", got.Message, missing.Message)
			}
		})
	}
}

// TestManyWaits checks that waiting calls do not block other calls, that their number is
// bounded, and that a wait cannot wait for a wait.
func TestManyWaits(t *testing.T) {
	h := open(t, options{run: giving(numbered(100_000))})
	long := h.call(t, ann, "look", nil)
	_, question := h.ask(t, "add", "a")
	waits := make([]*operation.Operation, 64)
	for i := range waits {
		waits[i] = h.Start(t.Context(), request(ann, catalog.CallWait, map[string]any{"id": question}))
	}
	eventually(t, "all of them wait", func() bool { return h.own.Waiting("ann") == len(waits) })
	wantError(t, "one more", h.wait(t, ann, question).Error, tool.ResourceExhausted, "64 calls of call_wait wait already")
	for _, name := range []string{"look", catalog.ResultRead} {
		arguments := map[string]any{}
		if name == catalog.ResultRead {
			arguments["handle"] = long.ID
		}
		if got := h.call(t, ann, name, arguments).Result; got.Error != nil {
			t.Errorf("meanwhile %s = %v", name, got.Error)
		}
	}
	bob := auth.Caller{User: "bob", Client: "test", Roles: auth.Agent}
	wantError(t, "another user's", h.wait(t, bob, question).Error, tool.NotFound)
	waits[0].Cancel()
	h.result(t, waits[0])
	wantError(t, "a wait for a wait", h.wait(t, ann, waits[1].ID()).Error, tool.InvalidArgument, "is a call of call_wait itself", "the call that it waits for")
	h.decide(t, question, true, "")
	for i, f := range waits[1:] {
		if got := h.result(t, f); got.Error != nil || h.calls() != 3 {
			t.Errorf("wait %d = %v, and %d ran", i, got.Error, h.calls())
		}
		f.Release()
	}
	waits[0].Release()
}
