package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// Requests that a web page could make a browser send.
func TestRequestsOfWebPages(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	port := h.URL[strings.LastIndex(h.URL, ":"):]
	for _, tt := range []struct {
		name, method, path, header string
		status                     int
	}{
		{"the host's name", "GET", "/v1/tools", "Host: localhost" + port, http.StatusOK},
		{"its address", "GET", "/v1/tools", "Host: 127.0.0.1", http.StatusOK},
		{"another address of loopback", "GET", "/v1/tools", "Host: 127.9.9.9" + port, http.StatusOK},
		{"its address of version 6", "GET", "/v1/tools", "Host: [::1]" + port, http.StatusOK},
		{"that without a port", "GET", "/v1/tools", "Host: [::1]", http.StatusOK},
		{"a foreign name that leads here", "GET", "/v1/tools", "Host: evil.example" + port, http.StatusForbidden},
		{"a name that only begins so", "GET", "/v1/tools", "Host: localhost.evil.example", http.StatusForbidden},
		{"an outside address", "GET", "/v1/tools", "Host: 192.0.2.1", http.StatusForbidden},
		{"health under a foreign name", "GET", "/healthz", "Host: evil.example", http.StatusForbidden},
		{"a foreign origin", "POST", "/v1/calls", "Origin: http://evil.example", http.StatusForbidden},
		{"another port's origin", "POST", "/v1/calls", "Origin: http://127.0.0.1:1", http.StatusForbidden},
		{"a cross-site request", "POST", "/v1/calls", "Sec-Fetch-Site: cross-site", http.StatusForbidden},
		{"its own origin", "POST", "/v1/calls", "Origin: " + h.URL, http.StatusOK},
		{"no browser", "POST", "/v1/calls", "X-Any: x", http.StatusOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := ""
			if tt.method == "POST" {
				body = `{"tool":"look"}`
			}
			got := ask(t, h, h.Agent, tt.method, tt.path, body, tt.header)
			if got.status != tt.status {
				t.Errorf("status = %d, want %d: %s", got.status, tt.status, got.body)
			}
			if tt.status == http.StatusForbidden {
				got.problem(t, tt.status, "")
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	other := "A"
	if h.Agent[20] == 'A' {
		other = "B"
	}
	old, sum := auth.NewToken()
	expired := auth.Token{Name: "old", SHA256: sum, User: httpapitest.Ann, Roles: auth.Agent, Expires: time.Unix(1e9, 0)}
	if err := h.Tokens.Replace(append(h.TokenList, expired)); err != nil {
		t.Fatal(err)
	}
	get := func(header string) answer { return ask(t, h, "", "GET", "/v1/tools", "", header) }
	for _, tt := range []struct{ name, header, says string }{
		{"none", "X-Any: x", "no token"},
		{"another scheme", "Authorization: Basic YTpi", "form Bearer"},
		{"no secret", "Authorization: Bearer", "begins with th_"},
		{"a typing error", "Authorization: Bearer " + h.Agent[:20] + other + h.Agent[21:], "mistyped"},
		{"a secret of one's own", "Authorization: Bearer a-secret-that-is-none-of-this-host", "the token is not valid here"},
		{"one that has expired", "Authorization: Bearer " + old, `the token \"old\" expired at 2001-09-09T01:46:40Z`},
		{"half of it", "Authorization: Bearer " + h.Agent[:20], "52 characters"},
	} {
		got := get(tt.header)
		got.problem(t, http.StatusUnauthorized, tt.says)
		if !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: WWW-Authenticate = %q", tt.name, got.header.Get("WWW-Authenticate"))
		}
	}
	if got := get("Authorization: bearer  " + h.Agent); got.status != http.StatusOK {
		t.Errorf("a lower case scheme = %d", got.status)
	}
	got := ask(t, h, h.Agent, "GET", "/v1/tools", "", "Authorization: Bearer "+h.Admin)
	got.problem(t, http.StatusUnauthorized, "")

	// A client that keeps retrying is told to wait, and does not disturb others.
	wrong, _ := auth.NewToken()
	last := 0
	for range 11 {
		got = ask(t, h, wrong, "GET", "/v1/tools", "")
		last = got.status
	}
	if last != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("the eleventh wrong token = %d, Retry-After %q; want 429", last, got.header.Get("Retry-After"))
	}
	if got := ask(t, h, h.Agent, "GET", "/v1/tools", ""); got.status != http.StatusOK {
		t.Errorf("a right token meanwhile = %d", got.status)
	}
}
