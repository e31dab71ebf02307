package main

import (
	"fmt"
	"testing"
)

// shortLists gives each of the clients a list of the core tools.
const shortLists = `
client "claude-code" { tool_search_above = 20 }
client "codex-mcp-client" { tool_search_above = 20 }
client "typescript-agent" { tool_search_above = 20 }
`

// foundTool searches for a tool that the client does not list, and calls it.
func (c conversation) foundTool(t *testing.T) {
	contains(t, c.call(t, "find_tool", map[string]any{"query": "list the commits"}), "git_log: ", "Schema: {", `call_tool {"name":"git_log"`)
	contains(t, c.call(t, "call_tool", map[string]any{"name": "git_log", "arguments": map[string]any{"limit": 1}}), "Begin", "Ada")
	contains(t, c.call(t, "call_tool", map[string]any{"name": "git_lgo"}), "Tool execution failed: ", "git_log")
	if c.tells() {
		t.Logf("before its first call, the model gets %d bytes", len(c.offered()))
	}
	if c.lists() {
		lacks(t, c.tools(t), `"git_log"`)
	}
}

// minuteLong has a person approve a command that runs for longer than the clients' own time-out
// of one minute, while the client waits for it.
func (c conversation) minuteLong(t *testing.T) {
	approved := make(chan error, 1)
	go func() { // ends with the last command; awaited below
		for _, args := range [][]string{{"list", "--wait"}, {"show"}, {"approve"}} {
			if out, errs, code := c.host.cli(append([]string{"approvals"}, args...)...); code != 0 {
				approved <- fmt.Errorf("toolhost approvals %v exits with %d: %s%s", args, code, out, errs)
				return
			}
		}
		approved <- nil
	}()
	text := c.call(t, "shell_exec", map[string]any{"command": "sleep 61; echo arrived", "timeout": 120})
	if err := <-approved; err != nil {
		t.Fatal(err)
	}
	contains(t, text, "arrived")
	lacks(t, text, "failed")
}
