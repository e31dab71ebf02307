package pipeline_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// open is a plugin whose programs see forbidden files, which its first process reveals.
type open struct {
	counter
	known atomic.Bool
}

var _ pipeline.Hider = (*open)(nil)

func (o *open) Run(ctx context.Context, plugin, digest string, call tool.Call, sink tool.Sink) (tool.Result, bool, error) {
	if call.Context.ApprovalID == "" {
		o.known.Store(true)
		return tool.Result{}, false, tool.Errorf(tool.Unavailable, "a person has to approve the call").WithRetry(1)
	}
	return o.counter.Run(ctx, plugin, digest, call, sink)
}

func (o *open) Unhidden(_, _, _ string) bool { return o.known.Load() }

// TestUnhidden checks that a call that would otherwise run needs confirmation while its plugin
// may see forbidden files, even if only the plugin's start reveals that.
func TestUnhidden(t *testing.T) {
	t.Parallel()
	for _, mode := range []policy.Mode{policy.Supervised, policy.Autonomous} {
		for _, known := range []bool{false, true} {
			runner := &open{}
			runner.known.Store(known)
			h := newHost(t, pipeline.Options{Runner: runner, Policy: rules(t, policy.Options{Mode: mode})}, echoSpec())
			req := request("echo", `{"text":"a"}`)
			f, question := h.begin(t, req)
			if question.Verdict != policy.Confirm || question.Standing || runner.calls() != "" {
				t.Errorf("mode %v, known %v: the question is %+v after %q ran; want it confirmed first, and no grant", mode, known, question, runner.calls())
			}
			h.answer(t, question.ID, true)
			if outcome := f.Wait(t.Context(), operation.Forever); outcome.Result.Error != nil || runner.calls() != `{"text":"a"}` {
				t.Errorf("mode %v, known %v: the approved call: %+v, ran %q; want success", mode, known, outcome, runner.calls())
			}
			if e, err := h.Explain(req); err != nil || e.Verdict != policy.Confirm {
				t.Errorf("mode %v, known %v: Explain = %+v, %v; want confirm", mode, known, e, err)
			}
		}
	}
}
