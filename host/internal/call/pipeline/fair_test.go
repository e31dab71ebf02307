package pipeline_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// by makes the calls of users one after another, without waiting for them, and returns the users
// in the order in which the calls ended, by second.
func by(ctx context.Context, t *testing.T, p *pipeline.Pipeline, limits auth.Limits, users ...string) (ends []string) {
	t.Helper()
	var mu sync.Mutex // guards ends
	var calls sync.WaitGroup
	for _, user := range users {
		calls.Go(func() { // ends with its call; calls.Wait waits for it
			req := request("echo", `{"text":"a"}`)
			req.Caller.User, req.Caller.Limits = user, limits
			outcome := p.Call(ctx, req)
			mu.Lock()
			defer mu.Unlock()
			if outcome.Result.Error != nil {
				user += " " + string(outcome.Result.Error.Code)
			}
			ends = append(ends, user)
		})
		synctest.Wait() // it runs or waits
	}
	calls.Wait()
	return ends
}

// TestUsersTakeTurns: calls of a plugin that all users share take turns by user, however many calls
// one of them has.
func TestUsersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t, pipeline.Options{Runner: &slow{}, PluginConcurrency: 1}, echoSpec())
		got := by(t.Context(), t, p, auth.Limits{}, "ada", "ada", "ada", "ada", "bob", "bob", "eve")
		if want := []string{"ada", "bob", "eve", "ada", "bob", "ada", "ada"}; !slices.Equal(got, want) {
			t.Errorf("with one place, calls ended as %v, want %v", got, want)
		}
		p = newPipeline(t, pipeline.Options{Runner: &slow{}, PluginConcurrency: 2}, echoSpec())
		got = by(t.Context(), t, p, auth.Limits{}, "ada", "ada", "ada", "ada", "ada", "ada", "bob", "bob")
		if last := slices.Index(got, "bob"); last > 3 || got[len(got)-1] != "ada" {
			t.Errorf("with two places, calls ended as %v, want bob's between ada's", got)
		}
	})
}

// TestQueueOfOneUser: one user cannot fill the queue for others.
func TestQueueOfOneUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t, pipeline.Options{Runner: &slow{}, PluginConcurrency: 1, MaxWaiting: 2}, echoSpec())
		got := by(t.Context(), t, p, auth.Limits{}, "ada", "ada", "ada", "ada", "bob", "bob", "bob")
		slices.Sort(got)
		if want := []string{"ada", "ada", "ada", "ada " + string(tool.ResourceExhausted), "bob", "bob", "bob " + string(tool.ResourceExhausted)}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// TestBoundsOfOwnProcesses: if each user has processes of a plugin, its bounds are those of one user.
func TestBoundsOfOwnProcesses(t *testing.T) {
	for _, tt := range []struct {
		own  bool
		most int
	}{{false, 2}, {true, 6}} {
		synctest.Test(t, func(t *testing.T) {
			c, err := catalog.New(catalog.Options{Plugins: []catalog.Plugin{{Name: "test", Ceiling: tool.Privileged, TrustClaims: true, OwnProcesses: tt.own}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Publish("test", "d1", []tool.Spec{echoSpec()}); err != nil {
				t.Fatal(err)
			}
			plugin := &slow{}
			p := newPipeline(t, pipeline.Options{Runner: plugin, Catalog: c, PluginConcurrency: 2}, echoSpec())
			by(t.Context(), t, p, auth.Limits{}, "ada", "ada", "ada", "bob", "bob", "bob", "eve", "eve", "eve")
			if plugin.most != tt.most {
				t.Errorf("own = %v: %d calls ran at the same time, want %d", tt.own, plugin.most, tt.most)
			}
		})
	}
}

// TestConcurrentCallsOfAUser: further calls of a user wait, and those of others do not.
func TestConcurrentCallsOfAUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin := &slow{}
		p := newPipeline(t, pipeline.Options{Runner: plugin}, echoSpec())
		got := by(t.Context(), t, p, auth.Limits{ConcurrentCalls: 1}, "ada", "ada", "ada", "bob")
		if plugin.most != 2 || slices.Index(got, "bob") > 1 {
			t.Errorf("%d calls ran at the same time and ended as %v, want one of each user", plugin.most, got)
		}
	})
}

// TestOtherLimitsOfAUser: a user whose credentials have different limits gets neither more places nor
// more actions.
func TestOtherLimitsOfAUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin := &slow{}
		p := newPipeline(t, pipeline.Options{Runner: plugin}, echoSpec())
		var calls sync.WaitGroup
		for n := range 12 {
			calls.Go(func() { // ends with its call; Wait waits for it
				req := request("echo", `{"text":"a"}`)
				req.Caller.User, req.Caller.Limits = "ada", auth.Limits{ConcurrentCalls: 1 + n%3}
				if outcome := p.Call(t.Context(), req); outcome.Result.Error != nil {
					t.Errorf("call %d: %v", n, outcome.Result.Error)
				}
			})
			synctest.Wait()
		}
		calls.Wait()
		if plugin.most != 3 {
			t.Errorf("%d calls ran at the same time, want 3, the widest bound", plugin.most)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t, pipeline.Options{Runner: &counter{}, Policy: rules(t, policy.Options{Mode: policy.Autonomous})}, addSpec())
		ran := 0
		for n := range 20 {
			req := request("add", `{"n":1}`)
			req.Caller.User, req.Caller.Limits = "ada", auth.Limits{ActionsPerHour: 1 + n%2}
			if outcome := p.Call(t.Context(), req); outcome.Result.Error == nil {
				ran++
			}
		}
		if ran > 2 {
			t.Errorf("%d actions ran in one hour, want 2 at most", ran)
		}
	})
}

// TestTurnsOfOneUser: calls of a user that wait for the user's own place, or for the same file, do not
// hold up another user's call to that file.
func TestTurnsOfOneUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := addSpec()
		spec.InputSchema = []byte(`{"type":"object","properties":{"path":{"type":"string","description":"a file","x-role":"path"}}}`)
		p := newPipeline(t, pipeline.Options{
			Runner: &slow{}, Roots: []string{"/ws"}, MaxWaiting: 4, Policy: rules(t, policy.Options{Mode: policy.Autonomous}),
		}, spec)
		var mu sync.Mutex // guards ends
		var ends []string
		var calls sync.WaitGroup
		start := func(user string, limit int) {
			calls.Go(func() { // ends with its call; Wait waits for it
				req := request(spec.Name, `{"path":"report"}`)
				req.Caller.User, req.Caller.Limits = user, auth.Limits{ConcurrentCalls: limit}
				outcome := p.Call(t.Context(), req)
				mu.Lock()
				defer mu.Unlock()
				if outcome.Result.Error != nil {
					user += " " + string(outcome.Result.Error.Code)
				}
				ends = append(ends, user)
			})
			synctest.Wait()
		}
		for range 4 {
			start("mallory", 1)
		}
		start("bob", 0)
		calls.Wait()
		if i := slices.Index(ends, "bob"); i < 0 || i > 1 {
			t.Errorf("calls to one file ended as %v, want bob's after the one that ran", ends)
		}
		ends = nil
		for range 6 {
			start("mallory", 0)
		}
		start("bob", 0)
		calls.Wait()
		if !slices.Contains(ends, "bob") || !slices.Contains(ends, "mallory "+string(tool.ResourceExhausted)) {
			t.Errorf("calls to one file ended as %v, want that one of mallory's is refused and bob's is not", ends)
		}
	})
}
