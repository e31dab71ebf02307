package transport

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxRedirects is the number of redirects that one request follows.
	maxRedirects = 3
	// maxErrorBody is how much of the body of an error is read.
	maxErrorBody = 64 << 10
)

// HTTPOptions are the options of a server with a URL.
type HTTPOptions struct {
	// URL is the address of the server.
	URL string
	// Client sends the requests, through the host's proxy if there is one.
	Client *http.Client
	// Headers are sent with each request to the host of URL, and to no other.
	Headers map[string]string
	// MaxMessage is the maximum size of one message of the server.
	MaxMessage tool.ByteSize
}

// NewHTTP returns a transport for a server with a URL (streamable HTTP).
func NewHTTP(opts HTTPOptions) (mcp.Transport, error) {
	at, err := url.Parse(opts.URL)
	if err != nil {
		return nil, errors.New("the URL cannot be read") // the error repeats it, with what it holds
	}
	client := *opts.Client
	base := client.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	client.Transport = &bounded{base: base, origin: at, headers: opts.Headers, most: int64(opts.MaxMessage)}
	client.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		switch {
		case !sameOrigin(to.URL, at):
			return fmt.Errorf("the server redirects to another host, %s, which is not followed; configure that address", to.URL.Host)
		case len(via) > maxRedirects:
			return fmt.Errorf("the server redirects more than %d times", maxRedirects)
		}
		return nil
	}
	return &mcp.StreamableClientTransport{Endpoint: opts.URL, HTTPClient: &client, MaxEventSize: int(opts.MaxMessage)}, nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

// bounded adds headers to requests and bounds the bodies of answers.
type bounded struct {
	base    http.RoundTripper
	origin  *url.URL
	headers map[string]string
	most    int64
}

var _ http.RoundTripper = (*bounded)(nil)

// RoundTrip implements [http.RoundTripper].
func (b *bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	if sameOrigin(request.URL, b.origin) {
		request = request.Clone(request.Context())
		for name, value := range b.headers {
			request.Header.Set(name, value)
		}
	}
	note(request.Context())
	answer, err := b.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	most := b.most
	if answer.StatusCode >= http.StatusBadRequest {
		most = maxErrorBody
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") && answer.StatusCode == http.StatusOK {
		return answer, nil // its events are bounded one by one
	}
	answer.Body = &boundedBody{ReadCloser: answer.Body, left: most, most: most}
	return answer, nil
}

// boundedBody is a body that fails once it is too long.
type boundedBody struct {
	io.ReadCloser

	left, most int64
}

// Read implements [io.Reader].
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, fmt.Errorf("the server sent a message that is larger than %s", tool.ByteSize(b.most))
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, fmt.Errorf("the server sent a message that is larger than %s", tool.ByteSize(b.most))
	}
	return n, err
}
