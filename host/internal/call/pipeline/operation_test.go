package pipeline_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestSameCallJoins repeats a call whose client was told to do so: it gets the result of the
// first call, which runs once.
func TestSameCallJoins(t *testing.T) {
	for _, collectFirst := range []bool{true, false} {
		t.Run(fmt.Sprintf("made again before the answer: %v", collectFirst), func(t *testing.T) {
			plugin := &counter{}
			h := newHost(t, pipeline.Options{Runner: plugin}, addSpec())
			first := h.Start(t.Context(), request("add", `{"text":"a"}`))
			if !first.Wait(t.Context(), 0).Pending {
				t.Fatal("the call does not wait")
			}
			first.KeepForRetry()
			question := h.nextQuestion(t)
			first.Release()
			if !collectFirst {
				h.answer(t, question.ID, true)
			}
			second := h.Start(t.Context(), request("add", `{"text":"a"}`))
			defer second.Release()
			if collectFirst {
				if got := second.Wait(t.Context(), 0); !got.Pending || got.Approval != question.ID || got.ID != first.ID() {
					t.Fatalf("the same call made again: %+v, want it to wait for %s too", got, question.ID)
				}
				h.answer(t, question.ID, true)
			}
			got := second.Wait(t.Context(), operation.Forever)
			if got.Result.Error != nil || got.ID != first.ID() || plugin.calls() != `{"text":"a"}` {
				t.Errorf("Wait = %+v, and %q ran; want the result of the first call, which ran once", got, plugin.calls())
			}
		})
	}
}

// TestOnlyTheSameCallJoins makes calls that differ from the first one.
func TestOnlyTheSameCallJoins(t *testing.T) {
	base := request("add", `{"text":"a"}`)
	otherUser, otherClient, otherArguments := base, base, request("add", `{"text":"b"}`)
	otherUser.Caller.User, otherClient.Caller.Client = "bob", "another"
	for _, tt := range []struct {
		name string
		req  pipeline.Request
	}{{"another user", otherUser}, {"another client", otherClient}, {"other arguments", otherArguments}} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t, pipeline.Options{Runner: &counter{}}, addSpec())
			first := h.Start(t.Context(), base)
			first.Wait(t.Context(), 0)
			first.KeepForRetry()
			h.nextQuestion(t)
			first.Release()
			second, _ := h.begin(t, tt.req)
			if got := second.Wait(t.Context(), 0).ID; got == first.ID() {
				t.Error("it got the other call's result")
			}
		})
	}
	t.Run("nobody was told to make it again", func(t *testing.T) {
		h := newHost(t, pipeline.Options{Runner: &counter{}}, addSpec())
		first := h.Start(t.Context(), base)
		first.Wait(t.Context(), 0)
		h.nextQuestion(t)
		first.Release()
		second := h.Start(t.Context(), base)
		defer second.Release()
		if second.Wait(t.Context(), 0).ID == first.ID() {
			t.Error("a second call became the first one")
		}
	})
}

// TestKeptForRetryWhileItIsHeld repeats a call twice while another caller waits for it by its
// id. The host must not ask a second time.
func TestKeptForRetryWhileItIsHeld(t *testing.T) {
	plugin := &counter{}
	h := newHost(t, pipeline.Options{Runner: plugin}, addSpec())
	req := request("add", `{"text":"a"}`)
	first, question := h.begin(t, req) // released at the end of the test
	first.KeepForRetry()
	var again []*operation.Operation
	for range 3 {
		f := h.Start(t.Context(), req)
		defer f.Release()
		if got := f.Wait(t.Context(), 0); !got.Pending || got.Approval != question.ID {
			t.Fatalf("the same call made again = %+v, want that it waits for %s", got, question.ID)
		}
		f.KeepForRetry()
		again = append(again, f)
	}
	h.answer(t, question.ID, true)
	for _, f := range again {
		if got := f.Wait(t.Context(), operation.Forever); got.Result.Error != nil || got.ID != first.ID() {
			t.Errorf("the same call made again = %+v, want the result of the first", got)
		}
	}
	if got := plugin.calls(); got != `{"text":"a"}` {
		t.Errorf("%q ran, want one call", got)
	}
}

