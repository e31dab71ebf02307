package egress_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/sdk/tool"
)

// newInjecting returns a world whose proxy adds a secret to the requests for example.com, and what
// its client trusts.
func newInjecting(t *testing.T, trusted bool, edit ...func(*egress.Options)) (*world, *x509.CertPool) {
	t.Helper()
	authority, err := egress.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	r := rules(t, "example.com", "other.example")
	r.Inject = []egress.Credential{{Host: destinations(t, "example.com")[0], Header: "Authorization", Prefix: "Bearer ", Value: "hunter2"}}
	roots := x509.NewCertPool()
	w := newWorld(t, r, append(edit, func(o *egress.Options) { o.Authority, o.Roots = authority, roots })...)
	if trusted {
		roots.AddCert(w.encrypted.Certificate())
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.PEM())
	return w, pool
}

// TestInjectOnlyThere: the secret goes to the verified server of its host, in requests that do not
// send it back, and nowhere else.
func TestInjectOnlyThere(t *testing.T) {
	const ask = "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"
	for _, tt := range []struct {
		name, to, server string // server: in the TLS handshake; "" for plain HTTP
		say              string
		untrusted        bool // the real server's certificate is not to be verified
		secrets          int  // requests that arrive with the secret
		arrive           int  // requests that arrive
	}{
		{"control", "example.com:443", "example.com", ask, false, 1, 1},
		{"the client's own header", "example.com:443", "example.com", strings.Replace(ask, "\r\n\r\n", "\r\nauthorization: mine\r\nAUTHORIZATION: mine\r\n\r\n", 1), false, 1, 1},
		{"a second request", "example.com:443", "example.com", strings.Replace(ask, "Connection: close\r\n", "", 1) + ask, false, 2, 2},
		{"a second request for another host", "example.com:443", "example.com", strings.Replace(ask, "Connection: close\r\n", "", 1) + strings.Replace(ask, "example.com", "other.example", 1), false, 1, 1},
		{"a request for another host", "example.com:443", "example.com", strings.Replace(ask, "example.com", "other.example", 1), false, 0, 0},
		{"another host", "other.example:443", "other.example", strings.Replace(ask, "example.com", "other.example", 1), false, 0, 1},
		{"TRACE, which sends it back", "example.com:443", "example.com", strings.Replace(ask, "GET", "TRACE", 1), false, 0, 0},
		{"plain HTTP", "example.com:80", "", ask, false, 0, 1},
		{"plain HTTP on the port of TLS", "example.com:443", "", ask, false, 0, 0},
		{"another server in the handshake", "example.com:443", "other.example", ask, false, 0, 0},
		{"no server in the handshake", "example.com:443", "-", ask, false, 0, 0},
		{"a server that is not the host", "example.com:443", "example.com", ask, true, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, pool := newInjecting(t, !tt.untrusted)
			conn, refused := w.tunnel(tt.to)
			if refused != "" {
				t.Fatal(refused)
			}
			var answer []byte
			if tt.server == "" {
				_, _ = io.WriteString(conn, tt.say)
				answer, _ = io.ReadAll(conn)
			} else {
				secure := tls.Client(conn, &tls.Config{ServerName: strings.Trim(tt.server, "-"), RootCAs: pool, InsecureSkipVerify: tt.to != "example.com:443" || tt.server == "-"})
				if err := secure.Handshake(); err == nil {
					_, _ = io.WriteString(secure, tt.say)
					answer, _ = io.ReadAll(secure)
				}
			}
			_ = conn.Close()
			secrets := 0
			requests, trapped := w.arrived()
			for _, r := range requests {
				switch got := strings.Join(r.header["Authorization"], ","); {
				case got == "Bearer hunter2":
					secrets++
				case strings.Contains(got, "hunter2") || got != "" && got != "mine,mine":
					t.Errorf("the server got %q", got)
				}
			}
			if secrets != tt.secrets || len(requests) != tt.arrive || len(trapped) > 0 {
				t.Errorf("%d of %d requests arrived with the secret, want %d of %d", secrets, len(requests), tt.secrets, tt.arrive)
			}
			if strings.Contains(string(answer), "hunter2") {
				t.Errorf("the client reads the secret: %q", answer)
			}
			if c := w.next(); strings.Contains(c.Error+c.Rule, "hunter2") {
				t.Errorf("the record of the connection has the secret: %+v", c)
			}
		})
	}
}

// TestInjectOfUnknownUser: a user's secret is added for a call that is known only, and an error about
// it, or one that no header can have, sends nothing.
func TestInjectOfUnknownUser(t *testing.T) {
	for _, tt := range []struct {
		user, value string
		err         *tool.Error
		want        int
	}{
		{"ann", "ann's key", nil, http.StatusOK},
		{"ann", " ann's key\r\n", nil, http.StatusOK},
		{"ann", "two\nlines", nil, http.StatusForbidden},
		{"", "'s key", nil, http.StatusForbidden},
		{"ann", "", tool.Errorf(tool.NotFound, "ann has not set the secret"), http.StatusForbidden},
	} {
		w, pool := newInjecting(t, true, func(o *egress.Options) {
			o.Rules.Inject[0].PerUser, o.Rules.Inject[0].Secret, o.Rules.Inject[0].Value = true, "key", ""
			o.SecretOf = func(context.Context, string, string) (string, *tool.Error) { return tt.value, tt.err }
		})
		of := func([]byte) egress.Cause { return egress.Cause{User: tt.user} }
		w.cause.Store(&of)
		client := w.client()
		client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
		response, err := client.Get("https://example.com/")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		requests, _ := w.arrived()
		if response.StatusCode != tt.want || (len(requests) == 1) != (tt.want == http.StatusOK) {
			t.Errorf("%q of %q, %v: the answer is %s, and %d requests arrived", tt.value, tt.user, tt.err, response.Status, len(requests))
		}
		if tt.value == "two\nlines" && !strings.Contains(response.Status, "the secret key contains characters that no header can have") {
			t.Errorf("the answer is %s, want the reason", response.Status)
		}
		if len(requests) == 1 && requests[0].header.Get("Authorization") != "Bearer ann's key" {
			t.Errorf("the server got %q", requests[0].header["Authorization"])
		}
	}
}
