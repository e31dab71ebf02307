package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// A page is kept for 15 minutes, or as long as its server allows.
func TestCache(t *testing.T) {
	start := time.Now()
	var clock atomic.Int64
	now := func() time.Time { return start.Add(time.Duration(clock.Load())) }
	for _, tt := range []struct {
		name    string
		control []string // Cache-Control headers
		status  int
		after   time.Duration
		want    bool // the page is reused
		links   bool // its links can be listed
	}{
		{"no header, before", nil, 200, 15*time.Minute - time.Second, true, true},
		{"no header, after", nil, 200, 15 * time.Minute, false, false},
		{"max-age, before", []string{"max-age=60"}, 200, 59 * time.Second, true, true},
		{"max-age, after", []string{"max-age=60"}, 200, 60 * time.Second, false, true},
		{"a long max-age, before", []string{"max-age=99999999999999999999"}, 200, 15*time.Minute - time.Second, true, true},
		{"a long max-age, after", []string{"max-age=99999999999999999999"}, 200, 15 * time.Minute, false, false},
		{"max-age, quoted and in capitals", []string{`Public, MAX-AGE="60"`}, 200, 59 * time.Second, true, true},
		{"max-age that is no number", []string{"max-age=soon"}, 200, 0, false, true},
		{"max-age=0", []string{"max-age=0, private, must-revalidate"}, 200, 0, false, true},
		{"no-cache", []string{"max-age=60", "no-cache"}, 200, 0, false, true},
		{"no-store", []string{"max-age=60", "No-Store"}, 200, 0, false, false},
		{"private", []string{"private"}, 200, time.Second, true, true},
		{"a part", []string{"max-age=60"}, 206, 0, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock.Store(0)
			asked := 0
			w := newWorld(t, site{"/page": func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header()["Cache-Control"] = tt.control
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(tt.status)
				_, _ = fmt.Fprintf(w, "<a href=/%d>answer %d</a>", asked, asked)
			}})
			w.outside.now = now
			p := w.start(t, sdktest.Options{})
			fetch := func() (string, bool) {
				got := p.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com/page"})
				if got.Error != nil {
					t.Fatal(got.Error)
				}
				return string(got.Content[1].Data), got.Metadata["cached"] == true
			}
			if text, cached := fetch(); !contains(text, "answer 1") || cached {
				t.Fatalf("the first call returns %q, cached %v", text, cached)
			}
			clock.Store(int64(tt.after))
			links := p.Call(t.Context(), "web_links", webLinksArgs{URL: "https://example.com/page", Limit: 10})
			if got := links.Error == nil && contains(links.Text(), "https://example.com/1\n"); got != tt.links {
				t.Errorf("web_links lists the links: %v, want %v: %v", got, tt.links, links.Error)
			}
			if text, cached := fetch(); cached != tt.want || contains(text, "answer 1") != tt.want {
				t.Errorf("the second call returns %q, cached %v, want %v", text, cached, tt.want)
			}
		})
	}
}

// A page that can no longer be kept replaces the kept one.
func TestCacheDropsOldPages(t *testing.T) {
	asked := 0
	w := newWorld(t, site{"/page": func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked > 1 {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		serve("text/html", "<a href=/x>X</a>")(w, r)
	}})
	// There is one slot, so that a response that is not released blocks the next one.
	p := w.start(t, sdktest.Options{Settings: map[string]any{"concurrency": 1, "host_concurrency": 1}})
	fetch := toolCall{tool: "web_fetch", in: webFetchArgs{URL: "https://example.com/page"}}
	links := toolCall{tool: "web_links", in: webLinksArgs{URL: "https://example.com/page", Limit: 10}}
	fetch.check(t, p)
	links.want = "https://example.com/x"
	links.check(t, p)
	fetch.want, fetch.code = "404", tool.NotFound
	fetch.check(t, p)
	links.want, links.code = "not in the cache", tool.NotFound
	links.check(t, p)
	toolCall{tool: "http_request", in: httpRequestArgs{URL: "https://example.com/other", Method: "GET"}, want: "404"}.check(t, p)
	toolCall{tool: "http_request", in: httpRequestArgs{URL: "https://example.com/other", Method: "POST"}, want: "404"}.check(t, p)
}

