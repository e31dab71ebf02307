package pipeline_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/sdk/tool"
)

// form is the form that the tool of these tests asks its user to fill in.
const form = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer","description":"a number"}}}`

// asks returns a tool that asks its user and returns the answer.
func asks(q tool.Question) fakeRunner {
	return fakeRunner{run: func(ctx context.Context, _ string, _ tool.Call, sink tool.Sink) (tool.Result, error) {
		answer, err := sink.Ask(ctx, q)
		switch {
		case err != nil:
			return tool.ErrorResult(tool.AsError(err)), nil
		case !answer.Given:
			return tool.TextResult("declined"), nil
		}
		return tool.TextResult(string(answer.Values)), nil
	}}
}

func question() tool.Question { return tool.Question{Text: "How many?", Schema: []byte(form)} }

// attended returns a call of a front end that passes questions to the user.
func attended() pipeline.Request {
	req := request("echo", `{"text":"a"}`)
	req.Attended = true
	return req
}

// asked starts a call and returns it with its tool's question.
func (h *host) asked(t *testing.T, req pipeline.Request) (*operation.Operation, operation.Question) {
	t.Helper()
	f := h.Start(t.Context(), req)
	t.Cleanup(f.Release)
	outcome := f.WaitAttending(t.Context(), operation.Forever)
	if outcome.Question == nil || !outcome.Pending {
		t.Fatalf("WaitAttending = %+v, want a question", outcome)
	}
	return f, *outcome.Question
}

// ending summarizes the outcome of a call.
func ending(o operation.Outcome) string {
	if e := o.Result.Error; e != nil {
		return string(e.Code) + ": " + e.Message
	}
	return o.Result.Text()
}

func given(values string) tool.Answer { return tool.Answer{Given: true, Values: []byte(values)} }

func TestQuestionIsAnswered(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer tool.Answer
		want   string
	}{
		{"given", given(`{"n":3}`), `{"n":3}`},
		{"given, and repaired", given(`{"n":"3"}`), `{"n":3}`},
		{"declined", tool.Answer{}, "declined"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t, pipeline.Options{Runner: asks(question())}, echoSpec())
			f, q := h.asked(t, attended())
			if q.Text != "How many?" || q.Tool != "echo" || q.Plugin != "test" || q.Mistake != "" || !strings.HasPrefix(q.ID, "qu_") {
				t.Errorf("the question is %+v", q)
			}
			if state := f.Info().State; state != operation.AwaitingInput {
				t.Errorf("the op is %s while its tool asks", state)
			}
			if f.Answer("qu_other", tt.answer) {
				t.Error("an answer to another question was taken")
			}
			if !f.Answer(q.ID, tt.answer) {
				t.Error("the answer was not taken")
			}
			if f.Answer(q.ID, given(`{"n":4}`)) {
				t.Error("the question was answered twice")
			}
			if got := ending(f.WaitAttending(t.Context(), operation.Forever)); got != tt.want {
				t.Errorf("the call came to %q, want %q", got, tt.want)
			}
		})
	}
}

