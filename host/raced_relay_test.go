package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// replaceHost ends the host of clients that `toolhost mcp` relays and starts the next one,
// several times: at once, and while one of the clients' processes is the host.
func replaceHost(t *testing.T, h *host, rounds int) {
	t.Helper()
	clients := newTraffic(t)
	defer clients.stop()
	var served []*occurrence
	for _, revision := range revisions {
		cmd := toolhost(context.WithoutCancel(t.Context()), h.config, "mcp")
		said := &bytes.Buffer{}
		cmd.Stderr = said
		s := connectTo(t, cmd, revision, nil)
		t.Cleanup(func() {
			_ = s.Close() // also ends the writer
			if t.Failed() {
				t.Logf("toolhost mcp of %s says:\n%s", revision, said)
			}
		})
		answers := clients.occurrence("the client of " + revision + " is served")
		served = append(served, answers)
		clients.until(func() {
			for name, args := range map[string]map[string]any{"probe_tally": {"note": "x"}, "hello": {"name": "x"}} {
				r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
				if err == nil && codeOf(r) == "unavailable" { // the host is stopping and has not begun the call
					return
				}
				if err != nil || r.IsError {
					t.Errorf("over the relay %s = %+v, %v", name, r, err)
					return
				}
			}
			answers.happened()
		})
	}
	all := func() {
		t.Helper()
		for _, e := range served {
			e.more()
		}
	}
	all()
	for n := range rounds {
		h.stop()
		if n%2 == 0 {
			all() // one of them is the host
		}
		h.restart(t)
		all()
	}
}
