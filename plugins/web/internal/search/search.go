// Package search queries web search services, each through its own API.
package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/toolhost/toolhost/plugins/web/internal/fetch"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Query is a search query.
type Query struct {
	Text  string
	Count int
	// Freshness is "day", "week", "month", "year" or "" for any time.
	Freshness string
	// Site is the domain to search; "" is all.
	Site string
	// Key is the API key.
	Key string
}

// Result is a page that matches the query.
type Result struct {
	Title     string `json:"title,omitempty"`
	URL       string `json:"url"`
	Snippet   string `json:"snippet,omitempty"`
	Published string `json:"published,omitempty"`
}

// Provider is a search service.
type Provider interface {
	// Search returns the results, the best first. Its errors are [*tool.Error].
	Search(ctx context.Context, q Query) ([]Result, error)
	// Origin returns the scheme and host of the service.
	Origin() string
}

// Options configure a [Provider].
type Options struct {
	// Provider is "searxng", "brave", "tavily" or "kagi".
	Provider string
	// URL is the base URL of the service.
	URL *url.URL
	// Client sends the requests. It must not follow redirects, which could send the key
	// to another server.
	Client    *http.Client
	UserAgent string
	// Now returns the current time; nil means time.Now.
	Now func() time.Time
}

// New returns a provider.
func New(o Options) (Provider, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &service{name: o.Provider, base: o.URL, client: o.Client, agent: o.UserAgent, now: o.Now}
	switch o.Provider {
	case "searxng":
		s.dialect = searxng{}
	case "brave":
		s.dialect = brave{}
	case "tavily":
		s.dialect = tavily{}
	case "kagi":
		s.dialect = kagi{}
	default:
		return nil, fmt.Errorf("unknown search provider %q", o.Provider)
	}
	return s, nil
}

// DefaultURL returns the base URL of a service; "" if each user runs their own.
func DefaultURL(provider string) string {
	return map[string]string{
		"brave":  "https://api.search.brave.com",
		"tavily": "https://api.tavily.com",
		"kagi":   "https://kagi.com",
	}[provider]
}

// dialect is the API of one service.
type dialect interface {
	// request returns the request for a query.
	request(ctx context.Context, base *url.URL, q Query) (*http.Request, error)
	// results parses the response.
	results(body []byte) ([]Result, error)
}

// service is a [Provider] that uses a dialect.
type service struct {
	dialect
	name   string
	base   *url.URL
	client *http.Client
	agent  string
	now    func() time.Time
}

// maxAnswer bounds the bytes of a response.
const maxAnswer = 4 << 20

// Origin implements [Provider].
func (s *service) Origin() string { return s.base.Scheme + "://" + s.base.Host }

// Search implements [Provider].
func (s *service) Search(ctx context.Context, q Query) ([]Result, error) {
	request, err := s.request(ctx, s.base, q)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", s.agent)
	request.Header.Set("Accept", "application/json")
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, s.unreachable(ctx, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return nil, s.unreachable(ctx, err)
	}
	if err := s.status(answer); err != nil {
		return nil, err
	}
	if len(body) > maxAnswer {
		return nil, s.nonsense(fmt.Errorf("more than %d bytes", maxAnswer))
	}
	found, err := s.results(body)
	if err != nil {
		if failed, ok := errors.AsType[*tool.Error](err); ok {
			return nil, failed
		}
		return nil, s.nonsense(err)
	}
	return tidy(found), nil
}

func (s *service) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && timeout.Timeout() {
		return tool.Errorf(tool.Timeout, "the search service %s did not answer in time", s.name).WithHint("try again later").WithRetry(0).WithCause(err)
	}
	return tool.Errorf(tool.Unavailable, "the search service %s cannot be reached", s.name).
		WithHint("try again later; if it fails again, the administrator should check the setting search.url").WithRetry(0).WithCause(err)
}

// status returns the error that the status code of a response means.
func (s *service) status(answer *http.Response) error {
	cause := fmt.Errorf("the response is %s", answer.Status)
	shown := strings.TrimSpace(fmt.Sprint(answer.StatusCode, " ", http.StatusText(answer.StatusCode))) // not the reason that the server sends
	wait := fetch.RetryAfter(answer.Header, s.now())
	switch code := answer.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code == http.StatusTooManyRequests:
		return tool.Errorf(tool.RateLimited, "the search service %s received too many queries", s.name).
			WithHint("search later, or fetch a page with a known URL").WithRetry(wait).WithCause(cause)
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusPaymentRequired:
		return tool.Errorf(tool.Unavailable, "the search service %s rejects the API key or API access (%s)", s.name, shown).
			WithHint("the administrator should check the secret of the search service; searxng needs the format json enabled in its settings").WithCause(cause)
	case code >= 500:
		return tool.Errorf(tool.Unavailable, "the search service %s failed (%s)", s.name, shown).
			WithHint("search later").WithRetry(wait).WithCause(cause)
	}
	return tool.Errorf(tool.Failed, "the search service %s rejects the query (%s)", s.name, shown).
		WithHint("use other search terms, without site and freshness").WithCause(cause)
}

func (s *service) nonsense(err error) error {
	return tool.Errorf(tool.Failed, "the response of the search service %s is not a list of results", s.name).
		WithHint("the administrator should check the settings search.provider and search.url").WithCause(err)
}

// tidy returns the results with an http or https URL, as plain text.
func tidy(found []Result) []Result {
	kept := []Result{}
	for _, r := range found {
		u, err := url.Parse(strings.TrimSpace(r.URL))
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			continue
		}
		kept = append(kept, Result{
			Title: plain(r.Title, 300), URL: u.String(), Snippet: plain(r.Snippet, 1000), Published: plain(r.Published, 50),
		})
	}
	return kept
}

var tags = regexp.MustCompile(`<[^<>]{0,200}>`)

// plain returns text on one line, without HTML tags and invisible characters.
func plain(text string, most int) string {
	text = html.UnescapeString(tags.ReplaceAllString(text, ""))
	return display.Cut(strings.Join(strings.Fields(display.Visible(strings.ToValidUTF8(text, "\uFFFD"))), " "), most)
}

// get returns a GET request with parameters.
func get(ctx context.Context, base *url.URL, path string, parameters url.Values) (*http.Request, error) {
	u := base.JoinPath(path)
	u.RawQuery = parameters.Encode()
	return http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
}

// post returns a POST request with a JSON body.
func post(ctx context.Context, base *url.URL, path string, value any) (*http.Request, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	return request, nil
}

// withSite returns the search terms with the operator site:, which most services support.
func withSite(q Query) string {
	if q.Site == "" {
		return q.Text
	}
	return q.Text + " site:" + q.Site
}
