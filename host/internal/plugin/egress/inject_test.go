package egress_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestInject: requests for a host get its secret, which the client never has, also one of its user;
// other hosts get none, and a client cannot send the request elsewhere.
func TestInject(t *testing.T) {
	var got sync.Map // header by host
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Host, r.Header.Get("Authorization")+"/"+r.Header.Get("X-Key"))
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()
	authority, err := egress.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	// The server of the test has a certificate for example.com.
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	rules := &egress.Rules{Allow: destinations(t, "example.com", "www.example.com"), Inject: []egress.Credential{
		{Host: destinations(t, "example.com")[0], Header: "Authorization", Prefix: "Bearer ", Value: "of-the-host\n"},
		{Host: destinations(t, "example.com")[0], Header: "X-Key", Secret: "key", PerUser: true},
	}}
	client := startProxy(t, egress.Options{
		Rules: rules, Authority: authority, Roots: roots,
		SecretOf: func(_ context.Context, user, name string) (string, *tool.Error) {
			return " of-" + user + "-" + name + "\r\n", nil
		},
		CauseOf: func([]byte) egress.Cause { return egress.Cause{User: "ada"} },
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
		},
	})
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority.PEM())
	trusted.AddCert(server.Certificate())
	client.TLSClientConfig = &tls.Config{RootCAs: trusted}
	for _, tt := range []struct{ name, host, header, want string }{
		{"the host", "example.com", "", "Bearer of-the-host/of-ada-key"},
		{"the client's own header is replaced", "example.com", "Bearer placeholder", "Bearer of-the-host/of-ada-key"},
		{"another host", "www.example.com", "", "/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+tt.host+"/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if tt.header != "" {
				request.Header.Set("Authorization", tt.header)
			}
			answer, err := client.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if value, _ := got.Load(tt.host); string(body) != "hello" || err != nil || value != tt.want {
				t.Errorf("the server got %v and the client %q, %v; want %q and hello", value, body, err, tt.want)
			}
		})
	}
	t.Run("a request for another host", func(t *testing.T) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "www.example.com"
		answer, err := client.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden || !strings.Contains(answer.Status, "www.example.com") {
			t.Errorf("the answer is %q, want 403 with the host", answer.Status)
		}
	})
}

func destinations(t *testing.T, all ...string) (parsed []egress.Destination) {
	t.Helper()
	for _, text := range all {
		d, err := egress.ParseDestination(text)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, d)
	}
	return parsed
}

// startProxy starts a proxy on loopback and returns a client of it.
func startProxy(t *testing.T, opts egress.Options) *http.Transport {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := &url.URL{Scheme: "http", Host: listener.Addr().String()}
	opts.Listener = listener
	opts.Opened, opts.Closed = func(egress.Connection) {}, func(egress.Connection) {}
	proxy := egress.New(t.Context(), opts)
	t.Cleanup(proxy.Close)
	transport := &http.Transport{Proxy: http.ProxyURL(at)}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}