// TestOperationIsSeenByItsUserOnly looks for another user's call.
func TestOperationIsSeenByItsUserOnly(t *testing.T) {
	h := newHost(t, pipeline.Options{Runner: &counter{}}, addSpec())
	f, _ := h.begin(t, request("add", `{"text":"a"}`))
	for _, tt := range []struct {
		by   auth.Caller
		want bool
	}{
		{auth.Caller{User: "ann", Roles: auth.Agent}, true},
		{auth.Caller{User: "bob", Roles: auth.Agent}, false},
		{auth.Caller{User: "bob", Roles: auth.Approver}, false},
		{auth.Caller{User: "bob", Roles: auth.Admin}, true},
	} {
		got, ok := h.Operations().Find(f.ID(), tt.by)
		if ok != tt.want || len(h.Operations().List(tt.by)) != map[bool]int{true: 1}[tt.want] {
			t.Errorf("Find by %+v = %v, want %v; List = %v", tt.by, ok, tt.want, h.Operations().List(tt.by))
		}
		if ok {
			got.Release()
		}
	}
	if _, ok := h.Operations().Find("tc_unknown", auth.Caller{User: "ann"}); ok {
		t.Error("there is a op tc_unknown")
	}
}

// TestPatience has a client wait for a person for the length of its patience, with reports in
// between.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, pipeline.Options{Runner: &counter{}}, addSpec())
		var reports []tool.Progress
		req := request("add", `{"text":"a"}`)
		req.Sink.Progress = func(p tool.Progress) { reports = append(reports, p) }
		begun := time.Now()
		f := h.Start(t.Context(), req)
		outcome := f.Wait(t.Context(), 45*time.Second)
		if waited := time.Since(begun); !outcome.Pending || waited < 45*time.Second || waited > 46*time.Second {
			t.Errorf("after %v: %+v, want pending after 45 s", waited, outcome)
		}
		failure := outcome.Result.Error
		if failure.Code != tool.PendingApproval || !strings.Contains(failure.Message, outcome.Approval) {
			t.Errorf("the caller reads %v", failure)
		}
		f.Release()
		if len(reports) != 5 {
			t.Errorf("%d reports in 45 s, want one at once and one each 10 s", len(reports))
		}
		for i, r := range reports {
			if r.Progress != float64(i+1) || r.Message != "waiting for a person to approve "+outcome.Approval {
				t.Errorf("report %d is %+v, want the number %d and for whom it waits", i, r, i+1)
			}
		}
	})
}

// TestAbandonedOperations leaves calls without holders. After a while, the host cancels a call
// that changes nothing, but not one that waits for a person or changes something. It keeps
// results for the same time.
func TestAbandonedOperations(t *testing.T) {
	by := auth.Caller{User: "ann"}
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, pipeline.Options{Keep: 5 * time.Minute, Runner: fakeRunner{run: func(ctx context.Context, _ string, _ tool.Call, _ tool.Sink) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}}}, func() tool.Spec {
			spec := echoSpec()
			spec.Timeout = 10 * time.Minute
			return spec
		}())
		f := h.Start(t.Context(), request("echo", `{"text":"a"}`))
		<-time.After(time.Minute)
		f.Release()
		<-time.After(4 * time.Minute)
		if ops := h.Operations().List(by); len(ops) != 1 || ops[0].State != operation.Running {
			t.Errorf("after 4 minutes alone: %v, want it to run", ops)
		}
		<-time.After(time.Minute + time.Second)
		synctest.Wait()
		if ops := h.Operations().List(by); len(ops) != 1 || ops[0].State != operation.Done {
			t.Errorf("after 5 minutes alone: %v, want it to have ended", ops)
		}
		<-time.After(5*time.Minute + time.Second)
		if ops := h.Operations().List(by); len(ops) != 0 {
			t.Errorf("after 10 minutes alone: %v, want it to be forgotten", ops)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		plugin := &counter{}
		h := newHost(t, pipeline.Options{Runner: plugin, Keep: time.Minute}, addSpec())
		f := h.Start(t.Context(), request("add", `{"text":"a"}`))
		f.Wait(t.Context(), 0)
		f.Release()
		question := h.nextQuestion(t)
		<-time.After(5 * time.Minute)
		h.answer(t, question.ID, true)
		f, ok := h.Operations().Find(f.ID(), by)
		if !ok {
			t.Fatal("the call that waits for a person was dropped")
		}
		defer f.Release()
		if got := f.Wait(t.Context(), operation.Forever); got.Result.Error != nil || plugin.calls() == "" {
			t.Errorf("Wait = %+v, and %q ran", got, plugin.calls())
		}
	})
}

