package sdk

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// HTTPClient returns a client that uses the host's proxy, if there is one. In a
// sandboxed process, the proxy is the only way to the network. The client has no
// time-out; the context of the call ends a request.
func (p *Plugin) HTTPClient() *http.Client { return p.httpClient }

func newHTTPClient(proxy *atomic.Pointer[url.URL]) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 func(*http.Request) (*url.URL, error) { return proxy.Load(), nil },
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          16,
		IdleConnTimeout:       time.Minute,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}}
}
