// Package fetch sends requests to servers that nobody trusts, on behalf of
// somebody whom nobody trusts either. Which addresses are contacted is a
// [guard.Guard]'s decision, on every hop; all that a server sends is bounded.
package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options say how a [Client] works. All but the last group are required.
type Options struct {
	// Check judges the address of each hop, and may write it anew; see
	// guard.Guard.Check.
	Check func(u *url.URL) error
	// Dial connects to the host of an address; see guard.Dialer. It is what keeps
	// a name from leading to a private network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// UserAgent is what requests say of themselves. Its first word is what
	// robots.txt names.
	UserAgent string
	// MaxBody bounds the bytes of a body, as it comes and as it is decoded.
	MaxBody int64
	// Timeout bounds a request with its redirects and its body.
	Timeout time.Duration
	// MaxRedirects bounds the redirects that are followed.
	MaxRedirects int
	// Limits bound what is sent at the same time, and how often.
	Limits Limits
	// CacheSize bounds the bytes of the bodies that are kept; 0 keeps none.
	CacheSize int64

	// TLS is for tests with certificates of their own; nil is the default.
	TLS *tls.Config
	// Now is the time; nil is that of the machine.
	Now func() time.Time
}

// Client sends requests. Make it with [New] and close it at the end.
type Client struct {
	options   Options
	transport *http.Transport
	hosts     *hosts
	cache     *cache
	robots    *cache        // each host's robots.txt
	unpacking chan struct{} // a place for each body that is unpacked
}

// maxHeader bounds the bytes of the headers of an answer.
const maxHeader = 256 << 10

// maxUnpacking is how many bodies are unpacked at the same time.
const maxUnpacking = 2

// New returns a client.
func New(o Options) *Client {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Client{
		options: o,
		transport: &http.Transport{ // no Proxy: none from the environment
			DialContext:            o.Dial,
			TLSClientConfig:        o.TLS,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // decoded here, within bounds
			MaxIdleConns:           32,
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        30 * time.Second,
			TLSHandshakeTimeout:    10 * time.Second,
			ExpectContinueTimeout:  time.Second,
			MaxResponseHeaderBytes: maxHeader,
		},
		hosts:  newHosts(o.Limits),
		cache:  newCache(o.CacheSize),
		robots: newCache(maxRobots), unpacking: make(chan struct{}, maxUnpacking),
	}
	return c
}

// Forget drops what the caches of owners hold.
func (c *Client) Forget(owned func(owner string) bool) { c.cache.forget(owned) }

// RetryAfter is how long an answer asks to wait before the next request, by its
// header: an hour at most, 0 if it says nothing.
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

// Close closes the connections that are idle.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Request is what is sent.
type Request struct {
	// Method is GET if it is empty. Only GET and HEAD follow redirects.
	Method string
	// URL was judged already.
	URL *url.URL
	// Header is sent to the host of URL and to no other.
	Header http.Header
	// Body is what is sent; nil is nothing.
	Body []byte
	// Jar keeps cookies; nil means those of this request alone.
	Jar http.CookieJar
	// Robots says to look at the robots.txt of each host first.
	Robots bool
	// Cache names whose cache is used; "" uses none.
	Cache string
	// OnlyCached sends nothing and takes what the cache has, however old.
	OnlyCached bool
	// Check judges each address that a redirect leads to, beside that of the
	// client; nil lets all through.
	Check func(u *url.URL) error

	// beginning is how many bytes of the body are wanted, of one that may be longer;
	// 0 wants all, of one that may not be too large.
	beginning int64
}

// Response is what came.
type Response struct {
	// URL is where it came from, after redirects.
	URL *url.URL
	// Status is the number of the answer, Proto the version of HTTP.
	Status int
	Proto  string
	Header http.Header
	// Body is decoded, as its Content-Encoding says.
	Body []byte
	// Redirects are the addresses that led to URL, the first one first.
	Redirects []string
	// Cached says how the cache took part: "fresh", "revalidated" or "".
	Cached string
	// Fetched is when the body came from the server.
	Fetched time.Time

	turn *turn // nil if it is from the cache
}

// Release lets another answer come in the place of this one. It must be called when
// Body is needed no more, and may be called more than once.
func (r *Response) Release() {
	if r.turn != nil {
		r.turn.leave()
	}
}

// Do sends a request and follows redirects. Its errors are [*tool.Error]: for a
// model to read. The response must be released.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	bounded, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	response, err := c.follow(bounded, r)
	if err != nil {
		return nil, c.explain(ctx, bounded, r.URL, err)
	}
	return response, nil
}

// hopError says at which address a request failed.
type hopError struct {
	url   *url.URL
	cause error
}

// Error implements error.
func (e *hopError) Error() string { return e.url.Redacted() + ": " + e.cause.Error() }

