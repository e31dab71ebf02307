package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// caller makes a call of probe_tally over one front end and returns its outcome as "code:
// text".
type caller func(t *testing.T, h *host) func(args map[string]any) string

// callers returns the front ends of a host that serves.
func callers() map[string]caller {
	all := map[string]caller{
		"REST": func(t *testing.T, h *host) func(map[string]any) string {
			t.Helper()
			return func(args map[string]any) string {
				status, text, err := h.send("POST", "/v1/calls", h.token, asJSON(map[string]any{"tool": "probe_tally", "arguments": args}))
				if err != nil {
					return err.Error()
				}
				o := outcomeOf(t, status, text, err)
				if o.Error == nil {
					return ": " + o.Result.Content
				}
				return strings.ToLower(o.Error.Code) + ": " + o.Error.Message
			}
		},
	}
	for _, revision := range revisions[:2] {
		all["MCP over HTTP "+revision] = func(t *testing.T, h *host) func(map[string]any) string {
			t.Helper()
			return tallies(t, connectHTTP(t, h, h.token, revision, "test", nil))
		}
		all["a guest "+revision] = func(t *testing.T, h *host) func(map[string]any) string {
			t.Helper()
			s, _, _ := relayed(t, h.config, revision)
			return tallies(t, s)
		}
	}
	return all
}

// tallies calls probe_tally in a session.
func tallies(t *testing.T, s *session) func(map[string]any) string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	return func(args map[string]any) string {
		r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "probe_tally", Arguments: args})
		if err != nil {
			return "no answer: " + err.Error()
		}
		return codeOf(r) + ": " + textOf(r)
	}
}

// TestStopWaitsForCalls stops a host during a call that finishes within the grace period: its
// caller gets the result. No other call begins in the meantime.
func TestStopWaitsForCalls(t *testing.T) {
	for name, connect := range callers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := serve(t, writeConfig(t, strings.Replace(listening, `"1s"`, `"10m"`, 1)+writing+counting))
			call := connect(t, h)
			fifo := filepath.Join(h.dir, "ws", "go")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			ended := make(chan string, 1)
			go func() { ended <- call(map[string]any{"note": "a", "until": "go"}) }() // ends with the call
			eventually(t, "the call has begun", func() bool { return len(h.counted()) == 1 })
			if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the host says that it stops", func() bool {
				_, text, err := h.send("GET", "/readyz", h.token, "")
				return err == nil && strings.Contains(text, "stopping")
			})
			late := h.post(t, "probe_tally", map[string]any{"note": "b"})
			if late.Error == nil || late.Error.Code != "UNAVAILABLE" || !strings.Contains(late.Error.Message, "was not begun") {
				t.Errorf("a late call ends with %+v, want that it was not begun", late.Error)
			}
			if err := os.WriteFile(fifo, []byte("go"), 0); err != nil { // returns once the call has read it
				t.Fatal(err)
			}
			if got := <-ended; got != ": counted a" {
				t.Errorf("the call ends with %q, want its result", got)
			}
			h.stop()
			if n := len(h.counted()); n != 1 {
				t.Errorf("%d calls ran, want 1: %v", n, h.counted())
			}
		})
	}
}

// TestStopUnderCalls stops a host during a call that does not finish: the caller reads that
// the outcome is unknown, and the call's id. The call does not run twice.
func TestStopUnderCalls(t *testing.T) {
	for name, connect := range callers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := serve(t, writeConfig(t, listening+writing+counting))
			call := connect(t, h)
			ended := make(chan string, 1)
			go func() { ended <- call(map[string]any{"note": "a", "hold": true}) }() // ends with the host
			eventually(t, "the call has begun", func() bool { return len(h.counted()) == 1 })
			h.stop()
			if got := <-ended; !strings.HasPrefix(got, "unknown_outcome: ") || !strings.Contains(got, h.countedCall(0)) {
				t.Errorf("the call ends with %q, want an unknown outcome of %s", got, h.countedCall(0))
			}
			if n := len(h.counted()); n != 1 {
				t.Errorf("%d calls ran, want 1: %v", n, h.counted())
			}
		})
	}
}

// countedCall returns the id of the call that wrote line n, from 0.
func (h *host) countedCall(n int) string {
	id, _, _ := strings.Cut(h.counted()[n], ",")
	return id
}

// TestMCPHostStopsUnderAGuest ends a client's process that is the host during a call of a
// guest, once with a signal and once when its own client ends.
func TestMCPHostStopsUnderAGuest(t *testing.T) {
	for name, stop := range map[string]func(cmd *os.Process, s *session) error{
		"signal": func(p *os.Process, _ *session) error { return p.Signal(syscall.SIGTERM) },
		"end":    func(_ *os.Process, s *session) error { return s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := writeConfig(t, listening+writing+counting)
			h := host{dir: filepath.Dir(config), config: config}
			cmd := toolhost(context.WithoutCancel(t.Context()), config, "mcp")
			own := connectTo(t, cmd, revisions[1], nil)
			own.must(t, "probe_process", nil)
			guest, _, _ := relayed(t, config, revisions[0])
			ended, owns := make(chan string, 1), make(chan string, 1)
			go func() { ended <- tallies(t, guest)(map[string]any{"note": "a", "hold": true}) }() // ends with the host
			eventually(t, "the guest's call has begun", func() bool { return len(h.counted()) == 1 })
			if name == "signal" {
				go func() { owns <- tallies(t, own)(map[string]any{"note": "b", "hold": true}) }() // ends with the host
				eventually(t, "the host's own call has begun", func() bool { return len(h.counted()) == 2 })
			}
			if err := stop(cmd.Process, own); err != nil {
				t.Fatal(err)
			}
			if got := <-ended; !strings.HasPrefix(got, "unknown_outcome: ") || !strings.Contains(got, h.countedCall(0)) {
				t.Errorf("the guest's call ends with %q, want an unknown outcome of %s", got, h.countedCall(0))
			}
			if name == "signal" {
				if got := <-owns; !strings.HasPrefix(got, "unknown_outcome: ") || !strings.Contains(got, h.countedCall(1)) {
					t.Errorf("the host's own call ends with %q, want an unknown outcome of %s", got, h.countedCall(1))
				}
			}
			before := len(h.counted())
			guest.must(t, "probe_tally", map[string]any{"note": "c"}) // of the next host
			if got := len(h.counted()); got != before+1 {
				t.Errorf("%d calls have run, want %d", got, before+1)
			}
		})
	}
}
