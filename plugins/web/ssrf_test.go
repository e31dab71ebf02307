package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/sdktest"
)

// ssrfCase is an address, and whether it may be contacted.
type ssrfCase struct {
	ID        string            `json:"id"`
	URL       string            `json:"url"`
	Expect    string            `json:"expect"` // allow, deny, error
	Class     string            `json:"cls"`
	Why       string            `json:"why"`
	Resolve   []string          `json:"resolve"`
	Sequence  [][]string        `json:"resolve_sequence"`
	Redirects []string          `json:"redirects"`
	Behaviour string            `json:"server_behaviour"`
	Env       map[string]string `json:"env"`
}

// TestCasesSSRF fetches each address of the table. A denied call sends nothing to its target.
// Without the guard, the same call does, if its target is the trap.
func TestCasesSSRF(t *testing.T) {
	dir := os.Getenv("TOOLHOST_CASES")
	if dir == "" {
		dir = filepath.Join("testdata", "cases")
	}
	text, err := os.ReadFile(filepath.Join(dir, "ssrf.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Cases []ssrfCase `json:"cases"`
	}
	if err := json.Unmarshal(text, &table); err != nil || len(table.Cases) == 0 {
		t.Fatalf("%d cases: %v", len(table.Cases), err)
	}
	ran, controls := 0, 0
	for _, c := range table.Cases {
		t.Run(c.ID, func(t *testing.T) {
			ran++
			for name, value := range c.Env { // set by TestMain, as it is read once only
				if os.Getenv(name) != value {
					t.Fatalf("%s is %q", name, os.Getenv(name))
				}
			}
			guarded := c.world(t)
			code, result := c.fetch(t, guarded)
			switch {
			case c.Expect == "allow" && result != "":
				t.Errorf("%s (%s) is refused: %s", c.URL, c.Why, result)
			case c.Expect != "allow" && result == "":
				t.Errorf("%s (%s) is fetched", c.URL, c.Why)
			}
			if got := guarded.trapped.Load(); got != 0 {
				t.Errorf("%s (%s): %d bytes were sent to what is not public", c.URL, c.Why, got)
			}
			if c.Expect == "deny" && !slices.Contains([]string{"permission_denied", "invalid_argument"}, code) && c.Why != "loop" {
				t.Errorf("%s (%s) is not refused, but fails with %s: %s", c.URL, c.Why, code, result)
			}
			if asked := guarded.lookedUp(); c.Expect == "deny" && slices.Contains([]string{"ipv4", "ipv6", "hostname", "syntax"}, c.Class) && len(asked)+len(guarded.dials()) > 0 {
				t.Errorf("%s (%s): %v were looked up and %v dialled", c.URL, c.Why, asked, guarded.dials())
			}
			for _, proxy := range c.Env {
				if strings.Contains(strings.Join(guarded.dials(), " "), strings.TrimPrefix(proxy, "http://")) {
					t.Errorf("%s: the proxy of the environment was contacted", c.URL)
				}
			}
			if !c.trapped() {
				return
			}
			controls++
			open := c.world(t)
			open.outside.unguarded = true
			c.URL = strings.Replace(c.URL, "https://", "http://", 1) // a redirect from https to http is another matter
			_, _ = c.fetch(t, open)
			if open.trapped.Load() == 0 {
				t.Errorf("control: without the guard, %s sends nothing, so that the case proves nothing", c.URL)
			}
		})
	}
	if ran != len(table.Cases) || controls < 37 {
		t.Errorf("%d of %d cases ran, with %d controls", ran, len(table.Cases), controls)
	}
	t.Logf("%d cases, %d with a control", ran, controls)
}

// trapped reports whether the target of a case is the trap: it is denied for the
// address that it leads to.
func (c ssrfCase) trapped() bool {
	if c.Expect != "deny" {
		return false
	}
	return slices.Contains([]string{"ipv4", "ipv6", "hostname", "dns"}, c.Class) ||
		slices.Contains([]string{"to metadata", "protocol-relative", "redis port", "docker port"}, c.Why) || c.Why == "userinfo confusion" && strings.HasSuffix(c.URL, "@127.0.0.1/")
}

// world resolves the names of a case as the case says, and all others to addresses that are not
// public.
func (c ssrfCase) world(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, http.HandlerFunc(c.serve))
	if u, err := url.Parse(c.URL); err == nil && u.Hostname() != "" {
		switch {
		case c.Sequence != nil:
			w.names[u.Hostname()] = c.Sequence
		case c.Resolve != nil:
			w.names[u.Hostname()] = [][]string{c.Resolve}
		default: // as the resolvers of some systems read it
			w.names[u.Hostname()] = [][]string{{"127.0.0.1"}}
		}
	}
	return w
}

func (c ssrfCase) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	if r.URL.Path == "/start" && len(c.Redirects) > 0 {
		w.Header().Set("Location", c.Redirects[0])
		w.WriteHeader(http.StatusFound)
		return
	}
	switch c.Behaviour {
	case "endless":
		for piece := []byte(strings.Repeat("endless ", 512)); ; {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	case "slowloris":
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
	}
	_, _ = io.WriteString(w, "hello")
}

// fetch returns the code and the text of web_fetch's error; "" if there is none.
func (c ssrfCase) fetch(t *testing.T, w *world) (code, text string) {
	t.Helper()
	if c.Behaviour == "chunk-ext" {
		w.raw(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;"+strings.Repeat("x", 1<<20)+"\r\nhello\r\n0\r\n\r\n")
	}
	p := w.start(t, sdktest.Options{Settings: map[string]any{"timeout": "1s", "max_size": "64KiB"}})
	result := p.Call(t.Context(), "web_fetch", map[string]any{"url": c.URL})
	if result.Error == nil {
		return "", ""
	}
	return string(result.Error.Code), result.Error.Error()
}
