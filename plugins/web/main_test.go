package main

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/web/internal/page"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The test binary becomes the plugin, or the process that reads one document, if its environment
// says so.
func TestMain(m *testing.M) {
	page.ServeChild()
	if os.Getenv("WEB_AS_PLUGIN") != "" {
		newPlugin(outside{}).Serve()
	}
	// A proxy that nothing uses. The environment is asked once only, so that it must
	// be there from the beginning.
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		if err := os.Setenv(name, "http://127.0.0.1:3128"); err != nil { //nolint:forbidigo // of the process, see above
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// toolCall is a call of a test, with the expected part of its text, or the expected error.
type toolCall struct {
	name string
	tool string
	in   any
	want string
	code tool.Code
}

// check makes the call.
func (c toolCall) check(t *testing.T, p *sdktest.Plugin) {
	t.Helper()
	got := p.Call(t.Context(), c.tool, c.in)
	switch {
	case c.code != "" && (got.Error == nil || got.Error.Code != c.code):
		t.Errorf("%s: error %v, text %.300q, want %s", c.tool, got.Error, got.Text(), c.code)
	case c.code != "" && !contains(got.Error.ModelText(), c.want):
		t.Errorf("%s: error %q, want one with %q", c.tool, got.Error.ModelText(), c.want)
	case c.code == "" && got.Error != nil:
		t.Errorf("%s: %v", c.tool, got.Error.ModelText())
	case c.code == "" && !contains(got.Text(), c.want):
		t.Errorf("%s: text %.2000q, want one with %q", c.tool, got.Text(), c.want)
	}
}

// Every property of every tool is set, by some test, to another value than its
// default.
func TestEveryPropertyIsTested(t *testing.T) {
	var calls []sdktest.Call
	for _, c := range slices.Concat(fetchCalls(), requestCalls(), searchCalls(), linksCalls()) {
		if c.code == "" {
			calls = append(calls, sdktest.Call{Tool: c.tool, Args: c.in})
		}
	}
	p := newPlugin(outside{})
	(&web{}).addTools(p, false, true)
	untested, err := sdktest.Untested(p.Tools(), calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range untested {
		t.Errorf("no test sets %s to another value than its default", path)
	}
}

// Without a network no tool is available, and each says what the administrator adds.
func TestNoNetwork(t *testing.T) {
	p := newPlugin(outside{})
	(&web{}).addTools(p, true, true)
	for _, spec := range p.Tools() {
		if !strings.Contains(spec.Unavailable, `network { mode = "proxy" }`) {
			t.Errorf("%s is available without a network: %q", spec.Name, spec.Unavailable)
		}
	}
	if n := len(p.Tools()); n != 4 {
		t.Errorf("%d tools, want 4", n)
	}
}

// The plugin keeps the contract, in this process and in a separate one.
func TestContract(t *testing.T) {
	w := newWorld(t, pages())
	port := netip.MustParseAddrPort(w.servers.plain.Listener.Addr().String()).Port()
	local := fmt.Sprintf("http://127.0.0.1:%d/page", port)
	options := sdktest.Options{
		Env:      []string{"WEB_AS_PLUGIN=1"},
		Settings: map[string]any{"ports": []int{int(port)}, "allow_private": []string{"127.0.0.1/32"}, "host_rate": 100_000},
		Calls: []sdktest.Call{
			{Tool: "web_fetch", Args: webFetchArgs{URL: local}},
			{Tool: "http_request", Args: httpRequestArgs{URL: local, Method: "POST", Body: "x"}},
			{Tool: "web_fetch", Args: webFetchArgs{URL: strings.Replace(local, "/page", "/data", 1), Format: "text"}},
		},
	}
	t.Run("in process", func(t *testing.T) { sdktest.Run(t, newPlugin(outside{}), options) })
	t.Run("binary", func(t *testing.T) { sdktest.RunBinary(t, os.Args[0], options) })
}
