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

// The cache gives what is fresh, asks about what is not, and keeps nothing that it
// may not.
func TestCache(t *testing.T) {
	start := time.Now().Truncate(time.Second)
	var clock atomic.Int64
	now := func() time.Time { return start.Add(time.Duration(clock.Load())) }
	date := func(at time.Time) string { return at.UTC().Format(http.TimeFormat) }
	for _, tt := range []struct {
		name   string
		header map[string]string
		status int
		after  time.Duration
		want   string // fresh, revalidated, or "" for a new answer
	}{
		{"max-age, soon", map[string]string{"Cache-Control": "max-age=60"}, 200, 59 * time.Second, "fresh"},
		{"max-age, later", map[string]string{"Cache-Control": "max-age=60"}, 200, 61 * time.Second, ""},
		{"max-age and a tag, later", map[string]string{"Cache-Control": "max-age=60", "ETag": `"1"`}, 200, 61 * time.Second, "revalidated"},
		{"a date of change, later", map[string]string{"Cache-Control": "max-age=60", "Last-Modified": date(start)}, 200, 61 * time.Second, "revalidated"},
		{"no-cache and a tag", map[string]string{"Cache-Control": "no-cache", "ETag": `"1"`}, 200, 0, "revalidated"},
		{"no-store", map[string]string{"Cache-Control": "no-store, max-age=60", "ETag": `"1"`}, 200, 0, ""},
		{"private", map[string]string{"Cache-Control": "private, max-age=60"}, 200, time.Second, "fresh"},
		{"quoted, in capitals", map[string]string{"Cache-Control": `MAX-AGE="60"`}, 200, time.Second, "fresh"},
		{"no number", map[string]string{"Cache-Control": "max-age=soon"}, 200, time.Second, ""},
		{"more than a year", map[string]string{"Cache-Control": "max-age=99999999999999"}, 200, 364 * 24 * time.Hour, "fresh"},
		{"aged on the way", map[string]string{"Cache-Control": "max-age=60", "Age": "50"}, 200, 11 * time.Second, ""},
		{"aged on the way without a word", map[string]string{"Cache-Control": "max-age=60", "Date": date(start.Add(-50 * time.Second))}, 200, 11 * time.Second, ""},
		{"Expires, soon", map[string]string{"Expires": date(start.Add(time.Minute)), "Date": date(start)}, 200, 59 * time.Second, "fresh"},
		{"Expires, later", map[string]string{"Expires": date(start.Add(time.Minute)), "Date": date(start)}, 200, 61 * time.Second, ""},
		{"Expires without a date, soon", map[string]string{"Expires": date(start.Add(time.Minute)), "Date": ""}, 200, 59 * time.Second, "fresh"},
		{"Expires without a date, later", map[string]string{"Expires": date(start.Add(time.Minute)), "Date": ""}, 200, 61 * time.Second, ""},
		{"Expires that is no date", map[string]string{"Expires": "0", "Date": date(start)}, 200, 0, ""},
		{"changed ten minutes ago, soon", map[string]string{"Last-Modified": date(start.Add(-10 * time.Minute)), "Date": date(start)}, 200, 59 * time.Second, "fresh"},
		{"changed ten minutes ago, later", map[string]string{"Last-Modified": date(start.Add(-10 * time.Minute)), "Date": date(start)}, 200, 61 * time.Second, "revalidated"},
		{"changed a year ago, after an hour", map[string]string{"Last-Modified": date(start.Add(-365 * 24 * time.Hour)), "Date": date(start)}, 200, 61 * time.Minute, "revalidated"},
		{"Vary: *", map[string]string{"Cache-Control": "max-age=60", "Vary": "Accept, *"}, 200, time.Second, ""},
		{"nothing said", nil, 200, 0, ""},
		{"a part", map[string]string{"Cache-Control": "max-age=60"}, 206, time.Second, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock.Store(0)
			asked := 0
			w := newWorld(t, site{"/page": func(w http.ResponseWriter, r *http.Request) {
				asked++
				for name, value := range tt.header {
					w.Header().Set(name, value)
				}
				if asked > 1 && (r.Header.Get("If-None-Match") == `"1"` || r.Header.Get("If-Modified-Since") != "" && r.Header.Get("If-Modified-Since") == tt.header["Last-Modified"]) {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				w.Header().Set("Content-Type", "text/plain")
				w.WriteHeader(tt.status)
				_, _ = fmt.Fprintf(w, "answer %d", asked)
			}})
			w.outside.now = now
			p := w.start(t, sdktest.Options{})
			fetch := func() (string, any) {
				got := p.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com/page"})
				if got.Error != nil {
					t.Fatal(got.Error)
				}
				return string(got.Content[1].Data), got.Metadata["cache"]
			}
			if text, how := fetch(); text != "answer 1" || how != nil {
				t.Fatalf("the first time: %q, %v", text, how)
			}
			clock.Store(int64(tt.after))
			text, how := fetch()
			wantText, wantHow, wantAsked := "answer 1", any(tt.want), 2
			switch tt.want {
			case "fresh":
				wantAsked = 1
			case "":
				wantText, wantHow = "answer 2", nil
			}
			if text != wantText || how != wantHow || asked != wantAsked {
				t.Errorf("%q, %v after %d requests; want %q, %v after %d", text, how, asked, wantText, wantHow, wantAsked)
			}
			if tt.want == "revalidated" {
				if _, how := fetch(); how == nil {
					t.Error("what was asked about is forgotten")
				}
			}
		})
	}
}

