// Package fetch sends HTTP requests on behalf of an untrusted caller to untrusted
// servers. A [guard.Guard] decides on every hop which addresses may be contacted, and
// everything that a server sends is bounded.
package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options configure a [Client]. All but TLS and Now are required.
type Options struct {
	// Check refuses the URL of a hop, and may normalize it; see guard.Guard.Check.
	Check func(u *url.URL) error
	// Dial connects to the host of a URL; see guard.Dialer. It keeps a host name from
	// leading to a private network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// UserAgent is the User-Agent header of requests. Its first word, up to a slash, is
	// the name that robots.txt rules apply to.
	UserAgent string
	// MaxBody is the largest body in bytes, both compressed and decompressed.
	MaxBody int64
	// Timeout is the time limit of a request with its redirects and body.
	Timeout time.Duration
	// MaxRedirects is the number of redirects to follow.
	MaxRedirects int
	// Limits are the limits on concurrent requests and on the request rate.
	Limits Limits
	// CacheSize is the size of the page cache in bytes; 0 keeps no pages.
	CacheSize int64

	// TLS is for tests that use their own certificates; nil is the default.
	TLS *tls.Config
	// Now returns the current time; nil means time.Now.
	Now func() time.Time
}

// Client sends requests. Create it with [New], and close it after use.
type Client struct {
	options   Options
	transport *http.Transport
	hosts     *hosts
	pages     *cache[page]
	robots    *cache[robotsFile]
	unpacking chan struct{} // one slot for each body that may be decompressed at the same time
}

// maxHeader bounds the bytes of response headers.
const maxHeader = 256 << 10

// maxUnpacking is the number of bodies that may be decompressed at the same time.
const maxUnpacking = 2

// New returns a client.
func New(o Options) *Client {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Client{
		options:   o,
		transport: o.newTransport(o.Dial),
		hosts:     newHosts(o.Limits),
		pages:     newCache[page](o.CacheSize, o.Now),
		robots:    newCache[robotsFile](maxRobots, o.Now),
		unpacking: make(chan struct{}, maxUnpacking),
	}
}

// newTransport returns a transport whose connections dial makes.
func (o *Options) newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{ // without Proxy: the environment is ignored
		DialContext:            dial,
		TLSClientConfig:        o.TLS,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // the decoder decompresses, within bounds
		MaxIdleConns:           32,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// RetryAfter returns how long the Retry-After header asks to wait, at most an hour. It
// is 0 if there is no valid header.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	wait, ok := seconds(text)
	if at, err := http.ParseTime(text); err == nil {
		wait, ok = at.Sub(now), true
	}
	if !ok {
		return 0
	}
	return min(max(0, wait), time.Hour)
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Request is an HTTP request.
type Request struct {
	// Method is GET if it is empty. Only GET and HEAD follow redirects.
	Method string
	// URL has already passed the guard.
	URL *url.URL
	// Header is sent to the origin of URL only.
	Header http.Header
	// Body is the request body; nil means none.
	Body []byte
	// Robots makes the client obey the robots.txt of each host.
	Robots bool
	// Cache answers from a page that was kept for Owner, and keeps the response. It is
	// for GET requests without headers.
	Cache bool
	// OnlyCached is like Cache, but sends nothing.
	OnlyCached bool
	// Dial connects instead of Options.Dial, for this request only: no connection is kept. Its time
	// does not count towards Options.Timeout, since a person may be asked about the host.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Owner is the user whose kept pages are used. No user gets those of another.
	Owner string
	// Check refuses the URL of a redirect, in addition to Options.Check; nil allows all.
	Check func(u *url.URL) error

	// transport sends the request and those that it leads to, through tunnels if there are any.
	transport *http.Transport
	tunnels   *tunnels
	// beginning is the number of bytes to read of a body that may be longer; 0 reads
	// the whole body and refuses one that is larger than MaxBody.
	beginning int64
}

// Response is the response to a [Request].
type Response struct {
	// URL is the address of the response, after redirects.
	URL    *url.URL
	Status int
	// Proto is the HTTP version, such as "HTTP/2.0".
	Proto string
	// Header holds the response headers; only Content-Type if Cached is true.
	Header http.Header
	// Body is the decompressed body. It must not be changed.
	Body []byte
	// Redirects are the addresses that redirected to URL, in order.
	Redirects []string
	// Cached reports whether the response is a kept page.
	Cached bool
	// Fetched is when the server sent the body.
	Fetched time.Time

	turn *turn // nil for a kept page
}

// Release frees the slot of the response. Call it when Body is no longer needed. It may
// be called more than once.
func (r *Response) Release() {
	if r.turn != nil {
		r.turn.leave()
	}
}

// Do sends a request and follows redirects, or returns a page that was kept for the same
// owner and URL. Its errors are [*tool.Error]. The caller must release the response.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	key := r.Owner + "\n" + r.URL.String()
	kept, ok := c.pages.get(key)
	switch {
	case ok && (r.OnlyCached || r.Cache && c.options.Now().Sub(kept.response.Fetched) < kept.reuse):
		kept.response.Cached = true
		return &kept.response, nil
	case r.OnlyCached:
		return nil, notCached(r.URL)
	}
	bounded, end := c.bound(ctx, &r)
	defer end()
	response, err := c.follow(bounded, r)
	if err != nil {
		return nil, c.explain(ctx, bounded, r.URL, err)
	}
	if !r.Cache {
		return response, nil
	}
	if kept, ok := keepable(response); ok {
		c.pages.put(key, kept, kept.size(), maxAge)
	} else {
		c.pages.drop(key)
	}
	return response, nil
}

