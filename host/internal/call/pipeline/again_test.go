package pipeline_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestOwedCallBeginsAnew starts a call again that has no holder and whose caller was told to
// repeat it. The call must not mistake itself for the repeated call.
func TestOwedCallBeginsAnew(t *testing.T) {
	for _, key := range []string{"", "k"} {
		t.Run(fmt.Sprintf("idempotency key %q", key), func(t *testing.T) {
			plugin := &counter{value: "1"}
			h := newHost(t, pipeline.Options{Runner: plugin}, addSpec())
			req := request("add", `{"text":"a"}`)
			req.IdempotencyKey = key
			f := h.Start(t.Context(), req)
			f.Wait(t.Context(), 0)
			f.KeepForRetry()
			first := h.nextQuestion(t)
			f.Release()
			plugin.set("2")
			h.answer(t, first.ID, true)
			h.answer(t, h.nextQuestion(t).ID, true)
			again := h.Start(t.Context(), req)
			defer again.Release()
			got := again.Wait(t.Context(), operation.Forever)
			if got.Result.Error != nil || got.ID != f.ID() || plugin.calls() != `{"text":"a"}` {
				t.Errorf("Wait = %+v, and %q ran; want the result of the first call, which ran once", got, plugin.calls())
			}
		})
	}
}

// TestPolicyChangesBeforeTheTurn reloads the policy while an approved call, and one that needs
// no approval, wait for their turn.
func TestPolicyChangesBeforeTheTurn(t *testing.T) {
	ask := rules(t, policy.Options{})
	allow := rules(t, policy.Options{Mode: policy.Autonomous})
	deny := rules(t, policy.Options{Mode: policy.ReadOnly})
	for _, tt := range []struct {
		name        string
		first, next *policy.Rules
		want        tool.Code
	}{
		{"approved, then denied", ask, deny, tool.PermissionDenied},
		{"allowed, then denied", allow, deny, tool.PermissionDenied},
		{"approved, then allowed", ask, allow, ""},
		{"allowed, then the same", allow, allow, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inside, leave := make(chan struct{}), make(chan struct{})
			ran := ""
			h := newHost(t, pipeline.Options{Policy: tt.first, Runner: fakeRunner{
				preview: func(context.Context, tool.Call) (tool.Preview, error) { return tool.Preview{}, nil },
				run: func(_ context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
					if string(call.Arguments) == `{"text":"first"}` {
						close(inside)
						<-leave
						return tool.TextResult("done"), nil
					}
					ran += string(call.Arguments)
					return tool.TextResult("done"), nil
				},
			}}, oneAtATime())
			first := h.Start(t.Context(), request("add", `{"text":"first"}`))
			defer first.Release()
			if tt.first == ask {
				h.answer(t, h.nextQuestion(t).ID, true)
			}
			<-inside // it holds the tool's only place
			events := h.opts.Events.Subscribe("")
			second := h.Start(t.Context(), request("add", `{"text":"second"}`))
			defer second.Release()
			if tt.first == ask {
				h.answer(t, h.nextQuestion(t).ID, true)
			} else if e, err := events.Next(t.Context()); err != nil || e.Kind != event.KindToolCall {
				t.Fatalf("the second call is not decided: %+v, %v", e, err)
			}
			h.Apply(pipeline.Settings{Policy: tt.next})
			close(leave)
			got := second.Wait(t.Context(), operation.Forever).Result.Error
			if (got == nil) != (tt.want == "") || got != nil && got.Code != tt.want || (ran == "") != (tt.want != "") {
				t.Errorf("Wait = %v, and %q ran; want code %q", got, ran, tt.want)
			}
		})
	}
}

// TestFailedCallsAreCounted makes calls that run and return permission_denied.
func TestFailedCallsAreCounted(t *testing.T) {
	h := newHost(t, pipeline.Options{
		ActionsPerHour: 2, Policy: rules(t, policy.Options{Mode: policy.Autonomous}),
		Runner: answer(tool.ErrorResult(tool.Errorf(tool.PermissionDenied, "not there"))),
	}, addSpec())
	var codes []tool.Code
	for range 3 {
		codes = append(codes, h.Call(t.Context(), request("add", `{"text":"a"}`)).Result.Error.Code)
	}
	if got, want := fmt.Sprint(codes), "[permission_denied permission_denied rate_limited]"; got != want {
		t.Errorf("three calls with two actions per hour: %s, want %s", got, want)
	}
}

// held returns a plugin for one call. It closes inside when it receives the call, and answers
// when leave is closed or the call is canceled.
func held() (runner fakeRunner, inside, leave chan struct{}) {
	inside, leave = make(chan struct{}), make(chan struct{})
	runner.run = func(ctx context.Context, _ string, _ tool.Call, _ tool.Sink) (tool.Result, error) {
		close(inside)
		select {
		case <-leave:
			return tool.TextResult("done"), nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}
	return runner, inside, leave
}

// TestFollowerGivesUp cancels one of two requests with the same key. The call continues for
// the other one.
func TestFollowerGivesUp(t *testing.T) {
	runner, inside, leave := held()
	h := newHost(t, pipeline.Options{Policy: rules(t, policy.Options{Mode: policy.Autonomous}), Runner: runner}, addSpec())
	first := h.Start(t.Context(), keyed("k", `{"text":"a"}`))
	defer first.Release()
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan operation.Outcome)
	go func() { ended <- h.Call(ctx, keyed("k", `{"text":"a"}`)) }() // ends with cancel
	cancel()
	if got := (<-ended).Result.Error; got == nil || got.Code != tool.Canceled {
		t.Errorf("the request that was given up: %v, want %s", got, tool.Canceled)
	}
	close(leave)
	if got := first.Wait(t.Context(), operation.Forever).Result; got.Error != nil || got.Text() != "done" {
		t.Errorf("the other request: %+v, want the result", got)
	}
}

// TestIdleWhenTheLastCallEnds runs two calls of one session at the same time.
func TestIdleWhenTheLastCallEnds(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	h := newHost(t, pipeline.Options{Runner: fakeRunner{
		run: func(_ context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
			if string(call.Arguments) == `{"text":"long"}` {
				close(inside)
				<-leave
			}
			return tool.TextResult("done"), nil
		},
	}}, echoSpec())
	long := h.Start(t.Context(), request("echo", `{"text":"long"}`))
	defer long.Release()
	<-inside
	events := h.opts.Events.Subscribe("")
	h.Call(t.Context(), request("echo", `{"text":"short"}`))
	close(leave)
	long.Wait(t.Context(), operation.Forever)
	results := 0
	for {
		e, err := events.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == event.KindToolResult {
			results++
		}
		if state, ok := e.Data.(event.AgentState); ok && state.State == event.Idle {
			break
		}
	}
	if results != 2 {
		t.Errorf("the session is idle after %d of 2 results", results)
	}
}
