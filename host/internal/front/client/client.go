// Package client speaks to a running host over its REST interface: to the one
// that holds a state directory, over its control socket, or to one at an
// address. What goes wrong in the interface itself is an [*httpapi.Problem];
// that a tool failed is part of a call's [Outcome].
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

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 * tool.MiB

// ErrNoHost says that no host is running where the client looks for one.
var ErrNoHost = errors.New("no host is running")

// ErrBroken says that the connection to the host broke: whether the host has
// done what it was asked is not known.
var ErrBroken = errors.New("the connection to the host broke")

// Options say which host to speak to, and as who. One of StateDir and URL is
// required.
type Options struct {
	// StateDir is the state directory of a host on this machine.
	StateDir string
	// URL is the address of a host, e.g. "http://127.0.0.1:7780".
	URL string
	// Token is the credential. Over the control socket, none makes an agent.
	Token string
	// Name is what the client calls itself, and Session groups its calls; both
	// may be empty.
	Name, Session string
}

// Client speaks to one host. Its methods may be called from any goroutine; they
// wait for the answer, or for the end of ctx.
type Client struct {
	opts Options
	base string
	http *http.Client
}

// New returns a client, which has not connected yet. The caller should Close
// it.
func New(opts Options) (*Client, error) {
	c := &Client{opts: opts}
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
		u, err := url.Parse(opts.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("client: %q is no address, expected one such as http://127.0.0.1:7780", opts.URL)
		}
		c.base = strings.TrimSuffix(u.Scheme+"://"+u.Host+u.EscapedPath(), "/")
	}
	c.http = &http.Client{
		Transport: transport,
		// A redirect would carry the credential elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is what is asked of the host.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	body         any // sent as JSON; nil means none
	also         int // a status that is a good answer too, beside 2xx
}

// do asks and reads the answer into a value.
func (c *Client) do(ctx context.Context, r request, into any) error {
	response, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, int64(maxAnswer)+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: the answer to %s %s is not whole: %w", ErrBroken, r.method, r.path, err)
	case len(text) > int(maxAnswer):
		return fmt.Errorf("%s %s: the answer has more than %s", r.method, r.path, maxAnswer)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s %s: the answer cannot be read: %w", r.method, r.path, err)
	}
	return nil
}

// open asks and returns the answer if it is a good one. The caller must close
// its body.
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

// unreachable says why there is no answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the address, which may be one of our own making
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		where := c.opts.URL
		if where == "" {
			where = c.opts.StateDir
		}
		return fmt.Errorf("%w at %s", ErrNoHost, where)
	}
	return fmt.Errorf("%w: %w", ErrBroken, err)
}

// problem reads an answer that is none.
func problem(response *http.Response) error {
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	p := &httpapi.Problem{}
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || media != "application/problem+json" || json.Unmarshal(text, p) != nil || p.Detail == "" {
		return fmt.Errorf("the host answered %s, as no toolhost does", response.Status)
	}
	p.Status = response.StatusCode
	return p
}