// TestChangingCallContinuesAlone leaves a call that changes something without holders for
// longer than the host keeps results: the call completes, and its result is kept from then on.
func TestChangingCallContinuesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := addSpec()
		spec.HasPreview, spec.Timeout = false, 10*time.Minute
		h := newHost(t, pipeline.Options{
			Keep: time.Minute, Policy: rules(t, policy.Options{Mode: policy.Autonomous}),
			Runner: fakeRunner{run: func(ctx context.Context, _ string, _ tool.Call, _ tool.Sink) (tool.Result, error) {
				select {
				case <-ctx.Done():
					return tool.Result{}, ctx.Err()
				case <-time.After(9 * time.Minute):
					return tool.TextResult("done"), nil
				}
			}},
		}, spec)
		f := h.Start(t.Context(), request("add", `{"text":"a"}`))
		f.Release()
		<-time.After(9*time.Minute + time.Second)
		found, ok := h.Operations().Find(f.ID(), auth.Caller{User: "ann"})
		if !ok {
			t.Fatal("the call and its result are gone")
		}
		defer found.Release()
		if got := found.Wait(t.Context(), operation.Forever).Result; got.Error != nil || got.Text() != "done" {
			t.Errorf("the call ended with %q, %v", got.Text(), got.Error)
		}
	})
}

// TestOutdatedReadIsMadeAgain repeats a read whose caller went away. Soon after, the caller
// gets the result; later, the host reads again. A change never runs twice.
func TestOutdatedReadIsMadeAgain(t *testing.T) {
	for _, tt := range []struct {
		tool  string
		after time.Duration
		joins bool
	}{{"echo", time.Second, true}, {"echo", 2 * time.Minute, false}, {"add", 9 * time.Minute, true}} {
		t.Run(fmt.Sprint(tt.tool, " after ", tt.after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				change := addSpec()
				change.HasPreview = false
				h := newHost(t, pipeline.Options{Runner: &slow{}, Policy: rules(t, policy.Options{Mode: policy.Autonomous})}, echoSpec(), change)
				first := h.Start(t.Context(), request(tt.tool, `{"text":"a"}`))
				first.KeepForRetry() // its caller goes away
				first.Release()
				<-time.After(time.Second + tt.after)
				again := h.Start(t.Context(), request(tt.tool, `{"text":"a"}`))
				defer again.Release()
				if got := again.Wait(t.Context(), operation.Forever); (got.ID == first.ID()) != tt.joins {
					t.Errorf("it has the result of the first call: %t, want %t", !tt.joins, tt.joins)
				}
			})
		})
	}
}

// TestReportsEndWithTheRequest checks that a request receives no reports after its answer.
func TestReportsEndWithTheRequest(t *testing.T) {
	inside, more, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h := newHost(t, pipeline.Options{Runner: fakeRunner{run: func(_ context.Context, _ string, _ tool.Call, sink tool.Sink) (tool.Result, error) {
		close(inside)
		<-more
		sink.Progress(tool.Progress{Progress: 1})
		sink.Chunk(tool.Chunk{Stream: tool.Stdout, Data: []byte("x")})
		close(done)
		return tool.TextResult("late"), nil
	}}}, echoSpec())
	req := request("echo", `{"text":"a"}`)
	req.Sink = tool.Sink{
		Progress: func(tool.Progress) { t.Error("progress after the answer") },
		Chunk:    func(tool.Chunk) { t.Error("output after the answer") },
	}
	f := h.Start(t.Context(), req)
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if !f.Wait(ctx, operation.Forever).Pending {
		t.Fatal("the call has ended")
	}
	f.Release()
	close(more)
	<-done
}

// TestClose checks that Close ends calls under way and refuses new ones.
func TestClose(t *testing.T) {
	inside := make(chan struct{})
	h := newHost(t, pipeline.Options{Runner: fakeRunner{run: func(ctx context.Context, _ string, _ tool.Call, _ tool.Sink) (tool.Result, error) {
		close(inside)
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}}}, echoSpec())
	f := h.Start(t.Context(), request("echo", `{"text":"a"}`))
	defer f.Release()
	<-inside
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for _, outcome := range []operation.Outcome{
		f.Wait(t.Context(), operation.Forever), h.Call(t.Context(), request("echo", `{"text":"a"}`)),
	} {
		if got := outcome.Result.Error; got == nil || got.Code != tool.Unavailable || !strings.HasPrefix(got.Message, operation.Stopping) {
			t.Errorf("a call of a closed pipeline: %v", got)
		}
	}
}
