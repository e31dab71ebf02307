package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/plugins/web/internal/guard"
	"github.com/toolhost/toolhost/sdk/tool"
)

// errNotCached says that an address is not in the cache.
var errNotCached = errors.New("not in the cache")

// redirectError says why a redirect is not followed.
type redirectError struct {
	from, to *url.URL
	reason   string
	cause    error
}

// Error implements error.
func (e *redirectError) Error() string { return fmt.Sprintf("%s: %s", e.from.Redacted(), e.reason) }

// Unwrap returns what the guard says.
func (e *redirectError) Unwrap() error { return e.cause }

// bodyError says that a body cannot be read.
type bodyError struct{ cause error }

// Error implements error.
func (e *bodyError) Error() string { return "the body cannot be read: " + e.cause.Error() }

// Unwrap returns why.
func (e *bodyError) Unwrap() error { return e.cause }

// Refused is what a model reads about an address that the guard refuses.
func Refused(err error) *tool.Error {
	r, ok := errors.AsType[*guard.RefusalError](err)
	if !ok {
		return tool.AsError(err)
	}
	code := tool.PermissionDenied
	if r.Malformed {
		code = tool.InvalidArgument
	}
	e := tool.Errorf(code, "%s may not be contacted: %s", tool.VisibleName(r.Address), r.Reason).WithCause(err)
	if r.Hint != "" {
		return e.WithHint("%s", r.Hint)
	}
	return e
}

// explain makes an error for a model. call is the context of the call, ctx that of
// the request, which ends earlier; asked is the address of the request.
func (c *Client) explain(call, ctx context.Context, asked *url.URL, err error) error {
	if call.Err() != nil {
		return call.Err()
	}
	at := asked
	if hop, ok := errors.AsType[*hopError](err); ok {
		at = hop.url
	}
	host := guard.Shorten(tool.VisibleName(at.Host))
	if redirect, ok := errors.AsType[*redirectError](err); ok {
		return explainRedirect(asked, redirect)
	}
	if robots, ok := errors.AsType[*robotsError](err); ok {
		return explainRobots(asked, robots)
	}
	if _, ok := errors.AsType[*guard.RefusalError](err); ok {
		return Refused(err)
	}
	if errors.Is(err, errNoTurn) {
		return tool.Errorf(tool.RateLimited, "too many requests run: the one to %s could not begin within %v", host, c.options.Timeout).
			WithHint("try again later").WithRetry(c.options.Timeout)
	}
	if ctx.Err() != nil {
		return tool.Errorf(tool.Timeout, "%s did not answer in full within %v", host, c.options.Timeout).
			WithHint("try again later, or another source").WithRetry(0).WithCause(err)
	}
	switch {
	case errors.Is(err, errNotCached):
		return tool.Errorf(tool.NotFound, "%s is not in the cache", Where(asked, at)).
			WithHint("fetch the page first, with web_fetch; if that was done, its server does not let it be kept, and web_fetch shows its links")
	case errors.Is(err, errBusy):
		return tool.Errorf(tool.RateLimited, "too many requests to %s wait already", host).WithHint("try again later").WithRetry(c.options.Timeout)
	case errors.Is(err, errTooLarge):
		return tool.Errorf(tool.ResourceExhausted, "what %s answers has more than %v", host, tool.ByteSize(c.options.MaxBody)).
			WithHint("ask for a part of it, or for another page").WithCause(err)
	}
	return explainNetwork(host, err)
}

func explainRedirect(asked *url.URL, e *redirectError) error {
	code, reason := tool.Failed, e.reason
	if e.to != nil && e.to.Host != "" {
		reason += ": to " + origin(e.to)
	}
	if r, ok := errors.AsType[*guard.RefusalError](e.cause); ok {
		code = tool.PermissionDenied
		reason += ": " + r.Reason
	}
	return tool.Errorf(code, "%s: %s", Where(asked, e.from), reason).WithHint("fetch another address").WithCause(e)
}

