package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
)

// TestLogHandler shows that the host gets levels, attributes and groups.
func TestLogHandler(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(logHandler{logger: hclog.New(&hclog.LoggerOptions{
		Name: "p", Level: hclog.Debug, Output: &out, JSONFormat: true, DisableTime: true,
	})})
	logger.Log(t.Context(), slog.LevelDebug-1, "not logged")
	logger.With("call", "tc_1").WithGroup("request").With("n", 1).LogAttrs(t.Context(), slog.LevelWarn, "slow",
		slog.Any("error", errors.New("late")), slog.Group("by", "user", "ann"), slog.Attr{}, slog.Group("", "plain", true))
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("the log is %q, want one line of JSON: %v", out.String(), err)
	}
	want := map[string]any{
		"@level": "warn", "@message": "slow", "@module": "p", "call": "tc_1", "request.n": float64(1),
		"request.error": "late", "request.by.user": "ann", "request.plain": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the line (-want +got):\n%s", diff)
	}
}
