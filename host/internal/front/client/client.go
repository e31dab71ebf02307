// Package client speaks to a running host over its REST interface: over the control
// socket in a state directory, or at an address. An error of the interface itself is an
// [*httpapi.Problem]; the failure of a tool is part of the [Outcome] of a call. It keeps the
// tokens for hosts on other machines ([Login]), and sends each to its own host only.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxAnswer bounds an answer.
const maxAnswer = 64 * tool.MiB

// ErrNoHost means that no host runs where the client looks for one.
var ErrNoHost = errors.New("no host is running")

// ErrBroken means that the connection to the host broke. Whether the host carried out the
// request is not known.
var ErrBroken = errors.New("the connection to the host broke")

// Options select a host and a credential. One of StateDir, URL and Handler is required.
type Options struct {
	// StateDir is the state directory of a host on this machine.
	StateDir string
	// URL is the address of a host, e.g. "https://tools.example.com"; see [Origin].
	URL string
	// Handler answers the requests in this process, as the caller that it knows.
	Handler http.Handler
	// CA are the certificates, in PEM, of the only authorities that a host with https may have
	// its certificate from; "" means those of the system.
	CA string
	// Token is the credential. Without one, the client is an agent on the control
	// socket.
	Token string
	// Name is the name of the client, and Session groups its calls. Both may be empty.
	Name, Session string
}

// Client speaks to one host. It is safe for concurrent use. Its methods wait for the
// answer, or for the end of ctx.
type Client struct {
	opts Options
	base string
	http *http.Client
}

// New returns a client that has not connected yet. The caller should Close it.
func New(opts Options) (*Client, error) {
	c := &Client{opts: opts}
	if opts.Handler != nil {
		if opts.StateDir != "" || opts.URL != "" || opts.Token != "" {
			return nil, errors.New("client: a handler is given, and another host or a token")
		}
		c.base, c.http = "http://localhost", &http.Client{Transport: inside{opts.Handler}, CheckRedirect: stay}
		return c, nil
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 4}
	switch {
	case opts.StateDir != "" && opts.URL != "":
		return nil, errors.New("client: both a state directory and an address are given")
	case opts.StateDir != "":
		c.base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return auth.DialControl(ctx, opts.StateDir)
		}
	default:
		var err error
		if c.base, err = Origin(opts.URL); err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
		if err := c.reachOver(transport); err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: stay}
	return c, nil
}

// stay follows no redirect, which would carry the credential elsewhere.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is a request to the host.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	body         any // sent as JSON; nil means none
	also         int // another status that means success, besides 2xx
}

func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	return ask[T](ctx, c, request{method: http.MethodGet, path: path, query: query})
}

func post[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	return ask[T](ctx, c, request{method: http.MethodPost, path: path, body: body})
}

// ask sends a request and decodes the answer.
func ask[T any](ctx context.Context, c *Client, r request) (answer T, err error) {
	err = c.do(ctx, r, &answer)
	return answer, err
}

// do sends a request and decodes the answer into a value.
func (c *Client) do(ctx context.Context, r request, into any) error {
	response, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, int64(maxAnswer)+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: the answer to %s %s is incomplete: %w", ErrBroken, r.method, r.path, err)
	case len(text) > int(maxAnswer):
		return fmt.Errorf("%s %s: the answer is larger than %s", r.method, r.path, maxAnswer)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s %s: the answer cannot be decoded: %w", r.method, r.path, err)
	}
	return nil
}

// open sends a request and returns the answer unless it is an error. The caller must
// close its body.
func (c *Client) open(ctx context.Context, r request) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		body = bytes.NewReader(text)
	}
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	maps.Copy(req.Header, r.header)
	for name, value := range map[string]string{"Toolhost-Client": c.opts.Name, "Toolhost-Session": c.opts.Session} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	c.authorize(req)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if status := response.StatusCode; (status < 200 || status > 299) && status != r.also {
		return nil, problem(response)
	}
	return response, nil
}

// authorize adds the credential, if there is one.
func (c *Client) authorize(req *http.Request) {
	if c.opts.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Token)
	}
}

// unreachable explains why there is no answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the address, which the client may have made up
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		where := c.opts.URL
		if where == "" {
			where = c.opts.StateDir
		}
		return fmt.Errorf("%w at %s", ErrNoHost, where)
	}
	if reason := c.distrust(err); reason != nil {
		return reason
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && c.opts.URL != "" {
		return fmt.Errorf("%w at %s: %w", ErrNoHost, c.opts.URL, op.Err)
	}
	return fmt.Errorf("%w: %w", ErrBroken, err)
}

// problem converts an answer that is an error.
func problem(response *http.Response) error {
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	p := &httpapi.Problem{}
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if response.StatusCode == http.StatusBadRequest && strings.Contains(string(text), "HTTP request to an HTTPS server") { // net/http
		return errors.New("the host serves TLS: its address begins with https://")
	}
	if err != nil || media != "application/problem+json" || json.Unmarshal(text, p) != nil || p.Detail == "" {
		return fmt.Errorf("the server answered %s, which is not an answer of toolhost", response.Status)
	}
	p.Status = response.StatusCode
	return p
}
