package sdk

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/sdk/proxy"
)

// Proxy returns the address of the host's proxy with the authority of the call, so that the host
// knows which call a connection is for, and can ask its user; nil if there is no proxy. Use it with
// [http.ProxyURL] or proxy.Dial, and close the connections when the call ends.
func (c *Call) Proxy() *url.URL {
	at := c.proxy.Load()
	if at == nil || len(c.data.Context.Ticket) == 0 {
		return at
	}
	own := *at
	own.User = url.UserPassword(proxy.User, base64.RawURLEncoding.EncodeToString(c.data.Context.Ticket))
	return &own
}

// HTTPClient returns a client that uses the host's proxy, if there is one. In a
// sandboxed process, the proxy is the only way to the network. The client has no
// time-out; the context of the call ends a request.
func (p *Plugin) HTTPClient() *http.Client { return p.httpClient }

func newHTTPClient(at *atomic.Pointer[url.URL]) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 func(*http.Request) (*url.URL, error) { return at.Load(), nil },
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          16,
		IdleConnTimeout:       time.Minute,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}}
}
