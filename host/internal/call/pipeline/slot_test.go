package pipeline_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/sdk/tool"
)

// slow is a plugin whose calls take a second. It counts concurrent calls.
type slow struct {
	mu            sync.Mutex // guards running and most
	running, most int
}

func (s *slow) Run(ctx context.Context, _, _ string, _ tool.Call, _ tool.Sink) (tool.Result, bool, error) {
	s.mu.Lock()
	s.running++
	s.most = max(s.most, s.running)
	s.mu.Unlock()
	work := time.NewTimer(time.Second)
	defer work.Stop()
	select {
	case <-work.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
	return tool.TextResult("done"), true, nil
}

// Preview implements [pipeline.Runner].
func (s *slow) Preview(context.Context, string, string, tool.Call) (tool.Preview, error) {
	return tool.Preview{}, nil
}

// callMany makes n calls at the same time and counts their outcomes.
func callMany(ctx context.Context, p *pipeline.Pipeline, n int) map[tool.Code]int {
	var mu sync.Mutex // guards ends
	ends := make(map[tool.Code]int)
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() { // ends with its call; calls.Wait waits for it
			outcome := p.Call(ctx, request("echo", `{"text":"a"}`))
			mu.Lock()
			defer mu.Unlock()
			if outcome.Result.Error != nil {
				ends[outcome.Result.Error.Code]++
				return
			}
			ends[""]++
		})
	}
	calls.Wait()
	return ends
}

func TestConcurrency(t *testing.T) {
	for _, tt := range []struct {
		name     string
		opts     pipeline.Options
		ofTool   int
		calls    int
		wantMost int
		wantEnds map[tool.Code]int
	}{
		{"no bound of the tool", pipeline.Options{}, 0, 64, 64, map[tool.Code]int{"": 64}},
		{"the plugin's bound", pipeline.Options{PluginConcurrency: 4}, 0, 10, 4, map[tool.Code]int{"": 10}},
		{"the tool's bound", pipeline.Options{PluginConcurrency: 4}, 2, 10, 2, map[tool.Code]int{"": 10}},
		{
			"a full queue",
			pipeline.Options{PluginConcurrency: 2, MaxWaiting: 3},
			0, 10, 2,
			map[tool.Code]int{"": 5, tool.ResourceExhausted: 5},
		},
		{
			"no patience",
			pipeline.Options{PluginConcurrency: 2, MaxWait: 1500 * time.Millisecond},
			0, 10, 2,
			map[tool.Code]int{"": 4, tool.Unavailable: 6},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plugin := &slow{}
				tt.opts.Runner = plugin
				spec := echoSpec()
				spec.MaxConcurrency = tt.ofTool
				p := newPipeline(t, tt.opts, spec)
				for range 2 { // the second round shows that all places were freed
					ends := callMany(t.Context(), p, tt.calls)
					for code, want := range tt.wantEnds {
						if ends[code] != want {
							t.Errorf("%d calls ended with code %q, want %d", ends[code], code, want)
						}
					}
				}
				if plugin.most != tt.wantMost {
					t.Errorf("%d calls ran at the same time, want %d", plugin.most, tt.wantMost)
				}
			})
		})
	}
}

// TestPanicGivesThePlaceBack checks that a panic ends only its own call and frees its place.
func TestPanicGivesThePlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a bubble, so that a call that waits in vain fails at once
		calls := 0
		p := newPipeline(t, pipeline.Options{
			PluginConcurrency: 1,
			Runner: fakeRunner{run: func(context.Context, string, tool.Call, tool.Sink) (tool.Result, error) {
				if calls++; calls == 1 {
					panic("oops")
				}
				return tool.TextResult("done"), nil
			}},
		}, echoSpec())
		if got := p.Call(t.Context(), request("echo", `{"text":"a"}`)).Result.Error; got == nil || got.Code != tool.Internal {
			t.Errorf("first call: %v, want %s", got, tool.Internal)
		}
		if got := p.Call(t.Context(), request("echo", `{"text":"a"}`)).Result; got.Error != nil {
			t.Errorf("second call: %v, want success", got.Error)
		}
	})
}

func TestWaitingCallIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The plugin ignores ctx, so that the running call succeeds and frees its place after
		// the others have given up.
		deaf := fakeRunner{run: func(context.Context, string, tool.Call, tool.Sink) (tool.Result, error) {
			work := time.NewTimer(time.Second)
			<-work.C
			return tool.TextResult("done"), nil
		}}
		p := newPipeline(t, pipeline.Options{Runner: deaf, PluginConcurrency: 1}, echoSpec())
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		ends := callMany(ctx, p, 3)
		if ends[""] != 1 || ends[tool.Timeout] != 2 {
			t.Errorf("ends = %v, want one success and two time-outs", ends)
		}
	})
}
