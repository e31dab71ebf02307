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

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/guard"
	"github.com/toolhost/toolhost/sdk/tool"
)

// redirectError reports why a redirect is not followed.
type redirectError struct {
	from, to *url.URL
	reason   string
	cause    error
}

// Error implements error.
func (e *redirectError) Error() string { return fmt.Sprintf("%s: %s", e.from.Redacted(), e.reason) }

// Unwrap returns the error of the guard; nil if there is none.
func (e *redirectError) Unwrap() error { return e.cause }

// bodyError reports that a body cannot be read.
type bodyError struct{ cause error }

// Error implements error.
func (e *bodyError) Error() string { return "the body cannot be read: " + e.cause.Error() }

// Unwrap returns the cause.
func (e *bodyError) Unwrap() error { return e.cause }

// Refused returns the error to show a model for a URL that the guard refuses.
func Refused(err error) *tool.Error {
	r, ok := errors.AsType[*guard.RefusalError](err)
	if !ok {
		return tool.AsError(err)
	}
	code := tool.PermissionDenied
	if r.Malformed {
		code = tool.InvalidArgument
	}
	e := tool.Errorf(code, "cannot contact %s: %s", display.Name(r.Address), r.Reason).WithCause(err)
	if r.Hint != "" {
		return e.WithHint("%s", r.Hint)
	}
	return e
}

// notCached returns the error for a page that is not kept.
func notCached(u *url.URL) error {
	return tool.Errorf(tool.NotFound, "%s is not in the cache", guard.Shown(u.Redacted())).
		WithHint("fetch the page with web_fetch first, using the same URL; if its server forbids keeping it, read the links in the result of web_fetch")
}

// explain returns the error to show a model. call is the context of the call, and ctx
// that of the request, which ends earlier. asked is the URL of the request.
func (c *Client) explain(call, ctx context.Context, asked *url.URL, err error) error {
	if call.Err() != nil {
		return call.Err()
	}
	at := asked
	if hop, ok := errors.AsType[*hopError](err); ok {
		at = hop.url
	}
	host := guard.Shown(at.Host)
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
		return tool.Errorf(tool.RateLimited, "too many requests are running: the request to %s could not start within %v", host, c.options.Timeout).
			WithHint("try again later").WithRetry(c.options.Timeout)
	}
	if ctx.Err() != nil {
		return tool.Errorf(tool.Timeout, "%s did not send the whole response within %v", host, c.options.Timeout).
			WithHint("try again later, or try another source").WithRetry(0).WithCause(err)
	}
	switch {
	case errors.Is(err, errBusy):
		return tool.Errorf(tool.RateLimited, "too many requests to %s are waiting", host).WithHint("try again later").WithRetry(c.options.Timeout)
	case errors.Is(err, errTooLarge):
		return tool.Errorf(tool.ResourceExhausted, "the response of %s is larger than %v", host, tool.ByteSize(c.options.MaxBody)).
			WithHint("request a part of it, or another page").WithCause(err)
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
	return tool.Errorf(code, "%s: %s", Where(asked, e.from), reason).WithHint("use another URL").WithCause(e)
}

func explainRobots(asked *url.URL, e *robotsError) error {
	host := guard.Shown(e.url.Host)
	if e.unavailable {
		return tool.Errorf(tool.Unavailable, "cannot read the robots.txt of %s, so its pages may not be fetched", host).
			WithHint("try again later, or try another source").WithRetry(robotsRetry)
	}
	return tool.Errorf(tool.PermissionDenied, "the robots.txt of %s does not allow programs to read %s", host, Where(asked, e.url)).
		WithHint("look for the same information elsewhere")
}

// explainNetwork describes a network error. It leaves out the details about this machine
// that errors of package net contain.
func explainNetwork(host string, err error) error {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var slow net.Error
	fail := func(code tool.Code, format string, args ...any) *tool.Error {
		return tool.Errorf(code, format, args...).WithCause(err)
	}
	body, isBody := errors.AsType[*bodyError](err)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return fail(tool.NotFound, "host %s does not exist", host).WithHint("check the spelling")
	case errors.As(err, &dns):
		return fail(tool.Unavailable, "the DNS lookup of %s failed", host).WithHint("try again later").WithRetry(0)
	case errors.As(err, &name):
		return fail(tool.Failed, "the certificate of %s is for another host", host).WithHint("do not trust this server; look for another source")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fail(tool.Failed, "the certificate of %s has expired or is not yet valid", host).WithHint("do not trust this server; look for another source")
	case errors.As(err, &unknown), errors.As(err, &invalid), errors.As(err, &certificate):
		return fail(tool.Failed, "the certificate of %s is signed by an unknown authority", host).WithHint("do not trust this server; look for another source")
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail(tool.Unavailable, "%s refuses connections on this port", host).WithHint("check the port, or try again later").WithRetry(0)
	case errors.As(err, &slow) && slow.Timeout():
		return fail(tool.Timeout, "%s took too long to answer", host).WithHint("try again later, or try another source").WithRetry(0)
	case isBody && errors.Is(err, io.ErrUnexpectedEOF):
		return fail(tool.Failed, "the connection to %s ended in the middle of the response", host).WithHint("try again").WithRetry(0)
	case isBody:
		return fail(tool.Failed, "the response of %s cannot be read%s", host, shortly(body.cause)).WithHint("try again, or try another source").WithRetry(0)
	case strings.Contains(err.Error(), "server response headers exceeded"):
		return fail(tool.Failed, "the response headers of %s are larger than %v", host, tool.ByteSize(maxHeader)).WithHint("try another source")
	case errors.As(err, new(tls.RecordHeaderError)), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return fail(tool.Failed, "%s does not use TLS on this port", host).WithHint("try http instead of https, or another port")
	}
	return fail(tool.Failed, "%s does not send a valid HTTP response%s", host, shortly(err)).WithHint("try again later, or try another source").WithRetry(0)
}

// shortly returns a colon and the text of an error, or "" unless the text is known to be
// this program's own: the words of a server could give orders to the model.
func shortly(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return ": " + errno.Error()
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	text := err.Error()
	for _, own := range []string{"EOF", "stream error: stream ID", "tls: ", "remote error: tls: ", "gzip: ", "brotli: ", "magic number mismatch", "flate: ", "it has ", "its content coding "} {
		if strings.HasPrefix(text, own) && len(text) < 200 {
			return ": " + display.Visible(text)
		}
	}
	return ""
}

// Where returns the name of a URL for an error: the whole URL if it is the one that was
// asked for, and only its origin if a server chose it. Error texts are not marked as
// content from outside, so the model would trust the text of such a URL.
func Where(asked, at *url.URL) string {
	if at.String() == asked.String() {
		return guard.Shown(at.Redacted())
	}
	return origin(at) + " (after a redirect)"
}

// origin returns the scheme and host of a URL.
func origin(u *url.URL) string {
	if u.Scheme != "http" && u.Scheme != "https" {
		return "another scheme"
	}
	return guard.Shown(u.Scheme + "://" + u.Host)
}
