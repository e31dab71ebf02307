package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

type boundedItem struct {
	Lines int `json:"lines,omitempty" jsonschema:"x" min:"1"`
}

type bounded struct {
	Limit  int                    `json:"limit,omitempty" jsonschema:"x" min:"1" max:"100" default:"20"`
	Ratio  *float64               `json:"ratio,omitempty" jsonschema:"x" max:"0.5"`
	Name   string                 `json:"name,omitempty" jsonschema:"x" min:"1" max:"3"`
	Items  []boundedItem          `json:"items,omitempty" jsonschema:"x" max:"2"`
	ByName map[string]boundedItem `json:"by_name,omitempty" jsonschema:"x"`
	Small  uint8                  `json:"small,omitempty" jsonschema:"x" max:"10"`
}

// TestBounds shows that the tags min and max are in the schema, and hold
// whether or not a host has checked the schema.
func TestBounds(t *testing.T) {
	p := sdk.New("bounds", "1.0.0")
	with[bounded](spec("take"))(p)
	running := sdktest.Start(t, p, sdktest.Options{})
	for _, tt := range []struct{ args, want string }{
		{`{}`, ""},
		{`{"limit":1,"ratio":0.5,"name":"äöü","items":[{"lines":1},{}],"by_name":{"a":{"lines":7}},"small":10}`, ""},
		{`{"limit":100,"ratio":null}`, ""},
		{`{"limit":0}`, "limit is 0, expected 1 to 100"},
		{`{"limit":101}`, "limit is 101, expected 1 to 100"},
		{`{"ratio":0.51}`, "ratio is 0.51, expected at most 0.5"},
		{`{"name":""}`, "name has 0 characters, expected 1 to 3"},
		{`{"name":"äöüa"}`, "name has 4 characters, expected 1 to 3"},
		{`{"items":[{},{},{}]}`, "items has 3 items, expected at most 2"},
		{`{"items":[{},{"lines":0}]}`, "items[1].lines is 0, expected at least 1"},
		{`{"by_name":{"a":{"lines":0}}}`, "by_name.a.lines is 0, expected at least 1"},
		{`{"small":11}`, "small is 11, expected 0 to 10"},
	} {
		got := running.Call(t.Context(), "take", json.RawMessage(tt.args))
		if tt.want == "" && got.Error != nil || tt.want != "" && (got.Error == nil || got.Error.Code != tool.InvalidArgument || got.Error.Message != tt.want) {
			t.Errorf("a call with %s = %v, want %q", tt.args, got.Error, tt.want)
		}
	}
	schema := string(p.Tools()[0].InputSchema)
	for _, want := range []string{
		`"minimum":1,"maximum":100`, `"maximum":0.5`, `"minLength":1,"maxLength":3`, `"maxItems":2`, `"minimum":0,"maximum":10`,
	} {
		if !strings.Contains(schema, want) {
			t.Errorf("schema = %s, want it to have %s", schema, want)
		}
	}
}

// TestBoundsOfSettings shows that bounds of settings have units.
func TestBoundsOfSettings(t *testing.T) {
	p := sdk.New("bounds", "1.0.0")
	with[struct{}](spec("x"))(p)
	sdk.Configure(p, func(context.Context, sdk.Config, struct {
		Size tool.ByteSize `json:"size,omitempty" jsonschema:"x" min:"1KiB" max:"64MiB" default:"1MiB"`
		Wait time.Duration `json:"wait,omitempty" jsonschema:"x" max:"5s"`
	},
	) error {
		return nil
	})
	for _, tt := range []struct {
		settings map[string]any
		want     string
	}{
		{map[string]any{"size": 1000}, `settings ["size"]: size is 1000B, expected 1KiB to 64MiB`},
		{map[string]any{"wait": int64(6 * time.Second)}, `settings ["wait"]: wait is 6s, expected at most 5s`},
		{map[string]any{"size": 1024, "wait": int64(5 * time.Second)}, ""},
	} {
		findings := sdktest.Check(t.Context(), sdktest.InProcess(p), sdktest.Options{Settings: tt.settings})
		if tt.want == "" && len(findings) > 0 || !strings.Contains(fmt.Sprint(findings), tt.want) {
			t.Errorf("findings with %v = %v, want %q", tt.settings, findings, tt.want)
		}
	}
}
