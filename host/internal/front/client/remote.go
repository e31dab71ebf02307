package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/internal/excerpt"
)

// ErrUntrusted means that the other end is not proven to be the host. Nothing was sent to it.
var ErrUntrusted = errors.New("the host is not trusted")

// Bounds of a connection to a host on another machine.
const (
	maxDial      = 10 * time.Second
	maxHandshake = 10 * time.Second
)

// Origin returns the address of a host in its canonical form: scheme, name or address in lower
// case, and the port unless it is the usual one. It refuses everything that is not only an
// address, and http to anything but a loopback address or localhost.
func Origin(address string) (string, error) {
	u, err := url.Parse(address)
	shown := excerpt.Printable(address, 200)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q is not the address of a host: expected one such as https://tools.example.com or http://127.0.0.1:7780", shown)
	case u.User != nil:
		return "", errors.New("the address of a host has no user and no password: the token says who you are")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(address, "#"):
		return "", fmt.Errorf("%q has more than an address: expected only scheme, name and port, such as %s://%s", shown, u.Scheme, excerpt.Printable(u.Host, 200))
	}
	name, port := strings.ToLower(u.Hostname()), u.Port()
	if name == "" || strings.HasSuffix(u.Host, ":") {
		return "", fmt.Errorf("%q is not the address of a host: a name or a port is missing", shown)
	}
	if u.Scheme == "http" && !auth.IsLoopback(name) {
		return "", fmt.Errorf("%q would send the token and every call readable over the network: use https", shown)
	}
	if u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		port = ""
	}
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if port != "" {
		name += ":" + port
	}
	return u.Scheme + "://" + name, nil
}

// reachOver sets how a transport reaches the host: over TLS, or without it on this machine only.
func (c *Client) reachOver(transport *http.Transport) error {
	dialer := &net.Dialer{Timeout: maxDial}
	transport.DialContext = dialer.DialContext
	if strings.HasPrefix(c.base, "http://") {
		if c.opts.CA != "" {
			return errors.New("an authority is given for an address without TLS")
		}
		transport.DialContext = hereOnly(dialer.DialContext)
		return nil
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.opts.CA != "" {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM([]byte(c.opts.CA)) {
			return errors.New("the authority has no certificate in PEM format")
		}
	}
	transport.TLSClientConfig, transport.TLSHandshakeTimeout, transport.ForceAttemptHTTP2 = trust, maxHandshake, true
	return nil
}

// dial is a function like [net.Dialer.DialContext].
type dial func(ctx context.Context, network, address string) (net.Conn, error)

// hereOnly limits a dial to this machine, wherever a name such as localhost leads.
func hereOnly(next dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if to, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || !to.AddrPort().Addr().Unmap().IsLoopback() {
			return nil, errors.Join(fmt.Errorf("%w: %s leads to %s, which is not this machine; use https", ErrUntrusted, address, conn.RemoteAddr()), conn.Close())
		}
		return conn, nil
	}
}

// distrust explains an error of TLS, which wraps [ErrUntrusted]. It returns nil for others.
func (c *Client) distrust(err error) error {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var notTLS tls.RecordHeaderError
	var failed *tls.CertificateVerificationError
	var op *net.OpError
	refused := errors.As(err, &op) && op.Op == "remote error" // an alert of TLS
	switch {
	case errors.Is(err, ErrUntrusted):
		return err
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: the certificate of %s is of an authority that is not trusted here: %w", ErrUntrusted, c.base, err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil && time.Now().After(invalid.Cert.NotAfter):
		return fmt.Errorf("%w: the certificate of %s expired at %s: %w", ErrUntrusted, c.base, invalid.Cert.NotAfter.UTC().Format(time.RFC3339), err)
	case errors.As(err, &name):
		return fmt.Errorf("%w: the certificate of %s is for other names: %w", ErrUntrusted, c.base, err)
	case errors.As(err, &notTLS), errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w: %s does not serve TLS: %w", ErrUntrusted, c.base, err)
	case errors.As(err, &failed), refused:
		return fmt.Errorf("%w: TLS with %s failed: %w", ErrUntrusted, c.base, err)
	}
	return nil
}
