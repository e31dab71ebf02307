package main

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/state/journal"
)

// searching is a host whose lists have at most ten tools.
const searching = `
server {
  listen            = "127.0.0.1:0"
  tool_search_above = 10
}
approvals { patience = "0s" }
policy {
  rule "no-info" {
    tools   = ["file_info"]
    verdict = "deny"
  }
}
client "sees-all" { tool_search_above = 1000 }
toolset "readers" { tools = ["read_*", "list_directory", "search_*"] }
plugin "fs" {
  tier   = "privileged"
  claims = "trust"
}
`

func listed(t *testing.T, s *session) (names []string) {
	t.Helper()
	for listed, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, listed.Name)
	}
	return names
}

// TestLongListsAreSearched compares the lists of a client with many tools, with few, and with a
// bound of its own.
func TestLongListsAreSearched(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, searching))
	s := connect(t, h.config, revisions[0], nil)
	core := []string{"call_tool", "call_wait", "edit_file", "find_tool", "list_directory", "read_file", "result_read", "search_content", "search_files", "write_file"}
	if got := listed(t, s); !slices.Equal(got, core) {
		t.Errorf("tools/list = %v, want %v", got, core)
	}
	all := listed(t, connectAs(t, toolhost(t.Context(), h.config, "mcp"), revisions[0], "sees-all", nil))
	if !slices.Contains(all, "move_file") || slices.Contains(all, "find_tool") || slices.Contains(all, "call_tool") {
		t.Errorf("tools/list of a client with a higher bound = %v", all)
	}
	few := listed(t, &session{connectAt(t, h.url+"/mcp/readers", h.token)})
	if want := []string{"call_wait", "list_directory", "read_file", "read_files", "result_read", "search_content", "search_files"}; !slices.Equal(few, want) {
		t.Errorf("tools/list of a toolset = %v, want %v", few, want)
	}
	text := s.must(t, "find_tool", map[string]any{"query": "rename or move a file"})
	first, _, _ := strings.Cut(text, ":")
	if first != "move_file" || !strings.Contains(text, `"properties"`) || !strings.Contains(text, `call_tool {"name":"move_file"`) {
		t.Errorf("find_tool returns\n%s\nwant move_file first, with its schema", text)
	}
	limited := s.must(t, "find_tool", map[string]any{"query": "file", "limit": 1})
	if n := strings.Count(limited, "\nSchema: "); n != 1 {
		t.Errorf("find_tool with limit 1 returns %d tools", n)
	}
	if rest := h.must(t, 200, "GET", "/v1/tools", h.token, ""); strings.Contains(rest, `"find_tool"`) || !strings.Contains(rest, `"move_file"`) {
		t.Errorf("GET /v1/tools = %s, want each tool and none that searches", rest)
	}
}

// TestListsFollowTheirBound reloads a configuration that changes only how long a list may be:
// clients are told to list the tools again.
func TestListsFollowTheirBound(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, searching))
	s, changes, _ := relayed(t, h.config, revisions[0])
	if got := listed(t, s); !slices.Contains(got, "find_tool") {
		t.Fatalf("tools/list = %v, want a short one", got)
	}
	before := changes.Load()
	more := strings.Replace(readFile(t, h.config), "tool_search_above = 10\n", "tool_search_above = 100\n", 1)
	if err := os.WriteFile(h.config, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	h.ok(t, "reload")
	eventually(t, "the client is told", func() bool { return changes.Load() > before })
	if got := listed(t, s); slices.Contains(got, "find_tool") || !slices.Contains(got, "move_file") {
		t.Errorf("tools/list = %v, want all tools", got)
	}
}

