package main

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestReloadUnderTraffic reloads a host again and again while clients come
// over MCP, REST and the command line, call a tool, look at what waits, and go. Each gets its answer. With the race
// detector on (`make race`), the host watches itself meanwhile.
func TestReloadUnderTraffic(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	reloaded := make(chan struct{})
	var clients sync.WaitGroup
	// until calls f again and again until the host was reloaded often enough.
	until := func(f func()) {
		clients.Go(func() { // ends when reloaded is closed
			for !t.Failed() {
				f()
				select {
				case <-reloaded:
					return
				default:
				}
			}
		})
	}
	until(func() { connectAndCall(t, h) })
	until(func() {
		status, text, err := h.send("POST", "/v1/calls", h.token, `{"tool": "probe_tally", "arguments": {"note": "x"}}`)
		if err != nil || status != http.StatusOK {
			t.Errorf("a call over REST = %d %s, %v", status, text, err)
		}
	})
	until(func() {
		if status, text, err := h.send("GET", "/readyz", "", ""); err != nil || status != http.StatusOK {
			t.Errorf("readyz = %d %s, %v", status, text, err)
		}
	})
	until(func() {
		if _, stderr, code := h.cli("approvals", "list"); code != 0 {
			t.Errorf("approvals list exits with %d: %s", code, stderr)
		}
	})
	config := readFile(t, h.config)
	for n := range 5 {
		other := strings.Replace(config, `"unlimited"`, strconv.Itoa(100_000+n), 1)
		if err := os.WriteFile(h.config, []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		h.ok(t, "reload")
	}
	close(reloaded)
	clients.Wait()
}

// connectAndCall is a client over HTTP that connects, lists tools, calls one, and
// goes.
func connectAndCall(t *testing.T, h *host) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "traffic", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: h.mcp, HTTPClient: &http.Client{Transport: bearer(h.token), Timeout: 2 * time.Minute},
	}, nil)
	if err != nil {
		t.Errorf("connecting over HTTP: %v", err)
		return
	}
	defer session.Close()
	if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Errorf("tools/list: %v", err)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "probe_tally", Arguments: map[string]any{"note": "x"}}); err != nil {
		t.Errorf("tools/call: %v", err)
	}
}