// What was used longest ago is forgotten first, and redirects are kept like pages.
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
	for _, path := range []string{"/a", "/b", "/a", "/c", "/moved", "/a", "/b", "/moved"} { // /b went for /c
		if got := p.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com" + path}); got.Error != nil {
			t.Fatal(got.Error)
		}
	}
	for path, want := range map[string]int64{"/a": 1, "/b": 2, "/c": 1, "/moved": 1} {
		n, _ := asked.Load(path)
		if got := n.(*atomic.Int64).Load(); got != want {
			t.Errorf("%s was asked for %d times, want %d", path, got, want)
		}
	}
	none := w.start(t, sdktest.Options{Settings: map[string]any{"cache_size": "0B"}})
	for range 2 {
		if got := none.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com/c"}); got.Metadata["cache"] != nil {
			t.Errorf("without a cache: %v", got.Metadata)
		}
	}
}

// What a server says when it confirms an answer counts from then on.
func TestRevalidationUpdates(t *testing.T) {
	asked := 0
	w := newWorld(t, site{"/page": func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") != "" {
			w.Header().Set("Cache-Control", "max-age=600")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Cache-Control", "max-age=0")
		_, _ = fmt.Fprint(w, "answer")
	}})
	// With one place, an answer that is not released is the last one.
	p := w.start(t, sdktest.Options{Settings: map[string]any{"concurrency": 1, "host_concurrency": 1}})
	for i, want := range []any{nil, "revalidated", "fresh"} {
		got := p.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com/page"})
		if got.Error != nil || got.Metadata["cache"] != want {
			t.Errorf("call %d: %v, %v; want %v", i, got.Metadata["cache"], got.Error, want)
		}
	}
	if asked != 2 {
		t.Errorf("the server was asked %d times, want 2", asked)
	}
	toolCall{tool: "web_fetch", in: webFetchArgs{URL: "https://example.com/other"}, want: "404", code: tool.NotFound}.check(t, p)
	toolCall{tool: "http_request", in: httpRequestArgs{URL: "https://example.com/other", Method: "GET"}, want: "404"}.check(t, p)
	toolCall{tool: "http_request", in: httpRequestArgs{URL: "https://example.com/other", Method: "POST"}, want: "404"}.check(t, p)
}

