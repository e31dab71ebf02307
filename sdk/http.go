package sdk

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// HTTPClient returns a client that goes through the host's proxy, if there is
// one: in a confined process it is the only way out. The client has no
// time-out of its own; the call's context ends a request.
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
