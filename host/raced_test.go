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

	"github.com/toolhost/toolhost/internal/soak"
)

// TestReloadUnderTraffic has clients connect over MCP, REST and the command line, call tools,
// look at open approvals, and leave. Some calls need approval. Meanwhile the host reloads its
// configuration, loses a plugin, and is replaced by the next host. Each client gets its
// answer. With the race detector (`make race`), host and plugin watch themselves.
func TestReloadUnderTraffic(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting+watched))
	t.Run("reload", func(t *testing.T) {
		clients := newTraffic(t)
		defer clients.stop()
		clients.until(func() { connectAndCall(t, h) })
		clients.until(func() {
			status, text, err := h.send("POST", "/v1/calls", h.token, `{"tool": "probe_tally", "arguments": {"note": "x"}}`)
			if err != nil || status != http.StatusOK {
				t.Errorf("a call over REST = %d %s, %v", status, text, err)
			}
		})
		clients.until(func() {
			if status, text, err := h.send("GET", "/readyz", "", ""); err != nil || status != http.StatusOK {
				t.Errorf("readyz = %d %s, %v", status, text, err)
			}
		})
		clients.until(func() {
			if _, stderr, code := h.cli("approvals", "list"); code != 0 {
				t.Errorf("approvals list exits with %d: %s", code, stderr)
			}
		})
		approved, rejected := clients.askAndDecide(t, h)
		greeted := clients.greet(t, h)
		config := readFile(t, h.config)
		for n := range soak.Rounds(4, 100) {
			other := strings.Replace(config, `"unlimited"`, strconv.Itoa(100_000+n), 1)
			if err := os.WriteFile(h.config+".new", []byte(other), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(h.config+".new", h.config); err != nil { // commands read it concurrently
				t.Fatal(err)
			}
			h.ok(t, "reload")
			approved.more()
			rejected.more()
			killGreeter(t, h)
			greeted.more()
		}
	})
	t.Run("relay", func(t *testing.T) {
		replaceHost(t, h, soak.Rounds(2, 50))
	})
}

// traffic is a group of clients that work until they are told to end or one fails.
type traffic struct {
	t       *testing.T
	over    chan struct{}
	end     func() // closes over
	clients sync.WaitGroup
}

// newTraffic returns traffic without clients. The caller must stop it.
func newTraffic(t *testing.T) *traffic {
	t.Helper()
	over := make(chan struct{})
	return &traffic{t: t, over: over, end: sync.OnceFunc(func() { close(over) })}
}

// until calls f repeatedly until the end.
func (c *traffic) until(f func()) {
	c.clients.Go(func() { // ends when over is closed
		for {
			select {
			case <-c.over:
				return
			default:
			}
			if f(); c.t.Failed() {
				c.end()
			}
		}
	})
}

// stop tells the clients to end and waits for them.
func (c *traffic) stop() {
	c.end()
	c.clients.Wait()
}

// occurrence signals an event that happens to clients repeatedly.
type occurrence struct {
	c     *traffic
	what  string
	heard chan struct{}
}

func (c *traffic) occurrence(what string) *occurrence {
	return &occurrence{c, what, make(chan struct{}, 1)}
}

// happened records the event.
func (o *occurrence) happened() {
	select {
	case o.heard <- struct{}{}:
	default:
	}
}

// more waits until the event happens again.
func (o *occurrence) more() {
	o.c.t.Helper()
	bound := time.NewTimer(4 * patience)
	defer bound.Stop()
	for range 2 { // the first may have happened before
		select {
		case <-o.heard:
		case <-o.c.over:
			o.c.t.Fatalf("a client has failed before: %s", o.what)
		case <-bound.C:
			o.c.t.Fatalf("still not: %s", o.what)
		}
	}
}

// connectAndCall connects a client over HTTP, lists tools, calls one, and disconnects.
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
