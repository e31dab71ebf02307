package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// raw returns tools of another program that say their names.
func raw(names ...string) (tools []sdk.RawTool) {
	for _, name := range names {
		s := rawSpec(name, `{"type":"object","properties":{"anything":{}}}`)
		s.Foreign = true
		tools = append(tools, sdk.RawTool{Spec: s, Run: func(context.Context, *sdk.Call, json.RawMessage) (tool.Result, error) {
			return tool.TextResult(name), nil
		}})
	}
	return tools
}

func namesOf(specs []tool.Spec) (names []string) {
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}

// TestSetRawTools checks that tools are set in Configure and replaced later, that the host is told, and
// that calls of a removed tool come to their end.
func TestSetRawTools(t *testing.T) {
	t.Parallel()
	p := sdk.New("bridge", "1.0.0")
	entered, leave := make(chan struct{}), make(chan struct{})
	sdk.AddTool(p, spec("fixed"), func(context.Context, *sdk.Call, struct{}) (string, error) { return "fixed", nil })
	sdk.Configure(p, func(context.Context, sdk.Config, struct{}) error {
		slow := raw("slow")
		slow[0].Run = func(context.Context, *sdk.Call, json.RawMessage) (tool.Result, error) {
			close(entered)
			<-leave
			return tool.TextResult("done"), nil
		}
		return sdk.SetRawTools(p, append(raw("a"), slow...))
	})
	if err := sdk.SetRawTools(p, raw("early")); err == nil || !strings.Contains(err.Error(), "not served yet") {
		t.Errorf("before it is served: %v", err)
	}
	told := make(chan struct{}, 10)
	running := sdktest.Start(t, p, sdktest.Options{ToolsChanged: func() { told <- struct{}{} }})
	if diff := cmp.Diff([]string{"fixed", "a", "slow"}, namesOf(running.Tools())); diff != "" {
		t.Errorf("tools after Configure (-want +got):\n%s", diff)
	}
	ended := make(chan tool.Result, 1)
	go func() { ended <- running.Call(t.Context(), "slow", nil) }()
	<-entered
	if err := sdk.SetRawTools(p, raw("b", "c")); err != nil {
		t.Fatal(err)
	}
	<-told
	if diff := cmp.Diff([]string{"fixed", "b", "c"}, namesOf(running.Tools())); diff != "" {
		t.Errorf("tools after the change (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"b": "b", "fixed": "fixed", "a": ""} {
		got := running.Call(t.Context(), name, nil)
		if got.Text() != want || want == "" && (got.Error == nil || got.Error.Code != tool.NotFound) {
			t.Errorf("%s = %q, %v", name, got.Text(), got.Error)
		}
	}
	close(leave)
	if got := <-ended; got.Text() != "done" {
		t.Errorf("the call of a removed tool = %q, %v", got.Text(), got.Error)
	}
	if err := sdk.SetRawTools(p, nil); err != nil {
		t.Fatal(err)
	}
	<-told
	if diff := cmp.Diff([]string{"fixed"}, namesOf(running.Tools())); diff != "" {
		t.Errorf("tools after their removal (-want +got):\n%s", diff)
	}
}

// TestSetRawToolsMistakes checks that all mistakes are returned and nothing changes.
func TestSetRawToolsMistakes(t *testing.T) {
	t.Parallel()
	p := sdk.New("bridge", "1.0.0")
	sdk.AddTool(p, spec("fixed"), func(context.Context, *sdk.Call, struct{}) (string, error) { return "fixed", nil })
	sdk.Configure(p, func(context.Context, sdk.Config, struct{}) error { return sdk.SetRawTools(p, raw("a")) })
	running := sdktest.Start(t, p, sdktest.Options{})
	large := raw("large")
	large[0].Spec.InputSchema = json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", 80<<20) + `"}`)
	for name, tt := range map[string]struct {
		tools []sdk.RawTool
		want  []string
	}{
		"wrong":       {append(raw("X"), sdk.RawTool{Spec: rawSpec("y", `{`)}), []string{`"X"`, "name is not valid", "not a JSON Schema", "no function"}},
		"a duplicate": {raw("b", "b"), []string{`"b" is already taken`}},
		"a fixed one": {raw("fixed"), []string{`"fixed" is already taken`}},
		"too large":   {large, []string{"fit into a message"}},
	} {
		err := sdk.SetRawTools(p, tt.tools)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", name, err, want)
			}
		}
	}
	if _, ok := errors.AsType[*sdk.DefinitionError](sdk.SetRawTools(p, raw("X"))); !ok {
		t.Error("a mistake is no DefinitionError")
	}
	if err := p.Err(); err != nil {
		t.Errorf("the plugin itself has mistakes: %v", err)
	}
	if diff := cmp.Diff([]string{"fixed", "a"}, namesOf(p.Tools())); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if got := running.Call(t.Context(), "a", nil); got.Text() != "a" {
		t.Errorf("a = %q, %v", got.Text(), got.Error)
	}
}