// connectAt connects to an address of MCP over HTTP.
func connectAt(t *testing.T, address, token string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: testClient, Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: &http.Client{Transport: bearer(token)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestCallToolIsJudgedAsTheTool calls tools through call_tool: verdicts, approvals, grants,
// records and messages are those of the tool that it calls.
func TestCallToolIsJudgedAsTheTool(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, searching))
	s := connect(t, h.config, revisions[0], nil)
	through := func(name string, args any) (string, bool) {
		t.Helper()
		return s.call(t.Context(), t, "call_tool", map[string]any{"name": name, "arguments": args})
	}
	if text, failed := through("read_files", map[string]any{"paths": []string{"hello.txt"}}); failed || !strings.Contains(text, "hello, world") {
		t.Errorf("read_files = %s", text)
	}
	if text, failed := through("Read", `{"file_path": "hello.txt"}`); failed || !strings.Contains(text, "hello, world") {
		t.Errorf("an alias, with arguments as text = %s", text)
	}
	if text, failed := through("file_info", map[string]any{"path": "hello.txt"}); !failed || !strings.Contains(text, "no-info") {
		t.Errorf("file_info, which a rule denies = %s", text)
	}
	if text, failed := through("move_file", map[string]any{"source": 1}); !failed || !strings.Contains(text, "'dest'") {
		t.Errorf("wrong arguments = %s", text)
	}

	text, _ := through("create_directory", map[string]any{"path": "a"})
	if !strings.Contains(text, "Creates the directory a") || strings.Contains(text, "call_tool") || !strings.Contains(text, "call_wait {") {
		t.Errorf("a call that waits = %s, want what the tool would do", text)
	}
	record := h.open(t, 1)[0]
	if record.Tool != "create_directory" || record.Plugin != "fs" {
		t.Errorf("the approval is for %s of %s", record.Tool, record.Plugin)
	}
	h.answer(t, "approve", record.ID, "--always")
	s.must(t, "call_wait", map[string]any{"id": record.ID})
	for _, direct := range []bool{true, false} {
		if direct {
			s.must(t, "create_directory", map[string]any{"path": "b"})
		} else if text, failed := through("create_directory", map[string]any{"path": "c"}); failed {
			t.Errorf("the grant for the tool does not cover call_tool: %s", text)
		}
	}
	var made []journal.Record
	for _, row := range h.journal(t) {
		if row.Tool == "call_tool" {
			t.Errorf("the journal names call_tool: %+v", row)
		}
		if row.Tool == "create_directory" && row.Kind == journal.End {
			made = append(made, row)
		}
	}
	if len(made) != 3 || made[2].Plugin != "fs" || string(made[2].Arguments) != `{"path":"c"}` || made[2].ApprovedBy != "grant" {
		t.Errorf("the journal has %+v, want three calls of create_directory, the last by a grant", made)
	}
	explained := h.must(t, 200, "POST", "/v1/explain", h.token, `{"tool":"call_tool","arguments":{"name":"file_info","arguments":{"path":"hello.txt"}}}`)
	if !strings.Contains(explained, `"tool":"file_info"`) || !strings.Contains(explained, `"no-info`) {
		t.Errorf("explain = %s", explained)
	}
	if o := h.post(t, "call_tool", map[string]any{"name": "read_file", "arguments": map[string]any{"path": "hello.txt"}}); o.Result.Content != "hello, world\n" {
		t.Errorf("over REST: %+v", o)
	}
}

// TestCallToolAttacks passes to find_tool and call_tool what should not get through.
func TestCallToolAttacks(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, searching))
	s := connect(t, h.config, revisions[0], nil)
	limited := &session{connectAt(t, h.url+"/mcp/readers", h.token)}
	long := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name, tool string
		args       map[string]any
		want       []string
		by         *session // nil: s
	}{
		{"an unknown name", "call_tool", map[string]any{"name": "reed_file"}, []string{`unknown tool "reed_file"`, "did you mean read_file or read_files"}, nil},
		{"itself", "call_tool", map[string]any{"name": "call_tool", "arguments": map[string]any{"name": "read_file"}}, []string{"call_tool cannot call itself"}, nil},
		{
			"itself, deeper", "call_tool",
			map[string]any{"name": "call_tool", "arguments": map[string]any{"name": "call_tool", "arguments": map[string]any{"name": "read_file"}}},
			[]string{"call_tool cannot call itself"},
			nil,
		},
		{"no name", "call_tool", map[string]any{"arguments": map[string]any{}}, []string{"name"}, nil},
		{"a huge name", "call_tool", map[string]any{"name": long}, []string{"unknown tool"}, nil},
		{"a name with control characters", "call_tool", map[string]any{"name": "read_file\x1b[2J\n"}, []string{`unknown tool "read_file\x1b[2J\n"`}, nil},
		{"arguments that are a list", "call_tool", map[string]any{"name": "read_file", "arguments": []any{1, 2}}, []string{"arguments"}, nil},
		{"arguments that are text", "call_tool", map[string]any{"name": "read_file", "arguments": "hello.txt"}, []string{"arguments"}, nil},
		{"a tool outside of the toolset", "call_tool", map[string]any{"name": "move_file", "arguments": map[string]any{"source": "hello.txt", "dest": "b"}}, []string{`unknown tool "move_file"`}, limited},
		{"an alias outside of the toolset", "call_tool", map[string]any{"name": "file_write", "arguments": map[string]any{"path": "a", "content": "b"}}, []string{`unknown tool "file_write"`}, limited},
		{"a query of 10 KB", "find_tool", map[string]any{"query": long[:10_000]}, []string{"query"}, nil},
		{"an empty query", "find_tool", map[string]any{"query": ""}, []string{"query"}, nil},
	} {
		by := s
		if tt.by != nil {
			by = tt.by
		}
		text, failed := by.call(t.Context(), t, tt.tool, tt.args)
		if !failed || len(text) > 3000 {
			t.Errorf("%s: %t %.300s", tt.name, failed, text)
		}
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %.500s, want %q", tt.name, text, want)
			}
		}
	}
	if text := limited.must(t, "find_tool", map[string]any{"query": "move write delete a file", "limit": 20}); strings.Contains(text, "move_file") || strings.Contains(text, "write_file") {
		t.Errorf("find_tool shows tools outside of the toolset: %s", text)
	}
	if got := h.file("hello.txt"); got != "hello, world\n" {
		t.Errorf("hello.txt holds %q", got)
	}
}
