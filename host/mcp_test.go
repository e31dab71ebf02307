package main

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// eachClient runs a test with a client of each transport and revision. Over standard input and
// output, the client has its own host.
func eachClient(t *testing.T, blocks string, test func(t *testing.T, connected func(*mcp.ClientOptions) *session)) {
	t.Helper()
	own, h := writeConfig(t, blocks), serve(t, writeConfig(t, listening+blocks))
	for _, revision := range revisions {
		t.Run("stdio "+revision, func(t *testing.T) {
			test(t, func(opts *mcp.ClientOptions) *session { return connect(t, own, revision, opts) })
		})
		t.Run("http "+revision, func(t *testing.T) {
			test(t, func(opts *mcp.ClientOptions) *session { return connectHTTP(t, h, h.token, revision, "test", opts) })
		})
	}
}

// TestMCPInEveryRevision lists and calls tools with a real client, once for each transport and
// era.
func TestMCPInEveryRevision(t *testing.T) {
	t.Parallel()
	eachClient(t, fsBlock+probeBlock("")+conformanceBlock, func(t *testing.T, connected func(*mcp.ClientOptions) *session) {
		t.Helper()
		var mu sync.Mutex
		var steps []string
		s := connected(&mcp.ClientOptions{
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
		if read.Meta["anthropic/alwaysLoad"] != true || tools["file_info"].Meta["anthropic/alwaysLoad"] != nil {
			t.Errorf("_meta of read_file = %v, of file_info = %v, want only the former always loaded", read.Meta, tools["file_info"].Meta)
		}
		for _, own := range []string{"result_read", "call_wait"} {
			if tools[own] == nil || tools[own].Meta["anthropic/alwaysLoad"] != true {
				t.Errorf("%s = %v, want it always loaded", own, tools[own])
			}
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
		// The client handles notifications concurrently with the result.
		eventually(t, "three reports of progress, in order", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Join(steps, ",") == "step 1,step 2,step 3"
		})
		image, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "test_image_content", Arguments: map[string]any{}})
		if err != nil || len(image.Content) != 1 {
			t.Fatalf("the image came to %+v, %v", image, err)
		}
		content, ok := image.Content[0].(*mcp.ImageContent)
		if !ok || content.MIMEType != "image/png" {
			t.Fatalf("the image is %+v", image.Content[0])
		}
		if _, err := png.Decode(bytes.NewReader(content.Data)); err != nil {
			t.Errorf("the image has %d bytes: %v", len(content.Data), err)
		}
	})
}

// TestCancelReachesThePlugin cancels a call, and then lets the client's own host end by
// itself.
func TestCancelReachesThePlugin(t *testing.T) {
	t.Parallel()
	eachClient(t, probeBlock(""), func(t *testing.T, connected func(*mcp.ClientOptions) *session) {
		t.Helper()
		s := connected(nil)
		inside := func(want string) func() bool {
			return func() bool { return s.must(t, "probe_inside", nil) == want }
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ended := make(chan error, 1)
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
			t.Errorf("the session did not end by itself: %v", err)
		}
	})
}

// TestToolsChange removes tools and restores them while clients of each transport and revision
// listen: they learn of it without asking.
func TestToolsChange(t *testing.T) {
	t.Parallel()
	for transport, connect := range transports {
		for _, revision := range revisions {
			t.Run(transport+" "+revision, func(t *testing.T) {
				h := serve(t, writeConfig(t, listening+fsBlock+counting)) // its own host, so that no other change is heard
				h.post(t, "probe_process", nil)                           // nor the plugin's start
				with := readFile(t, h.config)
				var changes atomic.Int32
				s := connect(t, h, revision, &mcp.ClientOptions{
					ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changes.Add(1) },
				})
				for _, change := range []struct {
					config string
					listed bool
				}{{strings.Replace(with, counting, "", 1), false}, {with, true}} {
					heard := changes.Load()
					if err := os.WriteFile(h.config, []byte(change.config), 0o600); err != nil {
						t.Fatal(err)
					}
					h.ok(t, "reload")
					eventually(t, "the client has heard of the change", func() bool { return changes.Load() > heard })
					list, err := s.ListTools(t.Context(), nil)
					if err != nil {
						t.Fatal(err)
					}
					if got := slices.ContainsFunc(list.Tools, func(one *mcp.Tool) bool { return one.Name == "probe_count" }); got != change.listed {
						t.Errorf("after the change probe_count is listed: %t, want %t", got, change.listed)
					}
				}
			})
		}
	}
}