// bound returns a context that ends when the time of a request is over, and gives the request its
// transport. The caller calls end.
func (c *Client) bound(ctx context.Context, r *Request) (_ context.Context, end func()) {
	if r.Dial == nil {
		r.transport = c.transport
		return context.WithTimeout(ctx, c.options.Timeout)
	}
	ctx, limit := withTimer(ctx, c.options.Timeout)
	r.tunnels = c.options.newTunnels(r.Dial, limit)
	r.transport = r.tunnels.transport
	return ctx, func() {
		r.tunnels.close()
		limit.end()
	}
}

// hopError reports at which URL a request failed.
type hopError struct {
	url   *url.URL
	cause error
}

// Error implements error.
func (e *hopError) Error() string { return e.url.Redacted() + ": " + e.cause.Error() }

// Unwrap returns the cause.
func (e *hopError) Unwrap() error { return e.cause }

// failedAt adds the URL at which a request failed, unless err already has one: a request
// for robots.txt may have been redirected to another host.
func failedAt(u *url.URL, err error) error {
	if _, ok := errors.AsType[*hopError](err); ok {
		return err
	}
	return &hopError{url: u, cause: err}
}

// follow sends a request and follows its redirects. Cookies live until it returns.
func (c *Client) follow(ctx context.Context, r Request) (*Response, error) {
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	jar := newCookies()
	first := *r.URL
	var redirects []string
	for {
		if r.Robots {
			if err := c.allowed(ctx, r); err != nil {
				return nil, failedAt(r.URL, err)
			}
		}
		if !sameOrigin(&first, r.URL) {
			r.Header = nil // also for later hops: another server chose their addresses
		}
		response, err := c.exchange(ctx, r, jar)
		if err != nil {
			return nil, &hopError{url: r.URL, cause: err}
		}
		response.Redirects = redirects
		next, err := c.next(r, response)
		if err == nil && next == nil {
			return response, nil
		}
		response.Release()
		if err != nil {
			return nil, err
		}
		redirects = append(redirects, r.URL.String())
		if len(redirects) > c.options.MaxRedirects {
			return nil, &redirectError{from: &first, to: next, reason: "there are too many redirects"}
		}
		if r.URL.Scheme == "https" && next.Scheme == "http" {
			return nil, &redirectError{from: r.URL, to: next, reason: "the redirect leads from https to http"}
		}
		r.URL = next
	}
}

// next returns the URL that a response redirects to, or nil if it is not a redirect.
func (c *Client) next(r Request, response *Response) (*url.URL, error) {
	location := response.Header.Get("Location")
	if location == "" || (r.Method != http.MethodGet && r.Method != http.MethodHead) {
		return nil, nil //nolint:nilnil // nil means no redirect
	}
	switch response.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil //nolint:nilnil // nil means no redirect
	}
	next, err := r.URL.Parse(strings.TrimSpace(location))
	if err == nil {
		err = c.options.Check(next)
	}
	if err == nil && r.Check != nil {
		err = r.Check(next)
	}
	if err != nil {
		return nil, &redirectError{from: r.URL, to: next, reason: "the redirect leads to an address that is not allowed", cause: err}
	}
	return next, nil
}

// exchange sends one request and reads its response.
func (c *Client) exchange(ctx context.Context, r Request, jar *cookies) (response *Response, err error) {
	if r.tunnels != nil {
		if err := r.tunnels.open(ctx, r.URL); err != nil {
			return nil, err
		}
	}
	turn, err := c.hosts.enter(ctx, r.URL.Hostname())
	if err != nil {
		return nil, err
	}
	defer func() {
		if turn.leaveHost(); err != nil {
			turn.leave()
		}
	}()
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	header := request.Header
	maps.Copy(header, r.Header)
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", c.options.UserAgent)
	}
	if header.Get("Accept") == "" {
		header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	}
	header.Set("Accept-Encoding", acceptEncoding)
	jar.send(request)
	answer, err := r.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	jar.receive(r.URL, answer)
	limit := c.options.MaxBody
	if r.beginning > 0 {
		limit = r.beginning
	}
	body, err := (&decoder{limit: limit, length: answer.ContentLength, places: c.unpacking}).decode(request.Context(), answer.Body, answer.Header.Values("Content-Encoding"))
	if err != nil && (r.beginning == 0 || !errors.Is(err, errTooLarge)) {
		return nil, &bodyError{cause: err}
	}
	return &Response{
		URL: r.URL, Status: answer.StatusCode, Proto: answer.Proto, Header: answer.Header, Body: body, Fetched: c.options.Now(),
		turn: turn,
	}, nil
}

// sameOrigin reports whether two URLs have the same scheme and host.
func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
