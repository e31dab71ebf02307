package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// tunneling starts a proxy on loopback that knows CONNECT only, and counts its tunnels.
func tunneling(t *testing.T) (address string, tunnels *atomic.Int64) {
	t.Helper()
	tunnels = new(atomic.Int64)
	var carrying sync.WaitGroup
	proxy := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		server, err := new(net.Dialer).DialContext(in.Context(), "tcp", in.Host)
		if in.Method != http.MethodConnect || err != nil {
			http.Error(out, "no tunnel", http.StatusBadGateway)
			return
		}
		client, _, err := http.NewResponseController(out).Hijack()
		if err != nil {
			_ = server.Close()
			return
		}
		tunnels.Add(1)
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		carry := func(to, from net.Conn) { // ends when either side has ended
			_, _ = io.Copy(to, from)
			_, _ = to.Close(), from.Close()
		}
		carrying.Go(func() { carry(server, client) })
		carrying.Go(func() { carry(client, server) })
	}))
	t.Cleanup(func() {
		proxy.Close()
		carrying.Wait()
	})
	return proxy.URL, tunnels
}

// TestProxyCertificates: through the host's proxy, git trusts the certificates that the host names, as
// the proxy may end TLS itself. ca_file overrides them, and without a proxy they do not count.
func TestProxyCertificates(t *testing.T) {
	w := newWorkspace(t, started{})
	s := serve(w, "")
	w.repo("r")
	s.repository(w, "r")
	address, tunnels := tunneling(t)
	start := func(proxy string, settings map[string]any) {
		w.start(started{settings: settings, options: func(o *sdktest.Options) { o.Config.Proxy = proxy }})
	}
	fetch := args{"path": "r"}
	start(address, nil)
	contains(t, w.refused("git_fetch", fetch, tool.Unavailable), "certificate")
	t.Setenv("GIT_SSL_CAINFO", s.ca)
	start(address, nil)
	before := tunnels.Load()
	w.must("git_fetch", fetch)
	if tunnels.Load() == before {
		t.Error("git did not use the proxy")
	}
	start("", nil)
	contains(t, w.refused("git_fetch", fetch, tool.Unavailable), "certificate")
	start(address, map[string]any{"ca_file": s.ca})
	t.Setenv("GIT_SSL_CAINFO", "/dev/null")
	w.must("git_fetch", fetch)
}
