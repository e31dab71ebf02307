package pipeline_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestActionsPerHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin := &counter{}
		spec := addSpec()
		spec.HasPreview = false
		h := newHost(t, pipeline.Options{Runner: plugin, Policy: rules(t, policy.Options{Mode: policy.Autonomous}), ActionsPerHour: 3}, spec, echoSpec())
		call := func(name, user string) *tool.Error {
			req := request(name, `{"text":"a"}`)
			req.Caller.User = user
			return h.Call(t.Context(), req).Result.Error
		}
		for i := range 3 {
			if got := call("add", "ann"); got != nil {
				t.Fatalf("call %d: %v", i, got)
			}
		}
		got := call("add", "ann")
		if got == nil || got.Code != tool.RateLimited || got.Message != "Rate limit exceeded" || !got.Retryable ||
			got.RetryAfter < 19*time.Minute || got.RetryAfter > 20*time.Minute {
			t.Fatalf("the fourth call: %v, again in %v; want %s, again in 20 minutes", got, got.RetryAfter, tool.RateLimited)
		}
		if got := call("echo", "ann"); got != nil {
			t.Errorf("a call that changes nothing: %v", got)
		}
		if got := call("add", "bob"); got != nil {
			t.Errorf("another user's call: %v", got)
		}
		<-time.After(20 * time.Minute)
		if got := call("add", "ann"); got != nil {
			t.Errorf("20 minutes later: %v", got)
		}
	})
}

// TestRefusedCallsAreNotCounted rejects a call and then makes another one.
func TestRefusedCallsAreNotCounted(t *testing.T) {
	h := newHost(t, pipeline.Options{Runner: &counter{}, ActionsPerHour: 1}, addSpec())
	for range 3 {
		f, question := h.begin(t, request("add", `{"text":"a"}`))
		h.answer(t, question.ID, false)
		if got := f.Wait(t.Context(), operation.Forever).Result.Error; got == nil || got.Code != tool.Rejected {
			t.Fatalf("Wait = %v, want %s", got, tool.Rejected)
		}
	}
	f, question := h.begin(t, request("add", `{"text":"a"}`))
	h.answer(t, question.ID, true)
	if got := f.Wait(t.Context(), operation.Forever).Result.Error; got != nil {
		t.Errorf("after three refused calls: %v", got)
	}
	if got := h.Call(t.Context(), request("add", `{"text":"b"}`)).Result.Error; got == nil || got.Code != tool.RateLimited {
		t.Errorf("after one that ran: %v, want %s", got, tool.RateLimited)
	}
}

func TestRateOfATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := catalog.New(catalog.Options{Plugins: []catalog.Plugin{{
			Name: "test", Ceiling: tool.Privileged, TrustClaims: true,
			Tools: []catalog.ToolOptions{{Name: "echo", Rate: catalog.Rate{Calls: 2, Per: time.Minute}}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Publish("test", "old", []tool.Spec{echoSpec()}); err != nil {
			t.Fatal(err)
		}
		h := newHost(t, pipeline.Options{Runner: answer(tool.TextResult("ok")), Catalog: c})
		var codes []tool.Code
		for range 4 {
			code := tool.Code("ok")
			if failure := h.Call(t.Context(), request("say", `{"text":"a"}`)).Result.Error; failure != nil { // by its alias
				code = failure.Code
			}
			codes = append(codes, code)
		}
		if got, want := fmt.Sprint(codes), "[ok ok rate_limited rate_limited]"; got != want {
			t.Errorf("four calls of a tool with 2/m: %s, want %s", got, want)
		}
		<-time.After(30 * time.Second)
		if got := h.Call(t.Context(), request("echo", `{"text":"a"}`)).Result.Error; got != nil {
			t.Errorf("half a minute later: %v", got)
		}
	})
}
