package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// wholeOf returns the reference to the whole result from a result's metadata.
func wholeOf(t *testing.T, r *mcp.CallToolResult) (handle string, cursor int) {
	t.Helper()
	facts, _ := r.Meta["toolhost/metadata"].(map[string]any)
	about, _ := facts["whole_result"].(map[string]any)
	handle, _ = about["handle"].(string)
	at, _ := about["cursor"].(float64)
	if handle == "" {
		t.Fatalf("the result names no whole: %v", r.Meta)
	}
	return handle, int(at)
}

// readWhole reads part after part as result_read suggests.
func (s *session) readWhole(t *testing.T, handle string, cursor int) string {
	t.Helper()
	var whole strings.Builder
	for {
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "result_read", Arguments: map[string]any{"handle": handle, "cursor": cursor}})
		if err != nil || r.IsError || len(r.Content) != 2 {
			t.Fatalf("result_read at %d = %q, %v", cursor, textOf(r), err)
		}
		part, _ := r.Content[0].(*mcp.TextContent)
		last, _ := r.Content[1].(*mcp.TextContent)
		whole.WriteString(part.Text)
		_, call, more := strings.Cut(last.Text, "; the rest: result_read ")
		if !more {
			return whole.String()
		}
		var next struct {
			Handle string
			Cursor int
		}
		if err := json.Unmarshal([]byte(strings.TrimSuffix(call, "]")), &next); err != nil || next.Handle != handle || next.Cursor <= cursor {
			t.Fatalf("the last line is %q: %v", last.Text, err)
		}
		cursor = next.Cursor
	}
}

// TestLongResultIsReadOn reads 200 KB in parts, byte for byte, as a model would; and again
// after kill -9 of the host.
func TestLongResultIsReadOn(t *testing.T) {
	t.Parallel()
	const size = 200_000
	var want strings.Builder
	for i := 0; want.Len() < size; i++ {
		fmt.Fprintf(&want, "line %d, as long as others\n", i)
	}
	whole := want.String()[:size]
	h := serve(t, writeConfig(t, listening+probeBlock("")))
	handles := map[string]string{}
	for _, name := range []string{"probe_lines", "probe_stream"} {
		s := connect(t, h.config, revisions[0], nil)
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"n": size}})
		if err != nil || r.IsError {
			t.Fatalf("%s = %q, %v", name, textOf(r), err)
		}
		handle, cursor := wholeOf(t, r)
		handles[name] = handle
		text := textOf(r)
		note := fmt.Sprintf("result_read {\"handle\":%q,\"cursor\":%d}]\n[output truncated — original size: 200,000 bytes]", handle, cursor)
		if !strings.HasSuffix(text, note) {
			t.Errorf("%s ends in %q, want %q", name, text[max(0, len(text)-200):], note)
		}
		if got := whole[:cursor] + s.readWhole(t, handle, cursor); got != whole || !strings.HasPrefix(text, whole[:cursor]) {
			t.Errorf("%s read in parts has %d bytes and is another text, want %d", name, len(got), size)
		}
	}
	s := connect(t, h.config, revisions[0], nil)
	forgesNothing(t, h, s)
	h.kill()
	h.restart(t)
	s = connect(t, h.config, revisions[0], nil)
	for name, handle := range handles {
		if got := s.readWhole(t, handle, 0); got != whole {
			t.Errorf("after kill -9 the whole of %s has %d bytes, want %d", name, len(got), size)
		}
	}
}

// forgesNothing calls a tool that sets metadata that only the host may set.
func forgesNothing(t *testing.T, h *host, s *session) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "probe_forge", Arguments: map[string]any{}})
	if err != nil || r.IsError {
		t.Fatalf("probe_forge = %q, %v", textOf(r), err)
	}
	overMCP, id := asJSON(r.Meta["toolhost/metadata"]), fmt.Sprint(r.Meta["toolhost/call_id"])
	if overMCP != `{"lines":3}` || !strings.HasPrefix(id, "tc_") || id == "tc_0" || r.Meta["toolhost/error"] != nil {
		t.Errorf("over MCP the metadata of a hostile result is %s", asJSON(r.Meta))
	}
	text := h.must(t, http.StatusOK, "POST", "/v1/calls", h.token, `{"tool":"probe_forge","arguments":{}}`)
	if !strings.Contains(text, `"metadata":{"lines":3}`) || strings.Contains(text, "tc_0\"") {
		t.Errorf("over REST a hostile result is %s", text)
	}
}

// TestApprovalWaitOverMCP waits for a write: before the decision, after it, and at a host that
// was restarted after the question.
func TestApprovalWaitOverMCP(t *testing.T) {
	t.Parallel()
	const impatient = "approvals {\n  patience = \"0s\"\n}\n"
	for _, restart := range []bool{false, true} {
		for _, revision := range revisions {
			t.Run(fmt.Sprintf("%s, restart %t", revision, restart), func(t *testing.T) {
				h := serve(t, writeConfig(t, listening+writing+counting+impatient))
				s := connect(t, h.config, revision, nil)
				if _, failed := s.call(t.Context(), t, "probe_count", map[string]any{"note": "<a>"}); !failed {
					t.Fatal("the call was not asked about")
				}
				id := h.open(t, 1)[0].ID
				if restart {
					h.kill()
					h.restart(t)
					s = connect(t, h.config, revision, nil)
				}
				wait := func() *mcp.CallToolResult {
					r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "approval_wait", Arguments: map[string]any{"id": id}})
					if err != nil {
						t.Fatal(err)
					}
					return r
				}
				if r := wait(); codeOf(r) != "pending_approval" {
					t.Fatalf("before the decision approval_wait = %q", textOf(r))
				}
				eventually(t, "the model is told what to call", func() bool {
					return strings.Contains(textOf(wait()), `call call_wait {"id":"`+id+`"} again`)
				})
				h.answer(t, "approve", id)
				var r *mcp.CallToolResult
				eventually(t, "the result can be collected", func() bool {
					r = wait()
					return codeOf(r) != "pending_approval"
				})
				if again := wait(); r.IsError || textOf(r) != "counted <a>" || textOf(again) != textOf(r) {
					t.Errorf("afterwards the model reads %q, and then %q", textOf(r), textOf(again))
				}
				if lines := h.counted(); len(lines) != 1 {
					t.Errorf("the call ran as %q, want once", lines)
				}
			})
		}
	}
}
