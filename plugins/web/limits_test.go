package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The settings bound the requests that run at once and that start in a minute. A host counts
// once for all its ports.
func TestLimits(t *testing.T) {
	const perHost, total = 2, 5
	var mu sync.Mutex
	running, most := map[string]int{}, map[string]int{}
	full, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		mu.Lock()
		for _, name := range []string{host, "all"} {
			running[name]++
			most[name] = max(most[name], running[name])
		}
		if running["all"] == total {
			close(full)
		}
		mu.Unlock()
		<-release
		mu.Lock()
		running[host]--
		running["all"]--
		mu.Unlock()
		_, _ = fmt.Fprint(out, "done")
	}))
	p := w.start(t, sdktest.Options{Settings: map[string]any{
		"robots": false, "host_concurrency": perHost, "concurrency": total, "host_rate": 100_000,
	}})
	var calls sync.WaitGroup
	for i := range 64 {
		calls.Go(func() {
			address := fmt.Sprintf("https://h%d.example.com%s/%d", i%4, []string{"", ":8443"}[i/4%2], i)
			toolCall{tool: "web_fetch", in: webFetchArgs{URL: address}, want: "done"}.check(t, p)
		})
	}
	<-full
	close(release)
	calls.Wait()
	for name, got := range most {
		if limit := map[bool]int{true: total, false: perHost}[name == "all"]; got > limit {
			t.Errorf("%s: %d requests at once, want at most %d", name, got, limit)
		}
	}
	slow := w.start(t, sdktest.Options{Settings: map[string]any{"robots": false, "host_rate": 1, "timeout": "5s"}})
	for i := range hostBurst {
		toolCall{tool: "web_fetch", in: webFetchArgs{URL: fmt.Sprint("https://slow.example.com/", i)}, want: "done"}.check(t, slow)
	}
	for _, address := range []string{"https://slow.example.com/", "http://slow.example.com/", "https://slow.example.com:8443/"} {
		toolCall{tool: "web_fetch", in: webFetchArgs{URL: address}, want: "too many requests", code: tool.RateLimited}.check(t, slow)
	}
	toolCall{tool: "web_fetch", in: webFetchArgs{URL: "https://other.example.com/"}, want: "done"}.check(t, slow)
}

// A call that waits for a silent host does not block calls to other hosts.
func TestSlowHost(t *testing.T) {
	var reached atomic.Int64
	hanging := make(chan struct{})
	w := newWorld(t, site{
		"slow.example/x": func(_ http.ResponseWriter, r *http.Request) {
			if reached.Add(1) == 2 {
				close(hanging)
			}
			<-r.Context().Done()
		},
		"other.example/x": serve("text/plain", "other"),
	})
	p := w.start(t, sdktest.Options{Settings: map[string]any{
		"robots": false, "host_rate": 100_000, "host_concurrency": 2, "concurrency": 4, "timeout": "2m",
	}})
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() { _ = p.Call(ctx, "web_fetch", webFetchArgs{URL: "https://slow.example/x"}) })
	}
	<-hanging
	toolCall{tool: "web_fetch", in: webFetchArgs{URL: "https://other.example/x"}, want: "other"}.check(t, p)
	if got := reached.Load(); got != 2 {
		t.Errorf("%d requests are at the slow host at once, want 2", got)
	}
	cancel()
	calls.Wait()
}
