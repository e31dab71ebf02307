package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
)

// conformanceBlock enables the plugin with the tools that the suite calls.
const conformanceBlock = `
plugin "conformance" {
  path   = "conformance"
  tier   = "read_only"
  claims = "trust"
}
`

// TestConformance runs the official conformance suite against a host, once for each revision
// that the suite knows. The failures must be exactly those in the revision's list.
func TestConformance(t *testing.T) {
	t.Parallel()
	node, program := peerProgram(t, "conformance")
	h := serve(t, writeConfig(t, listening+conformanceBlock))
	h.post(t, "test_simple_text", nil) // start the plugin now: the suite waits for half a second only
	address := suiteProxy(t, h)
	for _, tt := range []struct {
		revision  string
		scenarios int // number of scenarios in the suite
		want      map[string]string
	}{
		{"2026-07-28", 50, failuresStateless},
		{"2025-11-25", 33, failuresWithSessions},
	} {
		t.Run(tt.revision, func(t *testing.T) {
			// Some checks pass if there is no server.
			h.must(t, 200, "GET", "/readyz", h.token, "")
			ran := runSuite(t, address+"/mcp", tt.revision, node, program)
			h.must(t, 200, "GET", "/readyz", h.token, "")
			if len(ran) != tt.scenarios {
				t.Errorf("the suite ran %d scenarios, want %d: %q", len(ran), tt.scenarios, slices.Sorted(maps.Keys(ran)))
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(tt.want)), failures(t, ran, tt.want)); diff != "" {
				t.Errorf("what fails (-expected +now):\n%s", diff)
			}
		})
	}
}

// suiteProxy runs a proxy on loopback that does what the suite cannot, and returns its
// address. The proxy adds the agent's token, and changes the list of tools when the suite
// calls the tool for that. It forwards requests to its own name under the host's name, and
// leaves any other name unchanged.
func suiteProxy(t *testing.T, h *host) string {
	t.Helper()
	target, err := url.Parse(h.url)
	if err != nil {
		t.Fatal(err)
	}
	var own *url.URL
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,                                                                      // pass events on at once
		ErrorLog:      hclog.New(&hclog.LoggerOptions{Output: t.Output()}).StandardLogger(nil), // the suite leaves streams half read
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			if r.In.Host == own.Host {
				r.Out.Host = target.Host
			}
			if r.In.Header.Get("Origin") == own.String() {
				r.Out.Header.Set("Origin", h.url)
			}
			r.Out.Header.Set("Authorization", "Bearer "+h.token)
		},
	}
	changeTools := toolChanger(t, h)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Name") == "test_trigger_tool_change" {
			changeTools()
		}
		// Read the whole body first: an answer that begins before the end of the request
		// breaks the proxy's connection.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	own = &url.URL{Scheme: "http", Host: server.Listener.Addr().String()}
	server.Start()
	t.Cleanup(server.Close)
	return own.String()
}

// toolChanger returns a function that alternately removes a tool from the list and restores
// it.
func toolChanger(t *testing.T, h *host) func() {
	t.Helper()
	admin := h.approver(t)
	with := readFile(t, h.config)
	without := strings.TrimSuffix(with, "}\n") + `
  tool "test_dynamic_tool" {
    enabled = false
  }
}
`
	var mu sync.Mutex // guards now and the configuration
	now := with
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if now == with {
			now = without
		} else {
			now = with
		}
		if err := errors.Join(os.WriteFile(h.config, []byte(now), 0o600), admin.Reload(t.Context(), "")); err != nil {
			t.Errorf("change the list of tools: %v", err)
		}
	}
}

// check is one line of a scenario's report.
type check struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Message string `json:"errorMessage"`
}

// runSuite runs the scenarios of a revision and returns their checks.
func runSuite(t *testing.T, address, revision, node, program string) map[string][]check {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), node, program, "server", "--url", address, "--requirements", revision, "--output-dir", dir)
	cmd.Dir = dir
	// The suite exits with status 1 if anything fails; its reports say more.
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	reports, err := filepath.Glob(filepath.Join(dir, "server-*", "checks.json"))
	if err != nil || len(reports) == 0 {
		t.Fatalf("the suite has left no reports: %v\n%s", err, out)
	}
	ran := map[string][]check{}
	for _, path := range reports {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var checks []check
		if err := json.Unmarshal(text, &checks); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		ran[scenarioOf(filepath.Base(filepath.Dir(path)))] = checks
	}
	_, summary, _ := bytes.Cut(out, []byte("=== SUMMARY ==="))
	t.Logf("revision %s:%s", revision, summary)
	return ran
}

// scenarioOf returns the scenario's name from the name of a report directory,
// "server-NAME-TIME".
func scenarioOf(dir string) string {
	const stamp = "-2026-11-21T03-17-21-992Z"
	name := strings.TrimPrefix(dir, "server-")
	return name[:max(0, len(name)-len(stamp))]
}

// failures returns what fails, in the terms of the list: a whole scenario if the list names
// it, otherwise scenario:check. It logs the reasons, and how many checks pass.
func failures(t *testing.T, ran map[string][]check, expected map[string]string) []string {
	t.Helper()
	found := map[string]bool{}
	scenarios, passed, failing := 0, 0, 0
	for _, scenario := range slices.Sorted(maps.Keys(ran)) {
		before := failing
		for _, c := range ran[scenario] {
			switch c.Status {
			case "SUCCESS":
				passed++
				continue
			case "FAILURE":
				failing++
			case "WARNING": // a SHOULD of the specification
			default:
				continue
			}
			name := scenario
			if expected[scenario] == "" {
				name += ":" + c.ID
			}
			found[name] = true
			t.Logf("%s of %s:%s: %s", strings.ToLower(c.Status), scenario, c.ID, c.Message)
		}
		if failing == before {
			scenarios++
		}
	}
	t.Logf("%d of %d scenarios pass, %d checks, and %d checks fail", scenarios, len(ran), passed, failing)
	return slices.Sorted(maps.Keys(found))
}