// TestQuestionsThatNobodyCanAnswer asks questions without a front end that can show them, and
// invalid questions.
func TestQuestionsThatNobodyCanAnswer(t *testing.T) {
	for _, tt := range []struct {
		name     string
		attended bool
		question tool.Question
		want     string
	}{
		{"nobody attends", false, question(), "unavailable: the user cannot be asked: the client"},
		{"an empty question", true, tool.Question{Text: " ", Schema: []byte(form)}, "invalid_argument: the tool's question is empty"},
		{"no form", true, tool.Question{Text: "?", Schema: []byte(`{"type":"array"}`)}, "invalid_argument: the schema of the tool's question is refused: at the root"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t, pipeline.Options{Runner: asks(tt.question)}, echoSpec())
			req := attended()
			req.Attended = tt.attended
			if got := ending(h.Call(t.Context(), req)); !strings.HasPrefix(got, tt.want) {
				t.Errorf("the call came to %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("whoever attended leaves", func(t *testing.T) {
		h := newHost(t, pipeline.Options{Runner: asks(question())}, echoSpec())
		f, _ := h.asked(t, attended())
		f.Leave()
		if got := ending(f.Wait(t.Context(), operation.Forever)); !strings.HasPrefix(got, "unavailable: the user cannot be asked") {
			t.Errorf("the call came to %q", got)
		}
	})
	t.Run("who leaves is expected again", func(t *testing.T) {
		h := newHost(t, pipeline.Options{Runner: asks(question())}, echoSpec())
		f, q := h.asked(t, attended())
		f.Expect()
		f.Leave()
		f.Attend()
		if !f.Answer(q.ID, given(`{"n":1}`)) {
			t.Error("the question is gone")
		}
		f.Leave()
		if got := ending(f.Wait(t.Context(), operation.Forever)); got != `{"n":1}` {
			t.Errorf("the call came to %q", got)
		}
	})
}

// TestWrongAnswers gives answers that do not fit the form: the host asks again, each time with
// a new question, and finally gives up.
func TestWrongAnswers(t *testing.T) {
	h := newHost(t, pipeline.Options{Runner: asks(question())}, echoSpec())
	f, q := h.asked(t, attended())
	for range 2 {
		before := q.ID
		if !f.Answer(q.ID, given(`{"n":"many"}`)) {
			t.Fatal("the answer was not taken")
		}
		if f.Answer(before, given(`{"n":1}`)) {
			t.Error("the question before was answered")
		}
		q = *f.WaitAttending(t.Context(), operation.Forever).Question
		if q.ID == before || !strings.Contains(q.Mistake, "n: expected integer") {
			t.Errorf("asked again it is %+v, want another one that tells of the mistake in n", q)
		}
	}
	f.Answer(q.ID, given(`{}`))
	if got := ending(f.Wait(t.Context(), operation.Forever)); !strings.HasPrefix(got, "unavailable: the user gave 3 answers") {
		t.Errorf("the call came to %q", got)
	}
}

// TestClockStops checks that the user's time to answer does not count against the tool's
// time-out. The user takes longer than the time-out, and the tool uses most of it before and
// after the question.
func TestClockStops(t *testing.T) {
	spec := echoSpec()
	spec.Timeout = 10 * time.Second
	for _, tt := range []struct {
		name  string
		after time.Duration
		want  string
	}{
		{"in time", 2 * time.Second, `{"n":3}`},
		{"too late", 4 * time.Second, "timeout: echo took longer than 10s and was stopped"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				h := newHost(t, pipeline.Options{Runner: fakeRunner{run: func(ctx context.Context, plugin string, call tool.Call, sink tool.Sink) (tool.Result, error) {
					if tries++; tries > 1 { // repeated, since it changes nothing
						<-ctx.Done()
						return tool.Result{}, ctx.Err()
					}
					<-time.After(7 * time.Second)
					result, err := asks(question()).run(ctx, plugin, call, sink)
					select {
					case <-time.After(tt.after):
						return result, err
					case <-ctx.Done():
						return tool.Result{}, ctx.Err()
					}
				}}}, spec)
				f, q := h.asked(t, attended())
				<-time.After(5 * time.Minute)
				f.Answer(q.ID, given(`{"n":3}`))
				if got := ending(f.Wait(t.Context(), operation.Forever)); got != tt.want {
					t.Errorf("the call came to %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// TestNobodyAnswers checks a question without an answer.
func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, pipeline.Options{Runner: asks(question()), AnswerTimeout: time.Minute}, echoSpec())
		begun := time.Now()
		f, q := h.asked(t, attended())
		got := ending(f.Wait(t.Context(), operation.Forever))
		if got != "unavailable: no one answered the tool's question within 1m0s" || time.Since(begun) < time.Minute {
			t.Errorf("after %v the call came to %q", time.Since(begun), got)
		}
		if f.Answer(q.ID, given(`{"n":1}`)) {
			t.Error("an answer was taken that came too late")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, pipeline.Options{Runner: asks(question()), Keep: time.Minute}, echoSpec())
		f := h.Start(t.Context(), attended())
		f.WaitAttending(t.Context(), operation.Forever)
		f.Expect()
		f.Leave()
		f.Release()
		<-time.After(time.Minute + time.Second)
		synctest.Wait()
		if ops := h.Operations().List(auth.Caller{User: "ann"}); len(ops) != 1 || ops[0].State != operation.Done {
			t.Errorf("a minute after its client has gone: %v, want the call to have ended", ops)
		}
	})
}

// TestQuestionEndsWithTheCall cancels a call whose tool asks, and ends one whose tool does not
// wait for the answer. An ended call asks no more questions.
func TestQuestionEndsWithTheCall(t *testing.T) {
	h := newHost(t, pipeline.Options{Runner: asks(question())}, echoSpec())
	f, q := h.asked(t, attended())
	f.Cancel()
	if got := f.Wait(t.Context(), operation.Forever).Result.Error; got == nil || got.Code != tool.Canceled {
		t.Errorf("the call came to %v, want canceled", got)
	}
	if f.Answer(q.ID, given(`{"n":1}`)) || f.Info().State != operation.Done {
		t.Errorf("the question was answered after its call has ended, which is %s", f.Info().State)
	}

	// A caller that cancels a call also leaves it. If the tool notices that first, it must not
	// report that the user is absent.
	slow := asks(question())
	run := slow.run
	slow.run = func(ctx context.Context, plugin string, call tool.Call, sink tool.Sink) (tool.Result, error) {
		return run(context.WithoutCancel(ctx), plugin, call, sink)
	}
	h = newHost(t, pipeline.Options{Runner: slow}, echoSpec())
	f, _ = h.asked(t, attended())
	f.GiveUp()
	f.Leave()
	if got := f.Wait(t.Context(), operation.Forever).Result.Error; got == nil || got.Code != tool.Canceled {
		t.Errorf("the call that was given up came to %v, want canceled", got)
	}

	left := make(chan error, 1)
	late := make(chan func(context.Context, tool.Question) (tool.Answer, error), 1)
	h = newHost(t, pipeline.Options{Runner: fakeRunner{run: func(ctx context.Context, _ string, _ tool.Call, sink tool.Sink) (tool.Result, error) {
		ctx = context.WithoutCancel(ctx)
		go func() { // ends with the attempt
			_, err := sink.Ask(ctx, question())
			left <- err
		}()
		late <- sink.Ask
		return tool.TextResult("done"), nil
	}}}, echoSpec())
	f = h.Start(t.Context(), attended())
	defer f.Release()
	if got := ending(f.Wait(t.Context(), operation.Forever)); got != "done" {
		t.Errorf("the call came to %q", got)
	}
	if err := <-left; err == nil {
		t.Error("a question was answered that nobody waits for")
	}
	if _, err := (<-late)(context.WithoutCancel(t.Context()), question()); tool.AsError(err) == nil || tool.AsError(err).Code != tool.Canceled {
		t.Errorf("a question after the call = %v, want canceled", err)
	}
	if state := f.Info().State; state != operation.Done {
		t.Errorf("the op that has ended is %s", state)
	}
}

// TestQuestionOfSharedCall repeats a call whose client was told to do so: the repeated request
// now answers the questions.
func TestQuestionOfSharedCall(t *testing.T) {
	spec := addSpec()
	spec.HasPreview = false
	h := newHost(t, pipeline.Options{Runner: asks(question())}, spec)
	first := h.Start(t.Context(), request("add", `{"text":"a"}`))
	first.Wait(t.Context(), 0)
	first.KeepForRetry()
	record := h.nextQuestion(t)
	first.Release()

	req := request("add", `{"text":"a"}`)
	req.Attended = true
	second := h.Start(t.Context(), req)
	defer second.Release()
	if !second.WaitAttending(t.Context(), 0).Pending {
		t.Fatal("the call does not wait for its approval")
	}
	h.answer(t, record.ID, true)
	q := second.WaitAttending(t.Context(), operation.Forever).Question
	if q == nil || !second.Answer(q.ID, given(`{"n":1}`)) {
		t.Fatalf("the question is %v", q)
	}
	if got := ending(second.Wait(t.Context(), operation.Forever)); got != `{"n":1}` {
		t.Errorf("the call came to %q", got)
	}
	second.Leave()
}

// TestQuestionsAreBounded has many tools ask one user at the same time.
func TestQuestionsAreBounded(t *testing.T) {
	h := newHost(t, pipeline.Options{Runner: asks(question())}, echoSpec())
	for range 20 {
		h.asked(t, attended())
	}
	if got := ending(h.Call(t.Context(), attended())); !strings.HasPrefix(got, "resource_exhausted: 20 questions") {
		t.Errorf("one more came to %q", got)
	}
	other := attended()
	other.Caller.User = "bob"
	h.asked(t, other)
}

// TestQuestionsAreTold reads the events that a question publishes.
func TestQuestionsAreTold(t *testing.T) {
	h := newHost(t, pipeline.Options{Runner: asks(question())}, echoSpec())
	sub := h.opts.Events.Subscribe("")
	f, q := h.asked(t, attended())
	f.Answer(q.ID, tool.Answer{})
	f.Wait(t.Context(), operation.Forever)
	var states []string
	for len(states) == 0 || states[len(states)-1] != event.Idle {
		e, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if state, ok := e.Data.(event.AgentState); ok {
			states = append(states, state.State)
		}
	}
	if got := strings.Join(states, " "); got != "tool_execution awaiting_input tool_execution idle" {
		t.Errorf("the session's states are %q", got)
	}
}

// TestAnswersAreNotCached makes a call twice whose tool asks its user: both ask.
func TestAnswersAreNotCached(t *testing.T) {
	spec := echoSpec()
	spec.Cacheable = true
	h := newHost(t, pipeline.Options{Runner: asks(question())}, spec)
	for _, answer := range []string{`{"n":1}`, `{"n":2}`} {
		f, q := h.asked(t, attended())
		f.Answer(q.ID, given(answer))
		if got := ending(f.Wait(t.Context(), operation.Forever)); got != answer {
			t.Errorf("the call came to %q, want %q", got, answer)
		}
	}
}
