package main

import (
	"encoding/json"
	"net/http"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/client"
)

// watched enables the plugin hello. With the race detector it needs more memory, and writes
// its report beside the host's. The test kills it more often than a plugin may normally crash.
const watched = `
plugin "hello" {
  path   = "` + watchedHello + `"
  tier   = "read_only"
  claims = "trust"
  restart { max_crashes = 1000 }
  sandbox {
    isolation = "off"
    run_as    = "host"
    limits { memory = "unlimited" }
    env { pass = ["GORACE"] }
  }
}
`

// greet has clients call hello over REST. A call is lost if its plugin is killed.
func (c *traffic) greet(t *testing.T, h *host) (greeted *occurrence) {
	t.Helper()
	greeted = c.occurrence("hello greets")
	for range 3 {
		c.until(func() {
			status, text, err := h.send("POST", "/v1/calls", h.token, `{"tool": "hello", "arguments": {"name": "x"}}`)
			var o client.Outcome
			if err == nil {
				err = json.Unmarshal([]byte(text), &o)
			}
			switch {
			case err != nil || status != http.StatusOK:
				t.Errorf("a call of hello = %d %s, %v", status, text, err)
			case o.Error == nil:
				greeted.happened()
			case o.Error.Code != "PLUGIN_CRASHED":
				t.Errorf("a call of hello ends with %+v", o.Error)
			}
		})
	}
	return greeted
}

// killGreeter kills the process of hello and waits for the next one.
func killGreeter(t *testing.T, h *host) {
	t.Helper()
	approver := h.approver(t)
	pid := func() int {
		p, err := approver.Plugin(t.Context(), "hello")
		if err != nil {
			t.Fatal(err)
		}
		return p.PID
	}
	var victim int
	eventually(t, "hello runs", func() bool { victim = pid(); return victim > 1 })
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "hello runs again", func() bool { next := pid(); return next > 1 && next != victim })
}
