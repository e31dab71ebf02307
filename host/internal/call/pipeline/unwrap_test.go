package pipeline_test

import (
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/hosttools"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestUnwrap(t *testing.T) {
	tools, err := catalog.New(catalog.Options{Plugins: []catalog.Plugin{hosttools.Plugin(1), {Name: "test", Ceiling: tool.Privileged, TrustClaims: true}}})
	if err == nil {
		err = tools.Publish(catalog.HostPlugin, "host", hosttools.Specs())
	}
	if err != nil {
		t.Fatal(err)
	}
	p := newPipeline(t, pipeline.Options{Catalog: tools, Runner: answer(tool.Result{})})
	for _, tt := range []struct{ tool, arguments, wantTool, want string }{
		{"echo", `{"text":1}`, "echo", `{"text":1}`},
		{"call_tool", `{"name":"echo","arguments":{"text":"<1e2>","n":1e2}}`, "echo", `{"n":100,"text":"<1e2>"}`},
		{"call_tool", `{"name":"echo"}`, "echo", ``},
		{"call_tool", `{"tool":"echo","args":"{\"text\":\"a\"}"}`, "echo", `{"text":"a"}`},
		{"call_tool", `{"name":"find_tool","arguments":{"query":"a"}}`, "find_tool", `{"query":"a"}`},
		{"call_tool", `{"name":"call_tool","arguments":{"name":"echo"}}`, "call_tool", `{"name":"call_tool","arguments":{"name":"echo"}}`},
		{"call_tool", `{"name":"echo","arguments":[]}`, "call_tool", `{"name":"echo","arguments":[]}`},
		{"call_tool", `{"name":{}}`, "call_tool", `{"name":{}}`},
		{"call_tool", `{"name":"echo","name":"look"}`, "call_tool", `{"name":"echo","name":"look"}`},
		{"call_tool", `not JSON`, "call_tool", `not JSON`},
	} {
		got := p.Unwrap(request(tt.tool, tt.arguments))
		if got.Tool != tt.wantTool || string(got.Arguments) != tt.want || got.Caller.User != "ann" {
			t.Errorf("Unwrap(%s %s) = %s %s, want %s %s", tt.tool, tt.arguments, got.Tool, got.Arguments, tt.wantTool, tt.want)
		}
		if again := p.Unwrap(got); again.Tool != got.Tool || string(again.Arguments) != string(got.Arguments) {
			t.Errorf("Unwrap of that = %s %s", again.Tool, again.Arguments)
		}
	}
	// A plugin's tool of this name, without the host's, is like any other.
	own := newPipeline(t, pipeline.Options{Runner: answer(tool.Result{})}, tool.Spec{Name: "call_tool", Description: "Calls.", Tier: tool.ReadOnly, InputSchema: []byte(echoSchema)})
	if got := own.Unwrap(request("call_tool", `{"name":"echo"}`)); got.Tool != "call_tool" {
		t.Errorf("Unwrap of a plugin's call_tool = %s", got.Tool)
	}
}