// An answer that a server confirms is kept as the confirmation says.
func TestRevalidationKeeps(t *testing.T) {
	for name, tt := range map[string]struct {
		confirms map[string]string
		want     []any  // how the cache takes part, from the second time on
		tag      string // that the server is asked about the last time
	}{
		"nothing else":    {nil, []any{"revalidated", "revalidated"}, `"1"`},
		"another tag":     {map[string]string{"Cache-Control": "max-age=600", "ETag": `"2"`}, []any{"revalidated", nil}, ""},
		"a weak tag":      {map[string]string{"ETag": `W/"1"`}, []any{"revalidated", "revalidated"}, `W/"1"`},
		"another time":    {map[string]string{"ETag": "", "Last-Modified": "Mon, 02 Jan 2006 15:04:05 GMT"}, []any{"revalidated", nil}, ""},
		"no-store":        {map[string]string{"Cache-Control": "no-store, max-age=600"}, []any{"revalidated", nil}, ""},
		"Vary: *":         {map[string]string{"Cache-Control": "max-age=600", "Vary": "*"}, []any{"revalidated", nil}, ""},
		"an age":          {map[string]string{"Cache-Control": "max-age=600", "Age": "600"}, []any{"revalidated", "revalidated"}, `"1"`},
		"no age any more": {map[string]string{"Cache-Control": "max-age=600"}, []any{"revalidated", "fresh"}, `"1"`},
	} {
		t.Run(name, func(t *testing.T) {
			var tag string
			w := newWorld(t, site{"/page": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", `"1"`)
				if tag = r.Header.Get("If-None-Match"); tag != "" {
					for name, value := range tt.confirms {
						w.Header().Set(name, value)
					}
					w.WriteHeader(http.StatusNotModified)
					return
				}
				w.Header().Set("Cache-Control", "max-age=0")
				w.Header().Set("Age", "3600")
				_, _ = fmt.Fprint(w, "answer")
			}})
			p := w.start(t, sdktest.Options{})
			for i, want := range append([]any{nil}, tt.want...) {
				got := p.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com/page"})
				if got.Error != nil || got.Metadata["cache"] != want || !strings.Contains(got.Text(), "answer") {
					t.Errorf("call %d: %v, %v %q; want %v", i, got.Metadata["cache"], got.Error, got.Text(), want)
				}
			}
			if tag != tt.tag {
				t.Errorf("the last time the server was asked about %s, want %s", tag, tt.tag)
			}
		})
	}
}

// An answer that a server confirms late, without a date, is fresh from then on.
func TestRevalidationWithoutDate(t *testing.T) {
	start := time.Now().Truncate(time.Second)
	var clock atomic.Int64
	now := func() time.Time { return start.Add(time.Duration(clock.Load())) }
	w := newWorld(t, site{"/page": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Expires", now().Add(time.Minute).UTC().Format(http.TimeFormat))
		if r.Header.Get("If-None-Match") != "" {
			w.Header()["Date"] = nil // without it, net/http adds one
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Date", now().UTC().Format(http.TimeFormat))
		_, _ = fmt.Fprint(w, "answer")
	}})
	w.outside.now = now
	p := w.start(t, sdktest.Options{})
	for _, call := range []struct {
		after time.Duration
		want  any
	}{{0, nil}, {time.Hour, "revalidated"}, {time.Hour + 59*time.Second, "fresh"}, {time.Hour + 61*time.Second, "revalidated"}} {
		clock.Store(int64(call.after))
		got := p.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com/page"})
		if got.Error != nil || got.Metadata["cache"] != call.want {
			t.Errorf("after %v: %v, %v; want %v", call.after, got.Metadata["cache"], got.Error, call.want)
		}
	}
}

// What was answered to cookies is for that request only, and who has cookies gets no
// answer that was for somebody without.
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
	for cookies, want := range map[string][]string{
		"call":    {`for "who=ada"`, `for ""`, `for "who=ada"`, `for ""`},
		"session": {`for "who=ada"`, `for "who=ada"`, `for "who=ada"`, `for "who=ada"`},
	} {
		p := w.start(t, sdktest.Options{Settings: map[string]any{"cookies": cookies}})
		for i, path := range []string{"/login", "/page", "/login", "/page"} {
			if got := p.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com" + path}); !strings.Contains(got.Text(), want[i]) {
				t.Errorf("%s, %s: %q, want %q", cookies, path, got.Text(), want[i])
			}
		}
	}
	p := w.start(t, sdktest.Options{Settings: map[string]any{"cookies": "session"}})
	for i, path := range []string{"/page", "/login", "/page"} { // the first one is kept, and fresh
		want := []string{`for ""`, `for "who=ada"`, `for "who=ada"`}[i]
		if got := p.Call(t.Context(), "web_fetch", webFetchArgs{URL: "https://example.com" + path}); !strings.Contains(got.Text(), want) {
			t.Errorf("%s after it was kept without cookies: %q, want %q", path, got.Text(), want)
		}
	}
}

// The rules of a host count for an hour, and for a minute that they cannot be had.
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
	at(0, "does not let", tool.PermissionDenied)
	rules = ""
	at(59*time.Minute, "does not let", tool.PermissionDenied)
	at(61*time.Minute, "page", "")
	status = http.StatusBadGateway
	at(122*time.Minute, "cannot be had", tool.Unavailable)
	status = http.StatusNotFound
	at(122*time.Minute+30*time.Second, "cannot be had", tool.Unavailable)
	at(124*time.Minute, "page", "")
}
