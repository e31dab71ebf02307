package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestPendingOverMCP makes a write with a client without patience. The client is told to
// repeat the call, and the same call returns the result of the first, which runs once.
func TestPendingOverMCP(t *testing.T) {
	t.Parallel()
	impatient := "approvals {\n  patience = \"0s\"\n}\n"
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			h := serve(t, writeConfig(t, listening+writing+impatient))
			s := connect(t, h.config, revision, nil)
			write := &mcp.CallToolParams{Name: "write_file", Arguments: map[string]any{"path": "a.txt", "content": "hello\n"}}
			for range 2 { // before the decision, the second call waits for the same person
				r, err := s.CallTool(t.Context(), write)
				if err != nil {
					t.Fatal(err)
				}
				id := h.open(t, 1)[0].ID
				if text := textOf(r); !r.IsError || codeOf(r) != "pending_approval" || !strings.HasPrefix(text, "Not run yet: waits for a person to approve "+id+" (") ||
					!strings.Contains(text, "a.txt") || !strings.Contains(text, "\n  "+filepath.Join(bin, "toolhost")+" approvals approve "+id+" --config "+h.config+"\n") ||
					!strings.HasSuffix(text, "/toolhost approvals reject "+id+" --config "+h.config) {
					t.Fatalf("the model reads %q, want that the call waits for %s", text, id)
				}
			}
			h.answer(t, "approve")
			var r *mcp.CallToolResult
			eventually(t, "the result can be collected", func() (done bool) {
				var err error
				if r, err = s.CallTool(t.Context(), write); err != nil {
					t.Fatal(err)
				}
				return codeOf(r) != "pending_approval"
			})
			if r.IsError || h.file("a.txt") != "hello\n" {
				t.Errorf("afterwards the model reads %q, and the file holds %q", textOf(r), h.file("a.txt"))
			}
			starts := 0
			for _, row := range h.journal(t) {
				if row.Kind == "start" {
					starts++
				}
			}
			if starts != 1 {
				t.Errorf("the call ran %d times, want once", starts)
			}
		})
	}
}
