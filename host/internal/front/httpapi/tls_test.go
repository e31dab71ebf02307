package httpapi_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/certificate"
	"github.com/toolhost/toolhost/host/internal/auth/certificate/certtest"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// secured returns a certificate for names and a transport that trusts it. The transport speaks
// HTTP/2 if it may.
func secured(t *testing.T, names ...string) (*certificate.Reloader, *http.Transport) {
	t.Helper()
	authority := certtest.New(t)
	r, err := certificate.NewReloader(authority.Write(t, t.TempDir(), time.Now().Add(90*24*time.Hour), names...), nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return r, transport
}

// TestTLS: the interface is the same over TLS, with HTTP/1.1 and HTTP/2: a credential, its
// account, MCP, a stream.
func TestTLS(t *testing.T) {
	cert, transport := secured(t)
	h := httpapitest.Start(t, httpapitest.Options{TLS: cert.TLS(), MCP: true})
	trust := transport.TLSClientConfig
	for _, version := range []int{1, 2} {
		transport := &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: version == 2}
		t.Cleanup(transport.CloseIdleConnections)
		r := newRequest(t, h.URL, h.Agent, "POST", "/v1/calls", `{"tool":"look","arguments":{"text":"x"}}`)
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || response.ProtoMajor != version || !strings.Contains(string(text), `look {\"text\":\"x\"}`) {
			t.Errorf("a call over HTTP/%d = %s over %s: %s, %v", version, response.Status, response.Proto, text, err)
		}
		if got := send(t, transport, newRequest(t, h.URL, "", "GET", "/v1/tools", "")); got.status != http.StatusUnauthorized {
			t.Errorf("a request without a token over HTTP/%d = %d", version, got.status)
		}
		if got := send(t, transport, newRequest(t, h.URL, h.Key, "GET", "/v1/approvals", "")); got.status != http.StatusUnauthorized {
			t.Errorf("a request with the approver's key over HTTP/%d = %d", version, got.status)
		}
		const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
		if got := send(t, transport, newRequest(t, h.URL, h.Agent, "POST", "/mcp", hello, "Accept: application/json, text/event-stream")); got.status != http.StatusOK || !strings.Contains(string(got.body), `"serverInfo"`) {
			t.Errorf("MCP over HTTP/%d = %d %s", version, got.status, got.body)
		}
		response, err = transport.RoundTrip(newRequest(t, h.URL, h.Agent, "GET", "/v1/events", ""))
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(response.Body).ReadString('\n')
		_ = response.Body.Close()
		if err != nil || !strings.Contains(line, ":") {
			t.Errorf("the stream over HTTP/%d = %q, %v", version, line, err)
		}
	}
}

// TestPlainRequestToTLS: the answer tells what is wrong.
func TestPlainRequestToTLS(t *testing.T) {
	cert, _ := secured(t)
	h := httpapitest.Start(t, httpapitest.Options{TLS: cert.TLS()})
	got := send(t, http.DefaultTransport, newRequest(t, strings.Replace(h.URL, "https", "http", 1), h.Agent, "GET", "/v1/tools", ""))
	if got.status != http.StatusBadRequest || !strings.Contains(string(got.body), "HTTP request to an HTTPS server") {
		t.Errorf("plain HTTP = %d %s", got.status, got.body)
	}
}

// TestHostNames: a name of the certificate or of the configuration is the host's, another one is a
// web page's.
func TestHostNames(t *testing.T) {
	cert, transport := secured(t, "127.0.0.1", "tools.example.com", "*.tools.example.com")
	h := httpapitest.Start(t, httpapitest.Options{TLS: cert.TLS(), IsName: func(name string) bool {
		return cert.Certificate().Covers(name) || name == "proxy.example.com" || name == "192.0.2.9"
	}})
	for host, want := range map[string]int{
		"tools.example.com": http.StatusOK, "Tools.Example.COM:443": http.StatusOK, "a.tools.example.com": http.StatusOK,
		"proxy.example.com": http.StatusOK, "192.0.2.9:7780": http.StatusOK, "[::ffff:192.0.2.9]": http.StatusOK, "127.0.0.1": http.StatusOK, "localhost": http.StatusOK,
		"evil.example": http.StatusForbidden, "tools.example.com.evil.example": http.StatusForbidden, "192.0.2.1": http.StatusForbidden,
		"b.a.tools.example.com": http.StatusForbidden, "[fe80::1]": http.StatusForbidden,
	} {
		if got := send(t, transport, newRequest(t, h.URL, h.Agent, "GET", "/v1/tools", "", "Host: "+host)); got.status != want {
			t.Errorf("Host: %s = %d, want %d: %s", host, got.status, want, got.body)
		}
	}
}

