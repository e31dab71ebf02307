package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/sdk/guard"
	"github.com/toolhost/toolhost/sdk/proxy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// forward sends a request of plain HTTP to its server. The name in its Host header is not used:
// the absolute URL of a request to a proxy overrides it (RFC 9112, section 3.2.2).
func (c *connection) forward(w http.ResponseWriter, r *http.Request) {
	if r.URL.Scheme != "http" || r.URL.Host == "" || r.URL.User != nil {
		fail(w, r, http.StatusBadRequest, errors.New("this is a proxy: expected CONNECT host:port, or a method and an http URL"))
		return
	}
	to, err := ParseTarget(r.URL.Host, 80)
	if err != nil {
		fail(w, r, http.StatusBadRequest, err)
		return
	}
	server, ok := c.open(w, r, to)
	if !ok {
		return
	}
	defer c.untilCallEnds(nil, func() { _ = server.Close() })()
	var failed error
	defer func() { c.closed(failed) }() // also if the handler is aborted
	failed = c.relay(w, r, to, false, server)
}

// open connects to a destination if the process may. If not, it answers the request and returns false.
func (c *connection) open(w http.ResponseWriter, r *http.Request, to Target) (server net.Conn, ok bool) {
	if err := c.permit(r.Context(), to); err != nil {
		c.refused(r.Context(), err)
		fail(w, r, http.StatusForbidden, err)
		return nil, false
	}
	server, err := c.dial(r.Context(), to)
	if err != nil {
		c.closed(err)
		fail(w, r, status(err), err)
		return nil, false
	}
	return server, true
}

// relay sends one request to a server, over TLS if secure is set, and closes the connection to it. It
// returns the error if there is no response.
func (c *connection) relay(w http.ResponseWriter, r *http.Request, to Target, secure bool, server net.Conn) (failed error) {
	scheme, usual := "http", uint16(80)
	if secure {
		scheme, usual = "https", 443
	}
	defer func() { _ = server.Close() }()
	if err := c.keepSecrets(r, to); err != nil {
		fail(w, r, http.StatusForbidden, err)
		return err
	}
	made := make(chan net.Conn, 1)
	made <- counted{server, c}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.proxy.opts.Roots},
		TLSHandshakeTimeout: headerTimeout,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case conn := <-made:
				return conn, nil
			default:
				return nil, net.ErrClosed // a request is sent once
			}
		},
		DisableKeepAlives:      true, // each request is decided, and counted, by itself
		DisableCompression:     true,
		ExpectContinueTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeader,
	}
	reverse := httputil.ReverseProxy{
		Rewrite: func(out *httputil.ProxyRequest) {
			out.Out.URL.Scheme, out.Out.URL.Host = scheme, hostHeader(to, usual)
			out.Out.Host = out.Out.URL.Host
			out.Out.URL.RawQuery = out.In.URL.RawQuery // otherwise Go writes it anew
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if values, ok := out.In.Header[name]; ok {
					out.Out.Header[name] = values
				}
			}
			if _, ok := out.In.Header["User-Agent"]; !ok {
				out.Out.Header["User-Agent"] = nil // otherwise Go adds its own
			}
		},
		ModifyResponse: func(answer *http.Response) error { // only the proxy speaks in these
			answer.Header.Del(proxy.ErrorHeader)
			answer.Header.Del(proxy.HintHeader)
			answer.Header.Del(proxy.FailureHeader)
			return nil
		},
		Transport: transport, FlushInterval: -1, ErrorLog: hclog.NewNullLogger().StandardLogger(nil),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			failed = err
			fail(w, r, status(err), err)
		},
	}
	reverse.ServeHTTP(w, r)
	return failed
}

// hostHeader returns the Host header for a destination.
func hostHeader(to Target, usual uint16) string {
	switch {
	case to.Port != usual:
		return to.String()
	case strings.Contains(to.Host, ":"):
		return "[" + to.Host + "]"
	}
	return to.Host
}

// status returns the HTTP status of a connection that failed.
func status(err error) int {
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case isRefusal(err):
		return http.StatusForbidden
	case ok && timeout.Timeout():
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// isRefusal reports whether a connection was refused, as opposed to failing.
func isRefusal(err error) bool {
	if _, ok := errors.AsType[*guard.RefusalError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*tooLargeError](err); ok {
		return true
	}
	_, ok := errors.AsType[*tool.Error](err)
	return ok
}

// failure returns what failed, and its text. The text of a failed look-up names no resolver, which the
// process need not know.
func failure(err error) (kind proxy.FailureKind, text string) {
	timeout, isNet := errors.AsType[net.Error](err)
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		kind, text = proxy.LookupFailed, "the look-up failed"
		switch {
		case dns.IsNotFound:
			kind, text = proxy.UnknownHost, "no such host"
		case dns.IsTimeout:
			text = "the look-up timed out"
		}
		return kind, "lookup " + strings.TrimSuffix(dns.Name, ".") + ": " + text
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		kind = proxy.ConnectionRefused
	case isNet && timeout.Timeout():
		kind = proxy.TimedOut
	}
	return kind, err.Error()
}

// fail answers a request with the reason why there is no connection. The reason is also in the
// status line, which is all that many clients show of a refused CONNECT.
func fail(w http.ResponseWriter, r *http.Request, code int, err error) {
	kind, text := failure(err)
	hint := ""
	if refused, ok := errors.AsType[*tool.Error](err); ok {
		text, hint = refused.Message, plain(refused.Hint)
	}
	text = plain(text)
	body := "toolhost: " + text + "\n"
	if hint != "" {
		body += "hint: " + hint + "\n"
	}
	conn, buffered, hijackErr := http.NewResponseController(w).Hijack()
	if hijackErr != nil { // the header is already sent
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(buffered, "HTTP/1.1 %d toolhost: %s\r\n%s: %s\r\n", code, text, proxy.ErrorHeader, text)
	if hint != "" {
		_, _ = fmt.Fprintf(buffered, "%s: %s\r\n", proxy.HintHeader, hint)
	}
	if kind != "" && (code == http.StatusBadGateway || code == http.StatusGatewayTimeout) {
		_, _ = fmt.Fprintf(buffered, "%s: %s\r\n", proxy.FailureHeader, kind)
	}
	if code == http.StatusProxyAuthRequired {
		_, _ = buffered.WriteString("Proxy-Authenticate: Basic realm=\"toolhost\"\r\n")
	}
	_, _ = buffered.WriteString("Content-Type: text/plain; charset=utf-8\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\nConnection: close\r\n\r\n")
	if r.Method != http.MethodHead {
		_, _ = buffered.WriteString(body)
	}
	_ = buffered.Flush() // a client that is gone needs no answer
}

// plain returns a text as one line of printable ASCII, cut.
func plain(text string) string {
	const most = 500
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
