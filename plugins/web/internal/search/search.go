// Package search asks services that search the web, each in its own language.
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
	"github.com/toolhost/toolhost/sdk/tool"
)

// Query is what to search for.
type Query struct {
	Text  string
	Count int
	// Freshness is "day", "week", "month", "year" or "" for any time.
	Freshness string
	// Site is a domain; "" is all.
	Site string
	// Key is what the service knows its customer by.
	Key string
}

// Result is one page that was found.
type Result struct {
	Title     string `json:"title"`
	URL       string `json:"url"`
	Snippet   string `json:"snippet,omitempty"`
	Published string `json:"published,omitempty"`
}

// Provider is a service that searches.
type Provider interface {
	// Search returns what was found, the best first. Its errors are [*tool.Error].
	Search(ctx context.Context, q Query) ([]Result, error)
	// Origin is the server that answers.
	Origin() string
}

// Options say which service is asked, and how.
type Options struct {
	// Provider is "searxng", "brave", "tavily" or "kagi".
	Provider string
	// URL is the address of the service.
	URL *url.URL
	// Client sends the requests. It must not follow redirects, which would give the
	// key to others.
	Client    *http.Client
	UserAgent string
	// Now is the time; nil is that of the machine.
	Now func() time.Time
}

// New returns the provider that is named.
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
		return nil, fmt.Errorf("there is no search provider %q", o.Provider)
	}
	return s, nil
}

// DefaultURL is the address of a service; "" if everybody runs their own.
func DefaultURL(provider string) string {
	return map[string]string{
		"brave":  "https://api.search.brave.com",
		"tavily": "https://api.tavily.com",
		"kagi":   "https://kagi.com",
	}[provider]
}

// dialect is how one service is asked, and how it answers.
type dialect interface {
	// request returns the request for a query.
	request(ctx context.Context, base *url.URL, q Query) (*http.Request, error)
	// results reads the answer.
	results(body []byte) ([]Result, error)
}

// service asks in a dialect.
type service struct {
	dialect
	name   string
	base   *url.URL
	client *http.Client
	agent  string
	now    func() time.Time
}

// maxAnswer bounds the bytes of an answer.
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
		WithHint("try again later; if that does not help, the administrator should look at search.url").WithRetry(0).WithCause(err)
}

// status is what is wrong by the number of the answer.
func (s *service) status(answer *http.Response) error {
	cause := fmt.Errorf("the answer is %s", answer.Status)
	shown := strings.TrimSpace(fmt.Sprint(answer.StatusCode, " ", http.StatusText(answer.StatusCode))) // not in the server's words
	wait := fetch.RetryAfter(answer.Header, s.now())
	switch code := answer.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code == http.StatusTooManyRequests:
		return tool.Errorf(tool.RateLimited, "the search service %s has had too many queries", s.name).
			WithHint("search later, or fetch a page whose address is known").WithRetry(wait).WithCause(cause)
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusPaymentRequired:
		return tool.Errorf(tool.Unavailable, "the search service %s refuses the key, or answers no programs (%s)", s.name, shown).
			WithHint("the administrator should look at the secret of web_search; searxng needs format json in its settings").WithCause(cause)
	case code >= 500:
		return tool.Errorf(tool.Unavailable, "the search service %s has failed (%s)", s.name, shown).
			WithHint("search later").WithRetry(wait).WithCause(cause)
	}
	return tool.Errorf(tool.Failed, "the search service %s refuses the query (%s)", s.name, shown).
		WithHint("search with other words, without site and freshness").WithCause(cause)
}

func (s *service) nonsense(err error) error {
	return tool.Errorf(tool.Failed, "the search service %s answers with something that is no list of results", s.name).
		WithHint("the administrator should look at search.provider and search.url").WithCause(err)
}

// tidy returns the results that lead somewhere, as plain text.
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

// plain returns a text on one line, without marks of HTML and what nobody sees.
func plain(text string, most int) string {
	text = html.UnescapeString(tags.ReplaceAllString(text, ""))
	text = strings.Join(strings.Fields(tool.Visible(strings.ToValidUTF8(text, "\uFFFD"))), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

// get returns a request by GET with parameters.
func get(ctx context.Context, base *url.URL, path string, parameters url.Values) (*http.Request, error) {
	u := base.JoinPath(path)
	u.RawQuery = parameters.Encode()
	return http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
}

// post returns a request by POST with JSON.
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

// withSite adds the domain to the words of a query, as most services know it.
func withSite(q Query) string {
	if q.Site == "" {
		return q.Text
	}
	return q.Text + " site:" + q.Site
}
