package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

// coding is a toolset for programming.
var coding = []string{
	"read_file", "read_files", "list_directory", "search_files", "search_content", "write_file", "edit_file", "apply_patch",
	"move_file", "delete_file", "shell_exec", "shell_background", "process_output", "process_kill",
	"git_status", "git_diff", "git_log", "git_commit",
	"result_read", "call_wait", // in every toolset
}

// TestListsAreShort limits what the tools cost a model: name, description and input schema,
// with four bytes for a token.
func TestListsAreShort(t *testing.T) {
	t.Parallel()
	const most, mostCoding = 130, 3500 // tokens on average, and together
	h := serveShippedWith(t, func(text string) string {
		return text + "\ntoolset \"coding\" {\n  tools = " + asJSON(coding) + "\n}\n"
	})
	for _, list := range []struct {
		path        string
		least, most int // tools
		average     int
		all         int // 0: no limit
	}{
		{"/mcp", 40, 100, most, 0},
		{"/mcp/coding", 20, 20, mostCoding / 20, mostCoding},
	} {
		s := &session{connectAt(t, h.url+list.path, h.token)}
		size, n := 0, 0
		for tool, err := range s.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			size += len(tool.Name) + len(tool.Description) + len(compact(t, tool.InputSchema))
			n++
		}
		if n < list.least || n > list.most {
			t.Fatalf("%s lists %d tools, want %d to %d", list.path, n, list.least, list.most)
		}
		tokens := size / 4
		t.Logf("%s: %d tools have %d tokens, %.1f on average", list.path, n, tokens, float64(size)/4/float64(n))
		if tokens > list.average*n || list.all > 0 && tokens > list.all {
			t.Errorf("%s has %d tokens for %d tools, want at most %d on average", list.path, tokens, n, list.average)
		}
	}
}

// compact returns a value as JSON without white space and without escapes for HTML.
func compact(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