func explainRobots(asked *url.URL, e *robotsError) error {
	host := guard.Shorten(tool.VisibleName(e.url.Host))
	if e.unavailable {
		return tool.Errorf(tool.Unavailable, "the robots.txt of %s cannot be had, so nothing of it is read", host).
			WithHint("try again later, or another source").WithRetry(robotsRetry)
	}
	return tool.Errorf(tool.PermissionDenied, "the robots.txt of %s does not let programs read %s", host, Where(asked, e.url)).
		WithHint("look for the same elsewhere")
}

// explainNetwork tells what went wrong between here and the server, without what
// errors of package net say of the machine.
func explainNetwork(host string, err error) error {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	fail := func(code tool.Code, format string, args ...any) *tool.Error {
		return tool.Errorf(code, format, args...).WithCause(err)
	}
	body, isBody := errors.AsType[*bodyError](err)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return fail(tool.NotFound, "there is no host %s", host).WithHint("check how it is spelled")
	case errors.As(err, &dns):
		return fail(tool.Unavailable, "the name %s cannot be looked up", host).WithHint("try again later").WithRetry(0)
	case errors.As(err, &name):
		return fail(tool.Failed, "the certificate that %s shows is for another host", host).WithHint("do not trust this address; look for another")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fail(tool.Failed, "the certificate that %s shows has expired, or is not valid yet", host).WithHint("do not trust this address; look for another")
	case errors.As(err, &unknown), errors.As(err, &invalid), errors.As(err, &certificate):
		return fail(tool.Failed, "the certificate that %s shows is by nobody who is trusted", host).WithHint("do not trust this address; look for another")
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail(tool.Unavailable, "%s does not accept connections on this port", host).WithHint("check the port, or try again later").WithRetry(0)
	case isBody && errors.Is(err, io.ErrUnexpectedEOF):
		return fail(tool.Failed, "the connection to %s ended in the middle of the answer", host).WithHint("try again").WithRetry(0)
	case isBody:
		return fail(tool.Failed, "what %s answers cannot be read%s", host, shortly(body.cause)).WithHint("try again, or another source").WithRetry(0)
	case strings.Contains(err.Error(), "server response headers exceeded"):
		return fail(tool.Failed, "the headers that %s answers have more than %v", host, tool.ByteSize(maxHeader)).WithHint("try another source")
	case errors.As(err, new(tls.RecordHeaderError)), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return fail(tool.Failed, "%s does not speak TLS on this port", host).WithHint("try http instead of https, or another port")
	}
	return fail(tool.Failed, "%s does not answer as a web server does%s", host, shortly(err)).WithHint("try again later, or another source").WithRetry(0)
}

// shortly says what happened in words of this machine, and none of the server's,
// which could talk to the model; it may be empty. It begins with a colon.
func shortly(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return ": " + errno.Error()
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	text := err.Error()
	for _, own := range []string{"EOF", "stream error: stream ID", "tls: ", "remote error: tls: ", "gzip: ", "brotli: ", "magic number mismatch", "flate: ", "it is packed "} {
		if strings.HasPrefix(text, own) && len(text) < 200 {
			return ": " + tool.Visible(text)
		}
	}
	return ""
}

// Where names an address in an error: as it is if it is the one that was asked for.
// Of another, that a server has chosen, no more than the host is named: errors stand
// between no lines, and a model reads them as ours.
func Where(asked, at *url.URL) string {
	if at.String() == asked.String() {
		return guard.Shorten(tool.VisibleName(at.Redacted()))
	}
	return origin(at) + ", to which a redirect leads,"
}

// origin is the scheme and host of an address.
func origin(u *url.URL) string {
	if u.Scheme != "http" && u.Scheme != "https" {
		return "another scheme"
	}
	return guard.Shorten(tool.VisibleName(u.Scheme + "://" + u.Host))
}
