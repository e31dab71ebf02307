package egress_test

import (
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
)

// TestSecretStaysWithItsHost: a secret that the proxy adds to requests for one host goes to no other,
// where the proxy sees the plain text, wherever in the request it is and however its body arrives.
func TestSecretStaysWithItsHost(t *testing.T) {
	const secret = "s3cret-of-example"
	var mu sync.Mutex
	got := map[string]string{} // all that came, by host
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what came of a body that was cut off counts
		mu.Lock()
		defer mu.Unlock()
		got[r.Host] += r.URL.String() + r.Header.Get("X-A") + r.Header.Get("Authorization") + string(body) + "\n"
	}))
	closed := make(chan egress.Connection, 100)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := egress.New(t.Context(), egress.Options{
		Listener: listener, CauseOf: func([]byte) egress.Cause { return egress.Cause{} },
		Rules: &egress.Rules{Allow: destinations(t, "example.com", "other.example"), Inject: []egress.Credential{
			{Host: destinations(t, "example.com")[0], Header: "Authorization", Secret: "example", Value: secret + "\n"},
		}},
		Opened: func(egress.Connection) {},
		Closed: func(c egress.Connection) { closed <- c },
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
		},
	})
	defer proxy.Close()
	client := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: listener.Addr().String()}), DisableKeepAlives: true}
	send := func(t *testing.T, address, header, value string, body io.Reader) egress.Connection {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, body)
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			request.Header.Set(header, value)
		}
		if answer, err := client.RoundTrip(request); err == nil { // the proxy may end the connection in the middle of a body
			_ = answer.Body.Close()
		}
		return <-closed // the proxy tells of each
	}
	filler := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name, url, header, value string
		body                     func() io.Reader
	}{
		{name: "in the path", url: "http://other.example/" + secret},
		{name: "in the query, encoded", url: "http://other.example/?k=" + strings.ReplaceAll(secret, "-", "%2d")},
		{name: "in a header", url: "http://other.example/", header: "X-A", value: "token " + secret},
		{name: "in basic credentials", url: "http://other.example/", header: "Authorization", value: "Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+secret))},
		{name: "in a body", url: "http://other.example/", body: func() io.Reader { return strings.NewReader(filler + secret + filler) }},
		{name: "in a body, byte by byte", url: "http://other.example/", body: func() io.Reader { return iotest.OneByteReader(strings.NewReader("a" + secret + "b")) }},
		{name: "at the end of a body", url: "http://other.example/", body: func() io.Reader { return strings.NewReader(filler + secret) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := io.Reader(http.NoBody)
			if tt.body != nil {
				body = tt.body()
			}
			row := send(t, tt.url, tt.header, tt.value, body)
			if !row.Refused || !strings.Contains(row.Error, "the secret example, which is for another host") {
				t.Errorf("the row is %+v", row)
			}
		})
	}
	send(t, "http://example.com/", "X-A", secret, strings.NewReader(filler+secret))
	send(t, "http://other.example/", "X-A", secret[1:], strings.NewReader(filler+secret[1:]))
	server.Close() // waits for the requests
	if text := got["example.com"]; strings.Count(text, secret) != 2 {
		t.Errorf("control: its own host has the secret %d times", strings.Count(text, secret))
	}
	switch text := got["other.example"]; {
	case strings.Contains(text, secret):
		t.Error("the other host has the secret")
	case strings.Count(text, secret[1:]) != 2 || !strings.Contains(text, filler+secret[1:]+"\n"):
		t.Error("control: a part of the secret does not arrive")
	}
}
