package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/soak"
)

// TestManyLargeResults reads 1 MiB in 64 concurrent calls over each front end: text over REST,
// and images over MCP, where texts are shorter: over HTTP one day, over stdio the next. The host must need no more memory than for
// some of them.
func TestManyLargeResults(t *testing.T) {
	const (
		calls = 64
		most  = 150 // MiB above the host's usual memory
	)
	config := writeConfig(t, listening+`
plugin "fs" {
  path   = "fs"
  tier   = "read_only"
  claims = "trust"
  tool "read_file" { max_output = "2MiB" }
}
`)
	text := strings.Repeat("a \"line\" of text\n", 60_000)
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "ws", "large.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	image := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{0xa5}, 3<<18-8)...)
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "ws", "large.png"), image, 0o600); err != nil {
		t.Fatal(err)
	}
	overMCP := func(s *session) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": "large.png"}})
			if err != nil || r.IsError {
				t.Errorf("read_file: %v, %+v", err, r)
				return
			}
			got, ok := r.Content[0].(*mcp.ImageContent)
			if !ok || !bytes.Equal(got.Data, image) {
				t.Errorf("read_file = %T, want an image of %d bytes", r.Content[0], len(image))
			}
		}
	}
	seed := soak.Seed(t)
	days := map[string]int{"HTTP": 0, "stdio": 1}
	for name, begin := range map[string]func(*testing.T) (pid int, read func(*testing.T)){
		"REST": func(t *testing.T) (int, func(*testing.T)) {
			t.Helper()
			h := serve(t, config)
			return h.cmd.Process.Pid, func(t *testing.T) {
				t.Helper()
				var got struct{ Result struct{ Content string } }
				postCall(t, h, `{"tool":"read_file","arguments":{"path":"large.txt"}}`, &got)
				if got.Result.Content != text {
					t.Errorf("read_file = %d bytes, want %d", len(got.Result.Content), len(text))
				}
			}
		},
		"HTTP": func(t *testing.T) (int, func(*testing.T)) {
			t.Helper()
			h := serve(t, config)
			return h.cmd.Process.Pid, overMCP(connectHTTP(t, h, h.token, revisions[0], "test", nil))
		},
		"stdio": func(t *testing.T) (int, func(*testing.T)) {
			t.Helper()
			cmd := toolhost(t.Context(), config, "mcp")
			s := connectTo(t, cmd, revisions[0], nil)
			return cmd.Process.Pid, overMCP(s)
		},
	} {
		if i, some := days[name]; some && !soak.Today(seed, i, len(days)) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			pid, read := begin(t)
			read(t) // so that the plugin has started
			if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
				t.Fatal(err)
			}
			before := memoryMiB(t, pid, "VmRSS:")
			var reading sync.WaitGroup
			for range calls {
				reading.Go(func() { read(t) }) // ends with the call
			}
			reading.Wait()
			grown := memoryMiB(t, pid, "VmHWM:") - before
			t.Logf("%d reads of 1 MiB took %d MiB, beside %d", calls, grown, before)
			if grown > most {
				t.Errorf("%d reads of 1 MiB took %d MiB, want %d at most", calls, grown, most)
			}
		})
	}
}

// postCall makes a call over REST and reads its outcome.
func postCall(t *testing.T, h *host, body string, into any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/v1/calls", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	request.Header.Set("Authorization", "Bearer "+h.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Error(err)
	}
}

// memoryMiB returns a value of the kernel's memory statistics of a process.
func memoryMiB(t *testing.T, pid int, of string) int {
	t.Helper()
	for line := range strings.Lines(readFile(t, fmt.Sprintf("/proc/%d/status", pid))) {
		if kib, ok := strings.CutPrefix(line, of); ok {
			n, err := strconv.Atoi(strings.Fields(kib)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n / 1024
		}
	}
	t.Fatal("the process says nothing of its memory")
	return 0
}
