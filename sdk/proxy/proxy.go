// Package proxy is the host's proxy as plugins see it: with network { mode = "proxy" }, it is their
// only way to other machines.
package proxy

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Variables returns the names of the variables by which programs find a proxy, and the
// certificates of one. Programs differ in the case that they look at.
func Variables() []string {
	return append([]string{
		"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "NODE_USE_ENV_PROXY",
	}, CertificateVariables()...)
}

// CertificateVariables returns the names of the variables that name the file with the certificates
// to trust. A file of settings can name another one for npm and pip, and the variables of these
// override it.
func CertificateVariables() []string {
	return []string{
		"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "npm_config_cafile", "PIP_CERT",
	}
}

// User is the name in the credentials of a call; the password is its ticket.
const User = "call"

// RefusedError reports that the host refused a connection.
type RefusedError struct {
	// Address is "host:port", Reason is why, and Hint what to do instead; it may be empty.
	Address, Reason, Hint string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Reason }

// FailedError reports that the host allowed a connection, but could not make it.
type FailedError struct {
	// Address is "host:port", Status the HTTP status of the answer, 502 or 504, and Reason its text.
	Address string
	Status  int
	Reason  string
	// Kind is what failed; "" is anything else.
	Kind FailureKind
}

// Error implements error.
func (e *FailedError) Error() string { return "no connection to " + e.Address + ": " + e.Reason }

// FailureKind is what failed when the host connected to a server.
type FailureKind string

// The kinds of failures.
const (
	UnknownHost       FailureKind = "unknown_host"       // the name has no address
	LookupFailed      FailureKind = "lookup_failed"      // the resolver did not answer, or with an error
	ConnectionRefused FailureKind = "connection_refused" // nothing listens on the port
	TimedOut          FailureKind = "timed_out"          // the server did not answer in time
)

// Headers of an answer of the host's proxy: why there is no connection, a hint, and the [FailureKind]
// of a status 502 or 504.
const (
	ErrorHeader   = "Toolhost-Error"
	HintHeader    = "Toolhost-Hint"
	FailureHeader = "Toolhost-Failure"
)

// Dial connects to an address "host:port" through a proxy that speaks HTTP, with the user and
// password in its URL. The end of ctx ends the attempt; there is no other time-out, as the host's
// proxy may ask a person. The error is a [*RefusedError] if the host refuses the connection, and
// a [*FailedError] if the host cannot connect.
func Dial(ctx context.Context, at *url.URL, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return nil, fmt.Errorf("connect to the proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	from, err := tunnel(conn, at, address)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &proxied{Conn: conn, from: from}, nil
}

// tunnel asks a proxy for a tunnel.
func tunnel(conn net.Conn, at *url.URL, address string) (*bufio.Reader, error) {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: make(http.Header)}
	if user := at.User; user != nil {
		password, _ := user.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := request.Write(conn); err != nil {
		return nil, fmt.Errorf("ask the proxy: %w", err)
	}
	from := bufio.NewReader(conn)
	answer, err := http.ReadResponse(from, request) //nolint:bodyclose // the body is the connection
	if err != nil {
		return nil, fmt.Errorf("read the answer of the proxy: %w", err)
	}
	if answer.StatusCode == http.StatusOK {
		return from, nil
	}
	if reason := answer.Header.Get(ErrorHeader); reason != "" {
		switch answer.StatusCode {
		case http.StatusForbidden:
			return nil, &RefusedError{Address: address, Reason: reason, Hint: answer.Header.Get(HintHeader)}
		case http.StatusBadGateway, http.StatusGatewayTimeout:
			return nil, &FailedError{Address: address, Status: answer.StatusCode, Reason: reason, Kind: FailureKind(answer.Header.Get(FailureHeader))}
		}
	}
	return nil, fmt.Errorf("the proxy: %s", answer.Status)
}

// proxied is a connection through a proxy, of which a part may have been read with its answer.
type proxied struct {
	net.Conn

	from *bufio.Reader
}

// Read implements [io.Reader].
func (p *proxied) Read(b []byte) (int, error) { return p.from.Read(b) }
