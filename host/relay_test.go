package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// relayed connects a client to a running host through its own `toolhost mcp`, and counts the
// notifications that the tools have changed.
func relayed(t *testing.T, config, revision string) (s *session, changes *atomic.Int32, stderr *bytes.Buffer) {
	t.Helper()
	changes, stderr = &atomic.Int32{}, &bytes.Buffer{}
	cmd := toolhost(context.WithoutCancel(t.Context()), config, "mcp")
	cmd.Stderr = stderr
	s = connectTo(t, cmd, revision, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changes.Add(1) },
	})
	if got := s.must(t, "read_file", map[string]any{"path": "hello.txt"}); got != "hello, world\n" {
		t.Fatalf("read_file = %q", got)
	}
	return s, changes, stderr
}

// TestRelaySurvivesItsHost kills the host of an idle client: the client continues and, in eras
// with sessions, learns that the tools may have changed.
func TestRelaySurvivesItsHost(t *testing.T) {
	t.Parallel()
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			h := serve(t, writeConfig(t, listening+writing+counting))
			s, changes, stderr := relayed(t, h.config, revision)
			before := s.must(t, "probe_process", nil)
			h.kill()
			if got := s.must(t, "read_file", map[string]any{"path": "hello.txt"}); got != "hello, world\n" {
				t.Errorf("after the end of its host, read_file = %q", got)
			}
			if after := s.must(t, "probe_process", nil); after == before {
				t.Errorf("the plugin is process %s as before: the host lives, and the test proves nothing", after)
			}
			if revision != revisions[0] {
				eventually(t, "the client has heard that tools may differ", func() bool { return changes.Load() > 0 })
			}
			// The process is now the host: commands find it, and the client receives what it
			// publishes, even over the subscription of a stateless client.
			heard := changes.Load()
			config := readFile(t, h.config)
			if err := os.WriteFile(h.config, []byte(strings.Replace(config, counting, "", 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			h.ok(t, "reload")
			eventually(t, "the client has heard of the change", func() bool { return changes.Load() > heard })
			if err := s.Close(); err != nil {
				t.Errorf("the process does not end cleanly with its client: %v", err)
			}
			if !strings.Contains(stderr.String(), "the connection to the host ended") {
				t.Errorf("it says %q, want that the connection has ended", stderr)
			}
		})
	}
}

// TestRelayDoesNotRepeatACall kills the host during a call that changes something: the client
// learns that the outcome is unknown, and the call runs once.
func TestRelayDoesNotRepeatACall(t *testing.T) {
	t.Parallel()
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			h := serve(t, writeConfig(t, listening+writing+counting))
			s, _, _ := relayed(t, h.config, revision)
			ended := make(chan error, 1)
			go func() { // ends with the call
				_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "probe_tally", Arguments: map[string]any{"note": "a", "hold": true}})
				ended <- err
			}()
			eventually(t, "the call has had its effect", func() bool { return len(h.counted()) == 1 })
			h.kill()
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "whether the call had an effect is not known") {
				t.Errorf("the call ended with %v, want that nobody knows", err)
			}
			s.must(t, "probe_tally", map[string]any{"note": "b"}) // the control: a call has its effect
			if got := h.counted(); len(got) != 2 || !strings.Contains(got[0], "a") || !strings.Contains(got[1], "b") {
				t.Errorf("calls that ran: %v, want a and b, once each", got)
			}
		})
	}
}

// TestRelayedClientsTakeOver ends the host of two clients together with the host's own client:
// one of the two becomes the host and serves the other.
func TestRelayedClientsTakeOver(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, listening+writing+counting)
	first := connect(t, config, revisions[1], nil)
	var clients []*session
	for _, revision := range revisions[:2] {
		s, _, _ := relayed(t, config, revision)
		clients = append(clients, s)
	}
	before := first.must(t, "probe_process", nil)
	if err := first.Close(); err != nil {
		t.Errorf("the first host does not end cleanly: %v", err)
	}
	a, b := clients[0].must(t, "probe_process", nil), clients[1].must(t, "probe_process", nil)
	if a != b || a == before {
		t.Errorf("the plugin was process %s; now one client sees %s, the other %s, want one that is new", before, a, b)
	}
	for i, s := range clients {
		if err := s.Close(); err != nil {
			t.Errorf("client %d does not end cleanly: %v", i, err)
		}
	}
}

// TestRelayPassesHostsOn kills one host after the other. Each is a client's process that was
// relayed to the one before.
func TestRelayPassesHostsOn(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, listening+writing+counting)
	s, _, _ := relayed(t, config, revisions[1]) // the first host
	last := s
	for range 3 {
		next, _, _ := relayed(t, config, revisions[2])
		if err := last.Close(); err != nil {
			t.Errorf("a host does not end cleanly: %v", err)
		}
		if got := next.must(t, "read_file", map[string]any{"path": "hello.txt"}); got != "hello, world\n" {
			t.Errorf("at the next host, read_file = %q", got)
		}
		last = next
	}
}
