//go:build !race

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// full answers with a body of almost 5 MiB that is three times as large in UTF-8. It holds back
// the end until the given number of answers are open.
type full struct {
	body []byte
	at   int

	mu   sync.Mutex // guards what follows
	here int
	all  chan struct{} // closed when they have arrived
}

func newFull(at int) *full {
	return &full{body: bytes.Repeat([]byte("\x80"), 4_900_000), at: at, all: make(chan struct{})}
}

// again holds back answers again, while none are open.
func (f *full) again() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.here, f.all = 0, make(chan struct{})
}

// ServeHTTP implements [http.Handler].
func (f *full) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=windows-1252")
	if r.URL.Query().Has("kept") {
		_, _ = w.Write(f.body)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(f.body[1:])
	_ = http.NewResponseController(w).Flush()
	f.mu.Lock()
	if f.here++; f.here == f.at {
		close(f.all)
	}
	all := f.all
	f.mu.Unlock()
	select {
	case <-all:
	case <-r.Context().Done():
	}
	_, _ = w.Write(f.body[:1])
}

// start runs the plugin as a process with a host's default memory, and returns the servers that
// it may read.
func (f *full) start(t *testing.T, addresses ...string) (*sdktest.Plugin, []string) {
	t.Helper()
	var ports []int
	var urls []string
	for _, address := range addresses {
		server := httptest.NewUnstartedServer(f)
		if err := server.Listener.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if server.Listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", address+":0"); err != nil {
			t.Fatal(err)
		}
		server.Start()
		t.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
		})
		ports = append(ports, int(netip.MustParseAddrPort(server.Listener.Addr().String()).Port()))
		urls = append(urls, server.URL)
	}
	return sdktest.StartBinary(t, os.Args[0], sdktest.Options{
		Env: []string{"WEB_AS_PLUGIN=1"}, Limits: sdktest.Limits{Memory: 512 * tool.MiB},
		Settings: map[string]any{
			"ports": ports, "allow_private": []string{"127.0.0.0/8"}, "robots": false, "host_rate": 100_000,
			"host_concurrency": 64, "concurrency": f.at, "timeout": "2m",
		},
	}), urls
}

// sessions makes a call in each of many sessions at the same time, with one of the
// arguments in turn, and returns the errors.
func sessions(t *testing.T, p *sdktest.Plugin, n int, name string, arguments ...string) []*tool.Error {
	t.Helper()
	failed := make([]*tool.Error, n)
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			failed[i] = p.Run(t.Context(), tool.Call{
				ID: fmt.Sprint("tc_", i), Tool: name, Arguments: fmt.Appendf(nil, arguments[i%len(arguments)], i), Context: tool.Context{Session: fmt.Sprint("session ", i)},
			}, tool.Sink{}).Error
		})
	}
	calls.Wait()
	return failed
}

// However many sessions get answers of the largest size at once, the plugin's process
// keeps to the memory that a host gives it by default. Without the bound on answers at
// the same time it does not.
func TestMemoryOfManySessions(t *testing.T) {
	t.Run("bounded", func(t *testing.T) {
		f := newFull(16)
		p, urls := f.start(t, "127.0.0.1")
		url := urls[0]
		seed := soak.Seed(t)
		for i, call := range []struct{ tool, arguments string }{
			{"web_fetch", `{"url":"` + url + `/?%d","format":"raw","max_length":100}`},
			{"http_request", `{"url":"` + url + `/?%d","method":"GET"}`},
			{"web_fetch", `{"url":"` + url + `/?kept=%d","format":"raw","max_length":100}`},
			{"web_links", `{"url":"` + url + `/?kept=%d","limit":10}`},
		} {
			if !soak.Today(seed, min(i, 2), 3) { // the last reads what the one before it has kept
				continue
			}
			f.again()
			done := 0
			for i, err := range sessions(t, p, 24, call.tool, call.arguments) {
				if err == nil {
					done++
				}
				// The cache does not keep all pages: they exceed its size.
				if err != nil && (call.tool != "web_links" || err.Code != tool.NotFound) {
					t.Fatalf("%s in session %d: %v\n%.2000s", call.tool, i, err, p.Stderr())
				}
			}
			if done == 0 {
				t.Errorf("%s: no session has its answer", call.tool)
			}
		}
	})
	t.Run("control", func(t *testing.T) {
		// The bodies alone are larger than the memory of the process. One host has 64 at the
		// same time at most.
		f := newFull(128)
		p, urls := f.start(t, "127.0.0.1", "127.0.0.2")
		crashed := 0
		for _, err := range sessions(t, p, f.at, "web_fetch",
			`{"url":"`+urls[0]+`/?%d","format":"raw","max_length":100}`, `{"url":"`+urls[1]+`/?%d","format":"raw","max_length":100}`) {
			if err != nil && err.Code == tool.PluginCrashed {
				crashed++
			}
		}
		if crashed == 0 {
			t.Error("128 answers at the same time fit, so that the bound proves nothing")
		}
	})
}

// For any number of pages, two are read at the same time: each may take all the memory of its
// process.
func TestReadersAreBounded(t *testing.T) {
	w := newWorld(t, site{"/brackets": serve("text/html", "<p>"+strings.Repeat("[", 200_000))})
	p := w.start(t, sdktest.Options{Settings: map[string]any{"robots": false, "host_rate": 100_000}})
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	var left atomic.Int64
	left.Store(6)
	for range 6 {
		calls.Go(func() {
			defer left.Add(-1)
			if got := p.Call(ctx, "web_fetch", webFetchArgs{URL: "https://example.com/brackets"}); got.Error == nil {
				t.Error("the page is read in the end, so that nobody waits for it")
			}
		})
	}
	most, looks := 0, 0
	for left.Load() > 0 && looks < 200 { // from when there is one
		if most = max(most, len(readers(t))); most > 0 {
			looks++
		}
	}
	cancel()
	calls.Wait()
	if most < 1 || most > maxApart {
		t.Errorf("%d pages are read at the same time, want 1 to %d", most, maxApart)
	}
}
