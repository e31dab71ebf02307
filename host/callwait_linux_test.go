package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// short is a configuration in which clients wait one second for a call.
const short = "server {\n  listen   = \"127.0.0.1:0\"\n  patience = \"1s\"\n}\n"

// TestStillRunning runs a command for longer than its client waits. The client learns that it
// still runs, and gets the result with call_wait, as often as it likes, or with the same call.
// The command runs once.
func TestStillRunning(t *testing.T) {
	t.Parallel()
	for by, revision := range map[string]string{"call_wait": revisions[0], "the same call": revisions[1]} {
		t.Run(by, func(t *testing.T) {
			h := serve(t, writeConfig(t, short+fmt.Sprintf(shellUnasked, "host")))
			s := connect(t, h.config, revision, nil)
			run := &mcp.CallToolParams{Name: "shell_exec", Arguments: map[string]any{
				"command": "echo ran >>log; until [ -e go ]; do sleep 0.05; done; echo finished",
			}}
			call := func(p *mcp.CallToolParams) (text, id, pending string) {
				t.Helper()
				r, err := s.CallTool(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				return asJSON(r), fmt.Sprint(r.Meta["toolhost/call_id"]), fmt.Sprint(r.Meta["toolhost/pending"])
			}
			text, id, pending := call(run)
			if pending != "running" || !strings.Contains(text, "Still running: shell_exec has taken ") || !strings.Contains(text, "To get its result, call call_wait") {
				t.Fatalf("the client reads %s, want that the call is still running", text)
			}
			wait := &mcp.CallToolParams{Name: "call_wait", Arguments: map[string]any{"id": id}}
			if text, _, _ := call(wait); !strings.Contains(text, "Still running: shell_exec has taken ") || !strings.Contains(text, id) {
				t.Errorf("call_wait answers %s, want that the call is still running", text)
			}
			if text, again, pending := call(run); again != id || pending != "running" {
				t.Errorf("the same call made again answers %s, want that %s is still running", text, id)
			}
			h.write(t, "go", "")
			for _, p := range map[string][]*mcp.CallToolParams{"call_wait": {wait, wait}, "the same call": {run}}[by] {
				eventually(t, "the result is there", func() bool {
					text, _, _ = call(p)
					return !strings.Contains(text, "Still running")
				})
				if !strings.Contains(text, "finished") {
					t.Errorf("%s answers %s, want the result", p.Name, text)
				}
			}
			if got := h.file("log"); got != "ran\n" {
				t.Errorf("the command ran as %q, want once", got)
			}
		})
	}
}

// TestKilledUnderACall kills the host with kill -9 during a call whose client was told to
// wait: the next host reports that the outcome is unknown, and the call's id.
func TestKilledUnderACall(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, short+fmt.Sprintf(shellUnasked, "host")))
	s := connect(t, h.config, revisions[0], nil)
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "shell_exec", Arguments: map[string]any{"command": "sleep 1000"}})
	if err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprint(r.Meta["toolhost/call_id"])
	if r.Meta["toolhost/pending"] != "running" {
		t.Fatalf("the client reads %s, want that the call is still running", asJSON(r))
	}
	h.kill()
	h.restart(t)
	s = connect(t, h.config, revisions[0], nil)
	r, err = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_wait", Arguments: map[string]any{"id": id}})
	if err != nil {
		t.Fatal(err)
	}
	if text := textOf(r); codeOf(r) != "unknown_outcome" || !strings.Contains(text, id) {
		t.Errorf("call_wait in the next host answers %q, want that the outcome of %s is unknown", text, id)
	}
}