// A user does not get pages that were kept for another one.
func TestCacheIsPerUser(t *testing.T) {
	var asked atomic.Int64
	w := newWorld(t, site{"/page": func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "answer ", asked.Add(1)) }})
	p := w.start(t, sdktest.Options{})
	for _, call := range []struct{ user, want string }{{"ada", "answer 1"}, {"eve", "answer 2"}, {"ada", "answer 1"}, {"eve", "answer 2"}, {"", "answer 3"}} {
		got := p.Run(t.Context(), tool.Call{
			ID: "tc_1", Tool: "web_fetch", Arguments: []byte(`{"url":"https://example.com/page"}`), Context: tool.Context{User: call.user},
		}, tool.Sink{})
		if got.Error != nil || !contains(got.Text(), call.want) {
			t.Errorf("%s gets %q, %v; want %q", call.user, got.Text(), got.Error, call.want)
		}
	}
}

// The least recently used page is dropped first. A page is kept under the URL that was
// asked for, also after a redirect.
func TestCacheIsBounded(t *testing.T) {
	var asked sync.Map
	page := func(w http.ResponseWriter, r *http.Request) {
		n, _ := asked.LoadOrStore(r.URL.Path, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		w.Header().Set("Cache-Control", "max-age=600")
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/a", http.StatusMovedPermanently)
			return
		}
		_, _ = w.Write(make([]byte, 6<<10))
	}
	w := newWorld(t, site{"/a": page, "/b": page, "/c": page, "/moved": page})
	p := w.start(t, sdktest.Options{Settings: map[string]any{"cache_size": "20KiB"}})
	for _, path := range []string{"/a", "/b", "/a", "/c", "/b", "/moved", "/b", "/moved"} { // /c replaces /b, /b replaces /a, and /moved fetches /a
		if got := p.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com" + path}); got.Error != nil {
			t.Fatal(got.Error)
		}
	}
	for path, want := range map[string]int64{"/a": 2, "/b": 2, "/c": 1, "/moved": 1} {
		n, _ := asked.Load(path)
		if got := n.(*atomic.Int64).Load(); got != want {
			t.Errorf("%s was asked for %d times, want %d", path, got, want)
		}
	}
	none := w.start(t, sdktest.Options{Settings: map[string]any{"cache_size": "0B"}})
	for range 2 {
		if got := none.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com/c"}); got.Metadata["cached"] != nil {
			t.Errorf("without a cache: %v", got.Metadata)
		}
	}
}

// Cookies last for one call: neither the next call nor the cached pages have them.
func TestCacheAndCookies(t *testing.T) {
	w := newWorld(t, site{
		"/page": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=600")
			w.Header().Set("Content-Type", "text/plain")
			_, _ = fmt.Fprintf(w, "for %q", r.Header.Get("Cookie"))
		},
		"/login": func(w http.ResponseWriter, r *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "who", Value: "ada"})
			http.Redirect(w, r, "/page", http.StatusFound)
		},
	})
	p := w.start(t, sdktest.Options{})
	for i, path := range []string{"/login", "/page", "/login", "/page"} {
		want := []string{`for "who=ada"`, `for ""`}[i%2]
		if got := p.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com" + path}); !strings.Contains(got.Text(), want) {
			t.Errorf("%s: %q, want %q", path, got.Text(), want)
		}
	}
}

// The rules of a host are cached for an hour; a failure to read them, for a minute.
func TestRobotsExpire(t *testing.T) {
	start := time.Now()
	var clock atomic.Int64
	status := http.StatusOK
	rules := "User-agent: *\nDisallow: /page\n"
	w := newWorld(t, site{
		"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, rules)
		},
		"/page": serve("text/plain", "page"),
	})
	w.outside.now = func() time.Time { return start.Add(time.Duration(clock.Load())) }
	p := w.start(t, sdktest.Options{})
	at := func(after time.Duration, want string, code tool.Code) {
		t.Helper()
		clock.Store(int64(after))
		toolCall{tool: "web_fetch", in: webFetchArgs{URL: "https://example.com/page"}, want: want, code: code}.check(t, p)
	}
	at(0, "does not allow", tool.PermissionDenied)
	rules = ""
	at(59*time.Minute, "does not allow", tool.PermissionDenied)
	at(61*time.Minute, "page", "")
	status = http.StatusBadGateway
	at(122*time.Minute, "cannot read the robots.txt", tool.Unavailable)
	status = http.StatusNotFound
	at(122*time.Minute+30*time.Second, "cannot read the robots.txt", tool.Unavailable)
	at(124*time.Minute, "page", "")
}
