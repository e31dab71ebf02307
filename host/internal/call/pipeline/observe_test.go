package pipeline_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/state/metrics"
	"github.com/toolhost/toolhost/sdk/tool"
)

// observation is what Observe was told.
type observation struct {
	Step pipeline.Step
	Call pipeline.Observed
	Took time.Duration
}

// TestObserve checks what is told of calls that end in each way.
func TestObserve(t *testing.T) {
	echoed := pipeline.Observed{Plugin: "test", Tool: "echo"}
	ended := func(status string, took time.Duration) observation {
		of := echoed
		of.Status = status
		return observation{pipeline.StepEnd, of, took}
	}
	for _, tt := range []struct {
		name   string
		call   pipeline.Request
		works  time.Duration
		result tool.Result
		want   []observation
	}{
		{
			"it works for three seconds", request("say", `{"text":"a"}`), 3 * time.Second, tool.TextResult("a"),
			[]observation{{pipeline.StepExecute, echoed, 3 * time.Second}, ended("success", 3*time.Second)},
		},
		{
			"it fails", request("echo", `{"text":"a"}`), 0, tool.ErrorResult(tool.Errorf(tool.Failed, "no")),
			[]observation{{pipeline.StepExecute, echoed, 0}, ended("error", 0)},
		},
		{"it is not sent", request("echo", `{}`), 0, tool.TextResult("a"), []observation{ended("error", 0)}},
		{
			"there is no such tool", request("../../secret", `{}`), 0, tool.TextResult("a"),
			[]observation{{pipeline.StepEnd, pipeline.Observed{Status: "error"}, 0}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []observation
				p := newPipeline(t, pipeline.Options{
					Runner: fakeRunner{run: func(context.Context, string, tool.Call, tool.Sink) (tool.Result, error) {
						<-time.After(tt.works)
						return tt.result, nil
					}},
					Observe: func(step pipeline.Step, of pipeline.Observed, took time.Duration) {
						got = append(got, observation{step, of, took})
					},
				}, echoSpec())
				p.Call(t.Context(), tt.call)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("Observe was told (-want +got)\n%s", diff)
				}
			})
		})
	}
}

// TestObservePeople checks that the time in which people answer is not counted as the tool's: for an
// approval, and for a question of the tool.
func TestObservePeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []observation
		h := newHost(t, pipeline.Options{
			Runner: asks(question()),
			Observe: func(step pipeline.Step, of pipeline.Observed, took time.Duration) {
				got = append(got, observation{step, of, took})
			},
		}, echoSpec())
		f, q := h.asked(t, attended())
		<-time.After(time.Minute)
		f.Answer(q.ID, given(`{"n":3}`))
		f.Wait(t.Context(), operation.Forever)
		want := []observation{
			{pipeline.StepExecute, pipeline.Observed{Plugin: "test", Tool: "echo"}, 0},
			{pipeline.StepEnd, pipeline.Observed{Plugin: "test", Tool: "echo", Status: "success"}, time.Minute},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with a question, Observe was told (-want +got)\n%s", diff)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var got []observation
		h := newHost(t, pipeline.Options{
			Runner: &counter{value: "1"},
			Observe: func(step pipeline.Step, of pipeline.Observed, took time.Duration) {
				got = append(got, observation{step, of, took})
			},
		}, addSpec())
		f, approval := h.begin(t, request("add", `{"text":"a"}`))
		<-time.After(time.Minute)
		h.answer(t, approval.ID, false)
		f.Wait(t.Context(), operation.Forever)
		want := []observation{{pipeline.StepEnd, pipeline.Observed{Plugin: "test", Tool: "add", Status: "rejected"}, time.Minute}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of a rejected call, Observe was told (-want +got)\n%s", diff)
		}
	})
}

// TestObserveOnce checks that a result that is returned again is observed once.
func TestObserveOnce(t *testing.T) {
	ends := 0
	h := newHost(t, pipeline.Options{
		Runner: fakeRunner{run: echo},
		Observe: func(step pipeline.Step, _ pipeline.Observed, _ time.Duration) {
			if step == pipeline.StepEnd {
				ends++
			}
		},
	}, echoSpec())
	req := request("echo", `{"text":"a"}`)
	req.IdempotencyKey = "k"
	first := h.Call(t.Context(), req)
	if again := h.Call(t.Context(), req); again.ID != first.ID {
		t.Fatalf("the second call is %s, want that of %s again", again.ID, first.ID)
	}
	if ends != 1 {
		t.Errorf("Observe was told of %d calls, want 1", ends)
	}
}

// BenchmarkObserve compares calls that are counted with calls that are not, in turns.
func BenchmarkObserve(b *testing.B) {
	const calls = 100
	figures := metrics.New(metrics.Options{})
	counted := newPipeline(b, pipeline.Options{
		Runner: answer(tool.TextResult("ok")),
		Observe: func(step pipeline.Step, of pipeline.Observed, took time.Duration) {
			if step == pipeline.StepExecute {
				figures.Executed(of.Plugin, of.Tool, took)
			} else {
				figures.Ended(of.Plugin, of.Tool, of.Status)
			}
		},
	}, echoSpec())
	uncounted := newPipeline(b, pipeline.Options{Runner: answer(tool.TextResult("ok"))}, echoSpec())
	round := func(p *pipeline.Pipeline) float64 {
		began := time.Now()
		for range calls {
			if outcome := p.Call(b.Context(), request("echo", `{"text":"hi"}`)); outcome.Result.Error != nil {
				b.Fatal(outcome.Result.Error)
			}
		}
		return float64(time.Since(began).Nanoseconds()) / calls
	}
	var with, without []float64
	for i := 0; b.Loop(); i++ {
		if i%2 == 0 { // neither is always first
			with, without = append(with, round(counted)), append(without, round(uncounted))
		} else {
			without, with = append(without, round(uncounted)), append(with, round(counted))
		}
	}
	slices.Sort(with)
	slices.Sort(without)
	b.ReportMetric(with[len(with)/2], "counted-ns/call")
	b.ReportMetric(without[len(without)/2], "uncounted-ns/call")
}
