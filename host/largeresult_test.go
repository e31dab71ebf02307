package main

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestLargeResultsArriveWhole reads a file of nearly 40 KiB with every kind of character
// over each transport and revision.
func TestLargeResultsArriveWhole(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+`
plugin "fs" {
  tier   = "privileged"
  claims = "trust"
}
`))
	content := strings.Repeat("\"quoted\"\\ <b>&\t日本 🎉 \u2028 \x01 plain text that goes on for some time\n", 540)
	h.write(t, "large.txt", content)
	read := func(name string, s *session) {
		t.Helper()
		for range 2 {
			r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": "large.txt"}})
			if err != nil || r.IsError {
				t.Fatalf("over %s: %v, %+v", name, err, r)
			}
			if got := textOf(r); got != content {
				t.Errorf("over %s: %d bytes arrive, want %d", name, len(got), len(content))
			}
		}
	}
	read("stdio", connectTo(t, toolhost(t.Context(), h.config, "mcp"), revisions[0], nil))
	for _, revision := range revisions {
		read("HTTP "+revision, connectHTTP(t, h, h.token, revision, "claude", nil))
	}
}
