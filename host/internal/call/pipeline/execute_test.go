package pipeline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// failing is a plugin that fails a given number of times.
type failing struct {
	times int
	sent  bool
	err   *tool.Error
	asked bool // the tool's own failure
	tries []int
}

func (f *failing) Run(_ context.Context, _, _ string, call tool.Call, _ tool.Sink) (tool.Result, bool, error) {
	f.tries = append(f.tries, call.Context.Attempt)
	switch {
	case len(f.tries) > f.times:
		return tool.TextResult("done"), true, nil
	case f.asked:
		return tool.ErrorResult(f.err), true, nil
	}
	return tool.Result{}, f.sent, f.err
}

func (f *failing) Preview(context.Context, string, string, tool.Call) (tool.Preview, error) {
	return tool.Preview{}, nil
}

func TestRetry(t *testing.T) {
	crashed := tool.Errorf(tool.PluginCrashed, "the plugin crashed")
	busy := tool.Errorf(tool.Unavailable, "busy").WithRetry(100 * time.Millisecond)
	away := tool.Errorf(tool.Unavailable, "backing off").WithRetry(30 * time.Second)
	failed := tool.Errorf(tool.Failed, "no")
	for _, tt := range []struct {
		name   string
		tool   string
		plugin failing
		tries  int
		want   tool.Code
	}{
		{"a read whose plugin crashed", "echo", failing{times: 1, sent: true, err: crashed}, 1, tool.PluginCrashed},
		{"a read that took too long", "echo", failing{times: 1, asked: true, err: tool.Errorf(tool.Timeout, "too slow")}, 2, ""},
		{"a read that may be tried again", "echo", failing{times: 2, asked: true, err: busy}, 3, ""},
		{"a read that always fails", "echo", failing{times: 9, asked: true, err: busy}, 3, tool.Unavailable},
		{"a read that failed for good", "echo", failing{times: 1, asked: true, err: failed}, 1, tool.Failed},
		{"a read that would have to wait long", "echo", failing{times: 1, err: away}, 1, tool.Unavailable},
		{"a write that was not sent", "add", failing{times: 1, err: busy}, 2, ""},
		{"a write that was lost", "add", failing{times: 1, sent: true, err: crashed}, 1, tool.UnknownOutcome},
		{"a write that says it may be tried again", "add", failing{times: 1, asked: true, err: busy}, 1, tool.Unavailable},
		{"a write that was sent and is unavailable", "add", failing{times: 1, sent: true, err: busy}, 1, tool.UnknownOutcome},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, pipeline.Options{Runner: &tt.plugin, Policy: rules(t, policy.Options{Mode: policy.Autonomous})}, addSpec(), echoSpec())
				got := h.Call(t.Context(), request(tt.tool, `{"text":"a"}`)).Result.Error
				if (got == nil) != (tt.want == "") || got != nil && got.Code != tt.want {
					t.Errorf("Call = %v, want %q", got, tt.want)
				}
				if len(tt.plugin.tries) != tt.tries {
					t.Fatalf("%d attempts, want %d", len(tt.plugin.tries), tt.tries)
				}
				for i, attempt := range tt.plugin.tries {
					if attempt != i+1 {
						t.Errorf("attempt %d says that it is number %d", i+1, attempt)
					}
				}
			})
		})
	}
}

// TestLateWrite checks the error of a write that takes too long.
func TestLateWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		h := newHost(t, pipeline.Options{
			Policy: rules(t, policy.Options{Mode: policy.Autonomous}),
			Runner: fakeRunner{run: func(ctx context.Context, _ string, _ tool.Call, _ tool.Sink) (tool.Result, error) {
				tries++
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}},
		}, addSpec())
		got := h.Call(t.Context(), request("add", `{"text":"a"}`)).Result.Error
		if got == nil || got.Code != tool.Timeout || got.Hint == "" || tries != 1 {
			t.Errorf("after %d attempts: %v (%v), want a time-out after one, and the hint to look", tries, got, got.Hint)
		}
	})
}

// TestOneTimeOutForAllAttempts checks that all attempts share one time-out, for a read that
// never ends and for one that keeps failing late.
func TestOneTimeOutForAllAttempts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		after time.Duration // time until an attempt fails; 0 means that it never ends
		tries int
	}{{"never ends", 0, 1}, {"fails late", 40 * time.Second, 2}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				spec := echoSpec()
				spec.Timeout = time.Minute
				h := newHost(t, pipeline.Options{Runner: fakeRunner{run: func(ctx context.Context, _ string, _ tool.Call, _ tool.Sink) (tool.Result, error) {
					tries++
					if tt.after > 0 {
						failing, cancel := context.WithTimeout(ctx, tt.after)
						defer cancel()
						ctx = failing
					}
					<-ctx.Done()
					return tool.Result{}, tool.Errorf(tool.Timeout, "too slow").WithRetry(time.Millisecond)
				}}}, spec)
				began := time.Now()
				got := h.Call(t.Context(), request("echo", `{"text":"a"}`)).Result.Error
				if took := time.Since(began); got == nil || got.Code != tool.Timeout || tries != tt.tries || took != time.Minute {
					t.Errorf("after %d attempts and %v: %v; want a time-out after %d attempts and a minute", tries, took, got, tt.tries)
				}
			})
		})
	}
}
