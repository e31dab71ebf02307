package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

func rawSpec(name, schema string) tool.Spec {
	s := spec(name)
	s.InputSchema = json.RawMessage(schema)
	return s
}

const rawSchema = `{"type":"object","additionalProperties":false,"required":["text"],"properties":{"text":{"type":"string","description":"x"}}}`

// TestAddRawTool shows a tool that passes the contract with a schema as JSON.
func TestAddRawTool(t *testing.T) {
	p := sdk.New("bridge", "1.0.0")
	echo := rawSpec("echo", rawSchema)
	echo.TierWhen = []tool.TierRule{{Property: "text", Equals: json.RawMessage(`"x"`), Tier: tool.SideEffecting}}
	sdk.AddRawTool(p, echo, func(_ context.Context, _ *sdk.Call, raw json.RawMessage) (tool.Result, error) {
		var in struct{ Text *string }
		if err := json.Unmarshal(raw, &in); err != nil || in.Text == nil {
			return tool.Result{}, tool.Errorf(tool.InvalidArgument, "text is missing")
		}
		return tool.Result{Structured: raw}, nil
	})
	sdk.AddRawTool(p, rawSpec("fails", `{"type":"object"}`), func(context.Context, *sdk.Call, json.RawMessage) (tool.Result, error) {
		return tool.TextResult("partial"), errors.New("secret")
	})
	sdk.AddRawTool(p, rawSpec("no_json", `{"type":"object"}`), func(_ context.Context, _ *sdk.Call, raw json.RawMessage) (tool.Result, error) {
		return tool.Result{Structured: raw[:1]}, nil
	})
	running := sdktest.Start(t, p, sdktest.Options{})
	if got := running.Call(t.Context(), "echo", json.RawMessage(`{"text":"a"}`)); string(got.Structured) != `{"text":"a"}` {
		t.Errorf("echo = %s, %v", got.Structured, got.Error)
	}
	if got := running.Call(t.Context(), "fails", nil); got.Text() != "partial" || got.Error.Code != tool.Internal || strings.Contains(got.Error.Message, "secret") {
		t.Errorf("fails = %q, %v; want its text and code %q", got.Text(), got.Error, tool.Internal)
	}
	if got := running.Call(t.Context(), "no_json", nil); got.Error == nil || got.Error.Code != tool.Internal {
		t.Errorf("no_json = %v, want code %q", got.Error, tool.Internal)
	}
}

func TestAddRawToolMistakes(t *testing.T) {
	run := func(context.Context, *sdk.Call, json.RawMessage) (tool.Result, error) { return tool.Result{}, nil }
	wrongTier := rawSpec("x", rawSchema)
	wrongTier.TierWhen = []tool.TierRule{{Property: "other", Tier: tool.SideEffecting}}
	wrongResult := rawSpec("x", rawSchema)
	wrongResult.OutputSchema = json.RawMessage(`{`)
	for want, add := range map[string]func(*sdk.Plugin){
		"has no InputSchema":               func(p *sdk.Plugin) { sdk.AddRawTool(p, spec("x"), run) },
		"is not a JSON Schema":             func(p *sdk.Plugin) { sdk.AddRawTool(p, rawSpec("x", `{`), run) },
		`is of type "", expected "object"`: func(p *sdk.Plugin) { sdk.AddRawTool(p, rawSpec("x", `{}`), run) },
		"has no function to run":           func(p *sdk.Plugin) { sdk.AddRawTool(p, rawSpec("x", rawSchema), nil) },
		`expected one of "text"`:           func(p *sdk.Plugin) { sdk.AddRawTool(p, wrongTier, run) },
		"the OutputSchema is not JSON":     func(p *sdk.Plugin) { sdk.AddRawTool(p, wrongResult, run) },
		"the name is not valid":            func(p *sdk.Plugin) { sdk.AddRawTool(p, rawSpec("X", rawSchema), run) },
	} {
		p := sdk.New("bridge", "1.0.0")
		if add(p); p.Err() == nil || !strings.Contains(p.Err().Error(), want) {
			t.Errorf("Err() = %v, want %q", p.Err(), want)
		}
	}
}
