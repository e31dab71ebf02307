package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/call/operation"
)

// TestStopAnswersCalls stops a host while calls wait for a person: each client learns that its
// call has not run. The questions stay open for the next host.
func TestStopAnswersCalls(t *testing.T) {
	t.Parallel()
	for transport, connect := range transports {
		for _, revision := range revisions {
			t.Run(transport+" "+revision, func(t *testing.T) {
				h := serve(t, writeConfig(t, listening+writing))
				s := connect(t, h, revision, nil)
				type answer struct {
					result *mcp.CallToolResult
					err    error
				}
				answers := make(chan answer, 1)
				go func() { // ends with the host
					r, err := s.CallTool(t.Context(), writeOf("hello\n"))
					answers <- answer{r, err}
				}()
				id := h.open(t, 1)[0].ID
				h.stop()
				got := <-answers
				if got.err != nil {
					t.Fatalf("the call came to an error: %v", got.err)
				}
				if text := textOf(got.result); codeOf(got.result) != "unavailable" || !strings.Contains(text, "the host is stopping") {
					t.Errorf("the model reads %q, want that the host is stopping", text)
				}
				_ = s.Close() // its host is gone
				h.restart(t)
				if open := h.open(t, 1); open[0].ID != id {
					t.Errorf("the next host asks %s, want that %s stayed open", open[0].ID, id)
				}
			})
		}
	}
}

// TestTooManyRequests sends more calls than a client may have under way, without reading
// answers: the host refuses those above the limit, and the others continue.
func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	const most, more = 128, 5
	cmd := toolhost(t.Context(), writeConfig(t, probeBlock("")), "mcp")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, body := statelessCall("probe_wait", "{}")
	for i := range most + more {
		if _, err := fmt.Fprintln(in, strings.Replace(body, `"id":7`, fmt.Sprintf(`"id":%d`, i), 1)); err != nil {
			t.Fatal(err)
		}
	}
	lines := bufio.NewScanner(out)
	for range more {
		var m rawMessage
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &m) != nil || m.Error == nil || !strings.Contains(m.Error.Message, "128 requests") {
			t.Fatalf("the host says %s, want that there are too many", lines.Text())
		}
	}
	if _, err := fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || !strings.Contains(lines.Text(), `"id":0`) {
		t.Errorf("the host says %s, want the answer to the canceled call", lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
}

// TestKilledClient kills a relayed client and its process: the question of a waiting call
// closes. A running call continues until it is canceled.
func TestKilledClient(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+writing+probeBlock("")))
	watch := connectHTTP(t, h, h.token, revisions[0], "test", nil)
	for _, tool := range []string{"probe_wait", "write_file"} {
		cmd := toolhost(t.Context(), h.config, "mcp")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, body := statelessCall(tool, map[string]string{"probe_wait": "{}", "write_file": `{"path":"a.txt","content":"x"}`}[tool])
		if _, err := fmt.Fprintln(in, body); err != nil {
			t.Fatal(err)
		}
		inside := func(want string) func() bool {
			return func() bool { return watch.must(t, "probe_inside", nil) == want }
		}
		if tool == "probe_wait" {
			eventually(t, "the call is inside", inside("1"))
		} else {
			h.open(t, 1)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		if tool == "write_file" {
			h.open(t, 0)
			continue
		}
		id := h.left(t, tool)
		if got := watch.must(t, "probe_inside", nil); got != "1" {
			t.Errorf("%s calls are inside the plugin, want the one whose client was killed", got)
		}
		h.must(t, http.StatusOK, "POST", "/v1/calls/"+id+"/cancel", h.token, "")
		eventually(t, "the call has left the plugin", inside("0"))
	}
}

// left returns the id of a tool's call whose client the host knows to be gone.
func (h *host) left(t *testing.T, tool string) (id string) {
	t.Helper()
	eventually(t, "the host knows that the client is gone", func() bool {
		var calls []operation.Info
		if err := json.Unmarshal([]byte(h.must(t, http.StatusOK, "GET", "/v1/calls", h.token, "")), &calls); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(calls, func(o operation.Info) bool { return o.Tool == tool && o.Left && o.State != operation.Done })
		if i >= 0 {
			id = calls[i].ID
		}
		return i >= 0
	})
	return id
}
