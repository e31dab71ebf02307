package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/proxy"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestProxyFailures: what a model reads about a connection that the host could not make is what it
// reads without a proxy.
func TestProxyFailures(t *testing.T) {
	kinds := map[string]struct {
		status int
		kind   proxy.FailureKind
		text   string
	}{
		"unknown.example:80": {http.StatusBadGateway, proxy.UnknownHost, "lookup unknown.example: no such host"},
		"lookup.example:80":  {http.StatusGatewayTimeout, proxy.LookupFailed, "lookup lookup.example: the look-up timed out"},
		"closed.example:80":  {http.StatusBadGateway, proxy.ConnectionRefused, "dial tcp 93.184.215.14:80: connect: connection refused"},
		"slow.example:80":    {http.StatusGatewayTimeout, proxy.TimedOut, "dial tcp 93.184.215.14:80: i/o timeout"},
		"other.example:80":   {http.StatusBadGateway, "", "dial tcp 93.184.215.14:80: connect: no route to host"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		failure, ok := kinds[in.Host]
		if in.Method != http.MethodConnect || !ok {
			http.Error(out, fmt.Sprintf("%s %s", in.Method, in.Host), http.StatusBadRequest)
			return
		}
		out.Header().Set(proxy.ErrorHeader, failure.text)
		if failure.kind != "" {
			out.Header().Set(proxy.FailureHeader, string(failure.kind))
		}
		out.WriteHeader(failure.status)
	}))
	defer server.Close()
	p := sdktest.Start(t, newPlugin(outside{}), sdktest.Options{
		Config: sdk.Config{Proxy: server.URL}, Settings: map[string]any{"robots": false}, Context: tool.Context{MaxOutput: 64 * tool.KiB},
	})
	for _, c := range []toolCall{
		{in: webFetchArgs{URL: "http://unknown.example/"}, want: "host unknown.example does not exist", code: tool.NotFound},
		{in: webFetchArgs{URL: "http://lookup.example/"}, want: "the DNS lookup of lookup.example failed", code: tool.Unavailable},
		{in: webFetchArgs{URL: "http://closed.example/"}, want: "closed.example refuses connections on this port", code: tool.Unavailable},
		{in: webFetchArgs{URL: "http://slow.example/"}, want: "slow.example took too long to answer", code: tool.Timeout},
		{in: webFetchArgs{URL: "http://other.example/"}, want: "other.example does not send a valid HTTP response", code: tool.Failed},
	} {
		c.tool = "web_fetch"
		c.check(t, p)
	}
}

// TestDenyAddressBehindProxy: the proxy resolves names, so that an address in deny_domains would deny
// nothing.
func TestDenyAddressBehindProxy(t *testing.T) {
	for _, tt := range []struct{ proxy, denied, want string }{
		{"http://127.0.0.1:1", "93.184.215.14", `the address "93.184.215.14" has no effect behind the proxy`},
		{"http://127.0.0.1:1", "2001:db8::1", "add it to deny in the plugin's network block"},
		{"http://127.0.0.1:1", "evil.example", ""},
		{"", "93.184.215.14", ""},
	} {
		w := &web{outside: outside{}, stop: t.Cleanup}
		err := w.configure(t.Context(), sdk.Config{Proxy: tt.proxy}, settings{DenyDomains: []string{"a.example", tt.denied}, UserAgent: "x"})
		wrong, ok := errors.AsType[*sdk.SettingError](err)
		if (tt.want != "") != ok || ok && (!strings.Contains(wrong.Summary, tt.want) || !slices.Equal(wrong.Path, []string{"deny_domains", "1"})) {
			t.Errorf("%q behind %q: %v, want %q", tt.denied, tt.proxy, err, tt.want)
		}
	}
}
