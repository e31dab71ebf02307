package main

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCPInEveryRevision lists and calls with a real client, once per era.
func TestMCPInEveryRevision(t *testing.T) {
	config := writeConfig(t, fsBlock+probeBlock(""))
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			var mu sync.Mutex
			var steps []string
			s := connect(t, config, revision, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
					mu.Lock()
					defer mu.Unlock()
					steps = append(steps, r.Params.Message)
				},
			})
			tools := map[string]*mcp.Tool{}
			for tool, err := range s.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				tools[tool.Name] = tool
			}
			read := tools["read_file"]
			if read == nil {
				t.Fatalf("tools/list has no read_file: %v", tools)
			}
			a := read.Annotations
			if a == nil || !a.ReadOnlyHint || a.DestructiveHint == nil || *a.DestructiveHint || a.OpenWorldHint == nil || *a.OpenWorldHint {
				t.Errorf("annotations of read_file = %+v, want read-only, not destructive, closed world", a)
			}
			if tools["probe_change"] != nil {
				t.Error("probe_change is listed, a side_effecting tool")
			}
			if got := s.must(t, "read_file", map[string]any{"path": "hello.txt"}); got != "hello, world\n" {
				t.Errorf("read_file(hello.txt) = %q", got)
			}
			if got := s.must(t, "file_read", map[string]any{"path": "hello.txt"}); got != "hello, world\n" {
				t.Errorf("by its alias: file_read(hello.txt) = %q", got)
			}
			text, failed := s.call(t.Context(), t, "read_file", map[string]any{"pth": "hello.txt"})
			if !failed || !strings.HasPrefix(text, "Tool execution failed: ") || !strings.Contains(text, "missing required field 'path' in arguments") {
				t.Errorf("read_file without path = %q, failed %v", text, failed)
			}
			if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "reed_file"}); err == nil || !strings.Contains(err.Error(), "read_file") {
				t.Errorf("call of reed_file: %v, want an error that names read_file", err)
			}
			params := &mcp.CallToolParams{Name: "probe_steps", Arguments: map[string]any{"n": 3}}
			params.SetProgressToken("token")
			if _, err := s.CallTool(t.Context(), params); err != nil {
				t.Fatal(err)
			}
			// The client handles notifications beside the result.
			eventually(t, "three reports of progress, in order", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return strings.Join(steps, ",") == "step 1,step 2,step 3"
			})
		})
	}
}

// TestCancelReachesThePlugin gives up a call, and then lets the host end by
// itself.
func TestCancelReachesThePlugin(t *testing.T) {
	config := writeConfig(t, probeBlock(""))
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			s := connect(t, config, revision, nil)
			inside := func(want string) func() bool {
				return func() bool { return s.must(t, "probe_inside", nil) == want }
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { // ends with cancel
				_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "probe_wait"})
				ended <- err
			}()
			eventually(t, "the call is inside", inside("1"))
			cancel()
			if err := <-ended; err == nil {
				t.Error("the canceled call returned no error")
			}
			eventually(t, "the call has left the plugin", inside("0"))
			if err := s.Close(); err != nil {
				t.Errorf("the host did not end by itself when its input ended: %v", err)
			}
		})
	}
}
