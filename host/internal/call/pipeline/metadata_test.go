package pipeline_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestForgedMetadataIsDropped has a plugin set metadata that only the host may set, and reads
// the log after two such calls.
func TestForgedMetadataIsDropped(t *testing.T) {
	for _, tt := range []struct {
		name      string
		set, want map[string]any
	}{
		{"facts", map[string]any{"lines": 3.0, "toolhost": "x", "whole": true}, map[string]any{"lines": 3.0, "toolhost": "x", "whole": true}},
		{"a warning", map[string]any{"untrusted": true, "origin": "x"}, map[string]any{"untrusted": true, "origin": "x"}},
		{"a whole result", map[string]any{"whole_result": map[string]any{"handle": "tc_0"}, "lines": 3.0}, map[string]any{"lines": 3.0}},
		{"in another case", map[string]any{"WHOLE_RESULT": 1.0, "whole_re\u017fult": 1.0, "Untrusted": true, "TOOLHOST/x": 1.0}, nil},
		{"that it is trusted", map[string]any{"untrusted": false}, nil},
		{"something like true", map[string]any{"untrusted": "true"}, nil},
		{"keys of the host", map[string]any{"toolhost/call_id": "tc_0", "toolhost/": 1.0}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			result := tool.TextResult("text")
			result.Metadata = tt.set
			h := newHost(t, pipeline.Options{
				Runner: answer(result), Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn}),
			}, echoSpec())
			before := len(tt.set)
			for range 2 {
				outcome := h.Call(t.Context(), request("echo", `{"text":"x"}`))
				if diff := cmp.Diff(tt.want, outcome.Result.Metadata); diff != "" {
					t.Errorf("the metadata (-want +got):\n%s", diff)
				}
			}
			if len(tt.set) != before {
				t.Error("the plugin's own metadata was changed, which others may hold")
			}
			told := strings.Count(log.String(), "that only the host may set")
			if want := min(1, before-len(tt.want)); told != want {
				t.Errorf("the log tells it %d times, want %d:\n%s", told, want, log.String())
			}
		})
	}
}