// Unwrap returns why it failed.
func (e *hopError) Unwrap() error { return e.cause }

// failedAt says at which address a request failed, unless the error does already: that
// for a robots.txt may have been led to another host.
func failedAt(u *url.URL, err error) error {
	if _, ok := errors.AsType[*hopError](err); ok {
		return err
	}
	return &hopError{url: u, cause: err}
}

// follow sends a request, and those that redirects ask for.
func (c *Client) follow(ctx context.Context, r Request) (*Response, error) {
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	if r.Jar == nil {
		r.Jar = NewJar()
	}
	first, own := *r.URL, true
	var redirects []string
	seen := make(map[string]bool)
	for {
		if r.Robots && !r.OnlyCached {
			if err := c.allowed(ctx, r.URL); err != nil {
				return nil, failedAt(r.URL, err)
			}
		}
		own = own && sameOrigin(&first, r.URL) // what came back is led by another
		response, err := c.hop(ctx, r, own)
		if err != nil {
			return nil, &hopError{url: r.URL, cause: err}
		}
		response.Redirects = redirects
		next, err := c.next(r, response)
		if err != nil || next == nil {
			if err != nil {
				response.Release()
			}
			return response, err
		}
		response.Release()
		here := r.URL.String()
		visit := here + "\n" + cookies(r.Jar, r.URL)
		if seen[visit] {
			return nil, &redirectError{from: r.URL, to: next, reason: "the redirects go round in a circle"}
		}
		seen[visit] = true
		redirects = append(redirects, here)
		if len(redirects) > c.options.MaxRedirects {
			return nil, &redirectError{from: &first, to: next, reason: "there are too many redirects"}
		}
		if r.URL.Scheme == "https" && next.Scheme == "http" {
			return nil, &redirectError{from: r.URL, to: next, reason: "the redirect leads from https to http"}
		}
		r.URL = next
	}
}

// next returns where a response redirects to; nil if nowhere.
func (c *Client) next(r Request, response *Response) (*url.URL, error) {
	location := response.Header.Get("Location")
	if location == "" || (r.Method != http.MethodGet && r.Method != http.MethodHead) {
		return nil, nil //nolint:nilnil // nowhere is an answer
	}
	switch response.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil //nolint:nilnil // nowhere is an answer
	}
	next, err := r.URL.Parse(strings.TrimSpace(location))
	if err == nil {
		err = c.options.Check(next)
	}
	if err == nil && r.Check != nil {
		err = r.Check(next)
	}
	if err != nil {
		return nil, &redirectError{from: r.URL, to: next, reason: "the redirect leads to an address that may not be contacted", cause: err}
	}
	return next, nil
}

// hop gets one answer: from the cache, or by one exchange with the server. Only
// the host that the headers are for gets them.
func (c *Client) hop(ctx context.Context, r Request, own bool) (*Response, error) {
	header := http.Header{}
	if own && r.Header != nil {
		header = r.Header.Clone()
	}
	if r.Cache == "" || r.Method != http.MethodGet || len(r.Header) > 0 {
		if r.OnlyCached {
			return nil, errNotCached
		}
		return c.exchange(ctx, r, header)
	}
	key := cacheKey{owner: r.Cache, url: r.URL.String()}
	old := c.cache.get(key)
	if r.OnlyCached {
		if old == nil {
			return nil, errNotCached
		}
		return old.response("fresh"), nil
	}
	plain := cookies(r.Jar, r.URL) == "" // an answer to others is for who sent them, once
	switch {
	case !plain || old != nil && old.once:
		old = nil
	case old != nil && old.fresh(c.options.Now()):
		return old.response("fresh"), nil
	case old != nil:
		old.condition(header)
	}
	response, err := c.exchange(ctx, r, header)
	if err != nil {
		return nil, err
	}
	came, again := response.Fetched, plain
	if old != nil && response.Status == http.StatusNotModified {
		response.Release()
		response, again = old.confirmed(response.Header)
	}
	if entry, ok := storable(response, came, again); ok {
		c.cache.put(key, entry)
	} else {
		c.cache.drop(key)
	}
	return response, nil
}

// exchange sends one request and reads its answer.
func (c *Client) exchange(ctx context.Context, r Request, header http.Header) (response *Response, err error) {
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
	request.Header = header
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", c.options.UserAgent)
	}
	if header.Get("Accept") == "" {
		header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	}
	header.Set("Accept-Encoding", acceptEncoding)
	for _, cookie := range r.Jar.Cookies(r.URL) {
		request.AddCookie(cookie)
	}
	answer, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	r.Jar.SetCookies(r.URL, answer.Cookies())
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

// sameOrigin reports whether two addresses are of one server, by scheme and host.
func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
