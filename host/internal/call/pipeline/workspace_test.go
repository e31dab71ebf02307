package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestUserWithoutWorkspace: a user who cannot have a workspace may call what needs none. The policy
// decides by files and commands, so it must know where they are.
func TestUserWithoutWorkspace(t *testing.T) {
	named := func(name, role string) tool.Spec {
		return tool.Spec{
			Name: name, Description: "Names something.", Tier: tool.ReadOnly,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"a text","x-role":"` + role + `"}}}`),
		}
	}
	specs := []tool.Spec{echoSpec(), named("file", "path"), named("change", "patch"), named("status", "repository"), named("run", "command"), named("input", "script")}
	for _, tt := range []struct {
		tool    string
		own     bool
		user    string
		allowed bool
	}{
		{"echo", false, "auth0|1", true},
		{"echo", true, "auth0|1", false},
		{"file", false, "auth0|1", false},
		{"change", false, "auth0|1", false},
		{"status", false, "auth0|1", false},
		{"run", false, "auth0|1", false},
		{"input", false, "auth0|1", false},
		{"echo", true, "ann", true},
		{"file", false, "ann", true},
	} {
		c, err := catalog.New(catalog.Options{Plugins: []catalog.Plugin{{Name: "test", Ceiling: tool.Privileged, TrustClaims: true, OwnProcesses: tt.own}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Publish("test", "d1", specs); err != nil {
			t.Fatal(err)
		}
		var roots []string
		p := newPipeline(t, pipeline.Options{
			Catalog: c,
			Own: func(user string) (string, error) {
				if strings.Contains(user, "|") {
					return "", errors.New("no directory can have this name")
				}
				return "/srv/work/" + user, nil
			},
			Runner: fakeRunner{run: func(_ context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
				roots = call.Context.Roots
				return tool.TextResult("done"), nil
			}},
		}, specs...)
		req := request(tt.tool, `{"text":"a"}`)
		req.Caller.User = tt.user
		failed := p.Call(t.Context(), req).Result.Error
		switch {
		case tt.allowed && failed != nil:
			t.Errorf("%s of %s with processes of its own %v = %v", tt.tool, tt.user, tt.own, failed)
		case tt.allowed && (len(roots) > 0) != (tt.user == "ann"):
			t.Errorf("%s of %s works in %v", tt.tool, tt.user, roots)
		case !tt.allowed && (failed == nil || failed.Code != tool.PermissionDenied || !strings.Contains(failed.Message, "You have no workspace here")):
			t.Errorf("%s of %s with processes of its own %v = %v, want that it needs a workspace", tt.tool, tt.user, tt.own, failed)
		}
	}
}

// TestFullWorkspace: a person confirms each call that may change something in a full workspace.
func TestFullWorkspace(t *testing.T) {
	t.Parallel()
	const why = "the workspace held 11GiB 2s ago, and may hold 10GiB: files in it must be deleted"
	for _, tt := range []struct {
		name      string
		tier      tool.Tier
		own, full bool
		asked     bool
	}{
		{"a change", tool.SideEffecting, true, true, true},
		{"a change with room", tool.SideEffecting, true, false, false},
		{"a read", tool.ReadOnly, true, true, false},
		{"a change elsewhere", tool.SideEffecting, false, true, false},
	} {
		c, err := catalog.New(catalog.Options{Plugins: []catalog.Plugin{{Name: "test", Ceiling: tool.Privileged, TrustClaims: true, OwnProcesses: tt.own}}})
		if err != nil {
			t.Fatal(err)
		}
		spec := echoSpec()
		spec.Tier = tt.tier
		if err := c.Publish("test", "d1", []tool.Spec{spec}); err != nil {
			t.Fatal(err)
		}
		runner := &counter{}
		h := newHost(t, pipeline.Options{
			Catalog: c, Runner: runner, Policy: rules(t, policy.Options{Mode: policy.Autonomous}),
			Own: func(user string) (string, error) { return "/srv/work/" + user, nil },
			Full: func(user string) string {
				if tt.full && user == "ann" {
					return why
				}
				return ""
			},
		}, spec)
		req := request("echo", `{"text":"a"}`)
		e, err := h.Explain(req)
		if err != nil || (e.Verdict == policy.Confirm) != tt.asked {
			t.Errorf("%s: Explain() = %+v, %v", tt.name, e, err)
		}
		if !tt.asked {
			if outcome := h.Call(t.Context(), req); outcome.Result.Error != nil {
				t.Errorf("%s: %+v", tt.name, outcome)
			}
			continue
		}
		o, question := h.begin(t, req)
		if question.Verdict != policy.Confirm || question.Standing || question.Rule != "workspace_quota: "+why || runner.calls() != "" {
			t.Errorf("%s: the question is %+v after %q ran", tt.name, question, runner.calls())
		}
		h.answer(t, question.ID, true)
		if outcome := o.Wait(t.Context(), operation.Forever); outcome.Result.Error != nil || runner.calls() == "" {
			t.Errorf("%s, approved: %+v", tt.name, outcome)
		}
	}
}
