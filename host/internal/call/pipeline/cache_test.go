package pipeline_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// newCacheHost returns a host with two plugins, test and other, with the same tools. The
// results of their tool echo may be cached.
func newCacheHost(t *testing.T, run func(ctx context.Context, call tool.Call) tool.Result) *host {
	t.Helper()
	look, add, wreck := echoSpec(), addSpec(), addSpec()
	look.Cacheable, look.MaxOutput = true, 16*tool.MiB
	add.HasPreview, wreck.HasPreview = false, false
	wreck.Name, wreck.Tier = "wreck", tool.Privileged
	prefixed := func(s tool.Spec) tool.Spec { s.Name, s.Aliases = "other_"+s.Name, nil; return s }
	c, err := catalog.New(catalog.Options{Plugins: []catalog.Plugin{
		{Name: "test", Ceiling: tool.Privileged, TrustClaims: true},
		{Name: "other", Ceiling: tool.Privileged, TrustClaims: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for plugin, specs := range map[string][]tool.Spec{
		"test": {look, add, wreck}, "other": {prefixed(look), prefixed(add), prefixed(wreck)},
	} {
		if err := c.Publish(plugin, "old", specs); err != nil {
			t.Fatal(err)
		}
	}
	return newHost(t, pipeline.Options{
		Catalog: c,
		Policy: rules(t, policy.Options{Plugins: map[string]policy.Plugin{
			"test":  {Tiers: map[tool.Tier]policy.Level{tool.SideEffecting: {Verdict: policy.Allow}, tool.Privileged: {Verdict: policy.Allow}}},
			"other": {Tiers: map[tool.Tier]policy.Level{tool.SideEffecting: {Verdict: policy.Allow}, tool.Privileged: {Verdict: policy.Allow}}},
		}}),
		Runner: fakeRunner{run: func(ctx context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
			return run(ctx, call), nil
		}},
	})
}

func TestCache(t *testing.T) {
	for _, tt := range []struct {
		name    string
		between func(t *testing.T, h *host)
		second  func(*pipeline.Request)
		want    string // the answer of the second call; the first answers 1
	}{
		{name: "the same call", want: "1"},
		{name: "the same call, spelled otherwise", second: func(r *pipeline.Request) { r.Tool, r.Arguments = "say", []byte(` {"text" : "a"}`) }, want: "1"},
		{name: "other arguments", second: func(r *pipeline.Request) { r.Arguments = []byte(`{"text":"b"}`) }, want: "2"},
		{name: "another user", second: func(r *pipeline.Request) { r.Caller.User = "bob" }, want: "2"},
		{name: "another plugin's tool", second: func(r *pipeline.Request) { r.Tool = "other_echo" }, want: "2"},
		{name: "just before its time", between: after(59 * time.Second), want: "1"},
		{name: "after its time", between: after(time.Minute), want: "2"},
		{name: "after a change by the plugin", between: changeBy("ann", "add"), want: "3"},
		{name: "after a change by another plugin", between: changeBy("ann", "other_add"), want: "1"},
		{name: "after a privileged call of another plugin", between: changeBy("ann", "other_wreck"), want: "3"},
		{name: "after a change of another user", between: changeBy("bob", "wreck"), want: "1"},
		{name: "after another program", between: func(t *testing.T, h *host) {
			t.Helper()
			spec := echoSpec()
			spec.Cacheable = true
			if err := h.opts.Catalog.Publish("test", "new", []tool.Spec{spec}); err != nil {
				t.Fatal(err)
			}
		}, want: "2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				h := newCacheHost(t, func(context.Context, tool.Call) tool.Result {
					runs++
					return tool.TextResult(fmt.Sprint(runs))
				})
				first := request("echo", `{"text":"a"}`)
				if got := h.Call(t.Context(), first).Result.Text(); got != "1" {
					t.Fatalf("the first call answers %q", got)
				}
				if tt.between != nil {
					tt.between(t, h)
				}
				second := first
				if tt.second != nil {
					tt.second(&second)
				}
				if got := h.Call(t.Context(), second).Result.Text(); got != tt.want {
					t.Errorf("the second call answers %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// after advances the bubble's clock.
func after(d time.Duration) func(*testing.T, *host) {
	return func(*testing.T, *host) {
		synctest.Wait()
		<-time.After(d)
	}
}

// changeBy makes a call that changes something.
func changeBy(user, name string) func(*testing.T, *host) {
	return func(t *testing.T, h *host) {
		t.Helper()
		req := request(name, `{"text":"a"}`)
		req.Caller.User = user
		if got := h.Call(t.Context(), req).Result.Error; got != nil {
			t.Fatal(got)
		}
	}
}

// TestCacheKeepsNoFailure checks that a failed call is not cached.
func TestCacheKeepsNoFailure(t *testing.T) {
	runs := 0
	h := newCacheHost(t, func(context.Context, tool.Call) tool.Result {
		if runs++; runs == 1 {
			return tool.ErrorResult(tool.Errorf(tool.Failed, "no"))
		}
		return tool.TextResult("yes")
	})
	h.Call(t.Context(), request("echo", `{"text":"a"}`))
	if got := h.Call(t.Context(), request("echo", `{"text":"a"}`)).Result; got.Error != nil || got.Text() != "yes" {
		t.Errorf("the second call answers %+v", got)
	}
}

// TestCacheKeepsNothingThatChangedMeanwhile changes something during a read: later reads must
// not get the result from before the change.
func TestCacheKeepsNothingThatChangedMeanwhile(t *testing.T) {
	var value atomic.Int64
	reading, changed := make(chan struct{}), make(chan struct{})
	first := true
	h := newCacheHost(t, func(_ context.Context, call tool.Call) tool.Result {
		if call.Tool == "add" {
			value.Add(1)
			return tool.TextResult("added")
		}
		seen := value.Load()
		if first {
			first = false
			close(reading)
			<-changed
		}
		return tool.TextResult(fmt.Sprint(seen))
	})
	f := h.Start(t.Context(), request("echo", `{"text":"a"}`))
	defer f.Release()
	<-reading
	changeBy("ann", "add")(t, h)
	close(changed)
	if got := f.Wait(t.Context(), operation.Forever).Result.Text(); got != "0" {
		t.Fatalf("the read that began before the change answers %q", got)
	}
	if got := h.Call(t.Context(), request("echo", `{"text":"a"}`)).Result.Text(); got != "1" {
		t.Errorf("a read after the change answers %q, want 1", got)
	}
}

// TestCacheIsBounded fills the cache beyond its bound.
func TestCacheIsBounded(t *testing.T) {
	runs := 0
	h := newCacheHost(t, func(context.Context, tool.Call) tool.Result {
		runs++
		return tool.TextResult(strings.Repeat("x", 10<<20))
	})
	for _, text := range []string{"a", "b", "c", "d", "a", "d"} {
		h.Call(t.Context(), request("echo", `{"text":"`+text+`"}`))
	}
	if runs != 5 {
		t.Errorf("%d runs, want 5: the oldest of four results of 10 MiB is not kept, the last is", runs)
	}
}