// elsewhere is a listener whose connections come from another machine and reach this one at
// an outside address.
type elsewhere struct{ net.Listener }

func (l elsewhere) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return foreignConn{conn}, err
}

type foreignConn struct{ net.Conn }

func (c foreignConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: c.Conn.RemoteAddr().(*net.TCPAddr).Port}
}

func (c foreignConn) LocalAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7780}
}

func (c foreignConn) SyscallConn() (syscall.RawConn, error) {
	return c.Conn.(syscall.Conn).SyscallConn()
}

// TestTokensFromElsewhere: a token for an account of this machine, such as the host's own, is not
// valid from another machine, with TLS or without. One for any account is.
func TestTokensFromElsewhere(t *testing.T) {
	cert, transport := secured(t)
	secret, sum := auth.NewToken()
	remote := auth.Token{Name: "remote", SHA256: sum, User: httpapitest.Ann, Roles: auth.Agent, Account: auth.Account{Name: auth.AnyAccount}}
	for _, opts := range []httpapitest.Options{{TLS: cert.TLS()}, {}} {
		here := httpapitest.Start(t, opts)
		if got := send(t, transport, newRequest(t, here.URL, here.Agent, "GET", "/v1/tools", "")); got.status != http.StatusOK {
			t.Errorf("the token from this machine = %d %s", got.status, got.body)
		}
		opts.Wrap = func(l net.Listener) net.Listener { return elsewhere{l} }
		h := httpapitest.Start(t, opts)
		if err := h.Tokens.Replace(append(h.TokenList, remote)); err != nil {
			t.Fatal(err)
		}
		for name, token := range map[string]string{"agent": h.Agent, "approver": h.Approver, "admin": h.Admin} {
			got := send(t, transport, newRequest(t, h.URL, token, "GET", "/v1/tools", ""))
			got.problem(t, http.StatusForbidden, "it came from 192.0.2.7, which is not a loopback address of this machine")
			if !strings.Contains(string(got.body), "urn:toolhost:problem:account") {
				t.Errorf("the token %s from elsewhere = %s", name, got.body)
			}
		}
		if got := send(t, transport, newRequest(t, h.URL, h.Key, "GET", "/v1/tools", "")); got.status != http.StatusUnauthorized {
			t.Errorf("the approver's key from elsewhere = %d %s", got.status, got.body)
		}
		if got := send(t, transport, newRequest(t, h.URL, secret, "GET", "/v1/tools", "")); got.status != http.StatusOK {
			t.Errorf("a token for any account from elsewhere = %d %s", got.status, got.body)
		}
		// The address of the connection is a name of the host, whatever the configuration says.
		if got := send(t, transport, newRequest(t, h.URL, secret, "GET", "/v1/tools", "", "Host: 192.0.2.1:7780")); got.status != http.StatusOK {
			t.Errorf("the address of the connection in Host = %d %s", got.status, got.body)
		}
	}
}

// TestCertificateInHealth: an expired certificate does not make the host unhealthy, and is told.
func TestCertificateInHealth(t *testing.T) {
	const problem = "the TLS certificate expired"
	h := httpapitest.Start(t, httpapitest.Options{CertificateProblems: func() []string { return []string{problem} }})
	for path, status := range map[string]string{"/healthz": "ok", "/readyz": "ready"} {
		got := ask(t, h, "", "GET", path, "")
		if got.status != http.StatusOK || !strings.Contains(string(got.body), `"status":"`+status+`"`) || !strings.Contains(string(got.body), problem) {
			t.Errorf("GET %s = %d %s", path, got.status, got.body)
		}
	}
}
