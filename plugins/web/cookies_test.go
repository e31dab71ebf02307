package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
)

// baker sets cookies, and redirects.
func baker(to string, cookies ...*http.Cookie) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, c := range cookies {
			http.SetCookie(w, c)
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}
}

// tellCookies answers with the cookies of the request: how many, and the names and values of
// the first.
func tellCookies(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	var told strings.Builder
	size := 0
	for _, c := range r.Cookies() {
		if size += len(c.Name) + len(c.Value); told.Len() < 40 {
			fmt.Fprintf(&told, "%s=%.5s ", c.Name, c.Value)
		}
	}
	_, _ = fmt.Fprintf(w, "%d cookies of %d bytes: %sall", len(r.Cookies()), size, told.String())
}

// Redirects get the cookies that servers set on the way, each host its own and no more than
// a few.
func TestCookies(t *testing.T) {
	var many, large []*http.Cookie
	for i := range 150 {
		many = append(many, &http.Cookie{Name: fmt.Sprintf("c%03d", i), Value: "x"})
		large = append(large, &http.Cookie{Name: fmt.Sprintf("c%03d", i), Value: strings.Repeat("x", 1000)})
	}
	handler := site{
		"/tell":   tellCookies,
		"/domain": baker("https://b.site.example/tell", &http.Cookie{Name: "n", Value: "all", Domain: "site.example"}),
		"/host":   baker("https://b.site.example/tell", &http.Cookie{Name: "n", Value: "own"}),
		"/other":  baker("https://evil.example/tell", &http.Cookie{Name: "n", Value: "own"}),
		"/forged": baker("https://evil.example/tell", &http.Cookie{Name: "n", Value: "forged", Domain: "evil.example"}),
		"/suffix": baker("https://bank.co.uk/tell", &http.Cookie{Name: "n", Value: "forged", Domain: "co.uk"}),
		"/path":   baker("/tell", &http.Cookie{Name: "n", Value: "x", Path: "/elsewhere"}),
		"/long":   baker("/tell", &http.Cookie{Name: "long", Value: strings.Repeat("x", 4096)}, &http.Cookie{Name: "short", Value: "x"}),
		"/many":   baker("/tell", many...),
		"/large":  baker("/tell", large...),
		"/again":  baker("/many", many[149]),
		"/update": baker("/host2", &http.Cookie{Name: "n", Value: "old"}),
		"/host2":  baker("/tell", &http.Cookie{Name: "n", Value: "new"}),
		"/gone":   baker("/gone2", &http.Cookie{Name: "n", Value: "old"}),
		"/gone2":  baker("/tell", &http.Cookie{Name: "n", MaxAge: -1}),
		"/set": func(w http.ResponseWriter, r *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "n", Value: "kept"})
			tellCookies(w, r)
		},
	}
	p := newWorld(t, handler).start(t, sdktest.Options{Settings: map[string]any{"host_rate": 100_000}})
	for url, want := range map[string]string{
		"https://a.site.example/domain": "1 cookies of 4 bytes: n=all all",
		"https://a.site.example/host":   "0 cookies",
		"https://a.site.example/other":  "0 cookies",
		"https://a.site.example/forged": "0 cookies",
		"https://shop.co.uk/suffix":     "0 cookies",
		"https://example.com/path":      "0 cookies",
		"https://example.com/long":      "1 cookies of 6 bytes: short=x all",
		"https://example.com/many":      "100 cookies of 500 bytes: c000=x c001=x",
		"https://example.com/large":     "16 cookies of 16064 bytes: c000=xxxxx",
		"https://example.com/again":     "100 cookies of 500 bytes: c149=x c000=x",
		"https://example.com/update":    "1 cookies of 4 bytes: n=new all",
		"https://example.com/gone":      "0 cookies",
		"https://example.com/set":       "0 cookies",
	} {
		for range 2 { // a call has none of the last one
			toolCall{tool: "web_fetch", in: webFetchArgs{URL: url}, want: want}.check(t, p)
			toolCall{tool: "http_request", in: httpRequestArgs{URL: url, Method: "GET"}, want: want}.check(t, p)
		}
	}
	// A cookie for https is not sent over http.
	secure := newWorld(t, site{"/tell": tellCookies, "/secure": baker("/tell", &http.Cookie{Name: "n", Value: "x", Secure: true})}).start(t, sdktest.Options{})
	toolCall{tool: "web_fetch", in: webFetchArgs{URL: "https://example.com/secure"}, want: "1 cookies"}.check(t, secure)
	toolCall{tool: "web_fetch", in: webFetchArgs{URL: "http://example.com/secure"}, want: "0 cookies"}.check(t, secure)
}
