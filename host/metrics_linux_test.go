package main

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// TestMetricsOfAHost reads what Prometheus would read of a real host: its token can do nothing else, and
// the figures follow calls, approvals, and plugins in the strict sandbox.
func TestMetricsOfAHost(t *testing.T) {
	t.Parallel()
	secret, digest := auth.NewToken()
	h := serve(t, writeConfig(t, listening+writing+fmt.Sprintf(
		"auth {\n token \"prometheus\" {\n sha256 = %q\n user = \"prometheus\"\n roles = [\"monitor\"]\n }\n}\n", digest)))
	h.must(t, 403, "GET", "/v1/tools", secret, "")
	h.must(t, 403, "GET", "/metrics", h.token, "")

	pending := h.post(t, "write_file", map[string]any{"path": "a.txt", "content": "x"}, "Prefer", "approval-wait=0")
	figures := func(want ...string) {
		t.Helper()
		text := h.must(t, 200, "GET", "/metrics", secret, "")
		for _, pattern := range want {
			if !regexp.MustCompile(`(?m)^` + pattern + `$`).MatchString(text) {
				t.Errorf("/metrics lacks %s:\n%s", pattern, text)
			}
		}
	}
	figures(`toolhost_approvals_pending 1`, `toolhost_plugin_up\{plugin="fs"\} 1`, `toolhost_plugin_memory_bytes\{plugin="fs"\} [1-9][0-9.e+]+`)
	h.ok(t, "approvals", "show", pending.ApprovalID)
	h.ok(t, "approvals", "approve", pending.ApprovalID)
	h.outcome(t, pending.ToolCallID)
	figures(`toolhost_approvals_pending 0`, `toolhost_approval_wait_seconds_count\{answer="approved"\} 1`,
		`toolhost_tool_calls_total\{plugin="fs",status="success",tool="write_file"\} 1`,
		`toolhost_call_duration_seconds_count\{plugin="fs",tool="write_file"\} 1`)
}
