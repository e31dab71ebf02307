package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/internal/soak"
)

// reading enables the web plugin for a server on this machine, at a level of isolation.
func reading(server *httptest.Server, isolation, filesystem string) string {
	return fmt.Sprintf(`
plugin "web" {
  tier   = "privileged"
  claims = "trust"
  config {
    ports         = [%d]
    allow_private = ["127.0.0.1/32"]
    host_rate     = 100000
  }
  sandbox {
    isolation = %q
    limits {
      memory = "1GiB" # as in config.hcl
    }
    filesystem {
      workspace = "none"
      %s
    }
    network {
      mode = "host"
    }
  }
  approval {
    side_effecting = "allow"
  }
}
`, netip.MustParseAddrPort(server.Listener.Addr().String()).Port(), isolation, filesystem)
}

// TestPagesAtEachLevel checks that processes of the plugin read pages at each level of
// isolation.
func TestPagesAtEachLevel(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<p>Hello <b>there</b>")
	}))
	t.Cleanup(server.Close) // the levels run later, at the same time
	levels := workingLevels(t)
	for _, isolation := range []string{"off", "basic", "isolated", "strict", "auto"} {
		if !levels[isolation] {
			continue // TestProgramsOfPlugins checks this case
		}
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			h := serve(t, writeConfig(t, listening+reading(server, isolation, `read = ["/proc"]`)))
			if o := h.post(t, "web_fetch", map[string]any{"url": server.URL}); o.Status != client.Success || !strings.Contains(asJSON(o), "Hello **there**") {
				t.Errorf("web_fetch = %s\n%s", asJSON(o), h.said())
			}
		})
	}
	if levels["basic"] {
		t.Run("without proc", func(t *testing.T) {
			t.Parallel()
			h := serve(t, writeConfig(t, listening+reading(server, "basic", "")))
			if o := h.post(t, "web_fetch", map[string]any{"url": server.URL}); o.Error == nil || !strings.Contains(o.Error.Hint, `read = ["/proc"]`) {
				t.Errorf("web_fetch = %s", asJSON(o))
			}
		})
	}
}

// TestSessionsReadAtOnce checks that calls of one session take turns and those of several do
// not: the plugin has memory for the largest answers of many sessions at once.
func TestSessionsReadAtOnce(t *testing.T) {
	sessions := soak.Rounds(8, 32)
	largest := bytes.Repeat([]byte("\x80"), 4_900_000) // three bytes each as text
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=windows-1252")
		_, _ = w.Write(largest)
	}))
	defer server.Close()
	h := serve(t, writeConfig(t, listening+reading(server, "auto", `read = ["/proc"]`)))
	for tool, more := range map[string]string{"web_fetch": `"max_length":100`, "http_request": `"method":"GET"`} {
		var calls sync.WaitGroup
		for i := range sessions {
			calls.Go(func() {
				body := fmt.Sprintf(`{"tool":%q,"arguments":{"url":"%s/%d",%s}}`, tool, server.URL, i, more)
				status, text, err := h.send("POST", "/v1/calls", h.token, body, "Toolhost-Session", fmt.Sprint("s", i))
				if err != nil || status != http.StatusOK || !strings.Contains(text, `"status":"success"`) {
					t.Errorf("%s in session %d: %d %.500s, %v", tool, i, status, text, err)
				}
			})
		}
		calls.Wait()
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.plugin(t, "web").PID))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM") || strings.HasPrefix(line, "VmData") {
			t.Log(strings.TrimSpace(line))
		}
	}
}
