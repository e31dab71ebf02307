package hosttools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
)

// TestFindTool searches as callers with different toolsets.
func TestFindTool(t *testing.T) {
	h := open(t, options{})
	for _, tt := range []struct {
		query  string
		caller auth.Caller
		want   string // begins the result
	}{
		{"adds a text", ann, "add: Adds a text.\nSchema: {"},
		{"adds a text", ann.Within(auth.Toolset{Tools: []string{"look"}}), "look: Looks."},
		{"weather in Paris", ann, "No tool fits."},
	} {
		args, err := json.Marshal(map[string]any{"query": tt.query})
		must(t, err)
		got := h.Call(t.Context(), pipeline.Request{Caller: tt.caller, Tool: "find_tool", Arguments: args})
		if text := got.Result.Text(); got.Result.Error != nil || !strings.HasPrefix(text, tt.want) || strings.Contains(text, "x-role") {
			t.Errorf("find_tool(%s) = %+v, want %s", tt.query, got.Result, tt.want)
		}
	}
}
