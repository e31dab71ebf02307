package main

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// A failure at a host to which a robots.txt redirects is not blamed on the requested host: the
// error says that its robots.txt is unavailable, or names the other host.
func TestRobotsElsewhere(t *testing.T) {
	w := newWorld(t, site{
		"/page":                    serve("text/html", "<p>hello"),
		"one.example/robots.txt":   redirect("https://nowhere.example/robots.txt", http.StatusFound),
		"two.example/robots.txt":   redirect("https://expired.example.com/robots.txt", http.StatusFound),
		"three.example/robots.txt": redirect("https://refused.example/robots.txt", http.StatusFound),
		"four.example/robots.txt":  redirect("https://busy.example/robots.txt", http.StatusFound),
	})
	w.names["nowhere.example"] = [][]string{{}}
	w.names["refused.example"] = [][]string{{"10.0.0.1"}}
	p := w.start(t, sdktest.Options{Settings: map[string]any{"host_rate": 1, "timeout": "5s"}})
	for _, host := range []string{"one.example", "two.example", "three.example"} {
		call := toolCall{
			tool: "web_fetch", in: webFetchArgs{URL: "https://" + host + "/page"}, code: tool.Unavailable,
			want: "cannot read the robots.txt of " + host,
		}
		call.check(t, p)
		before := len(w.dials())
		call.check(t, p)
		if after := len(w.dials()); after != before {
			t.Errorf("%s: that it cannot be had is not kept: %d connections more", host, after-before)
		}
	}
	for i := range hostBurst - 1 { // the first one also fetches robots.txt
		toolCall{tool: "web_fetch", in: webFetchArgs{URL: "https://busy.example/page?" + strconv.Itoa(i)}, want: "hello"}.check(t, p)
	}
	toolCall{tool: "web_fetch", in: webFetchArgs{URL: "https://four.example/page"}, want: "too many requests to busy.example", code: tool.RateLimited}.check(t, p)
}
