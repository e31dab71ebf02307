package search

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
)

// searxng is the API of a SearXNG server: GET /search?q=...&format=json.
type searxng struct{}

func (searxng) request(ctx context.Context, base *url.URL, q Query) (*http.Request, error) {
	parameters := url.Values{"q": {withSite(q)}, "format": {"json"}}
	if q.Freshness != "" {
		parameters.Set("time_range", q.Freshness)
	}
	request, err := get(ctx, base, "/search", parameters)
	if err == nil && q.Key != "" {
		request.Header.Set("Authorization", "Bearer "+q.Key) // for a proxy in front of the server
	}
	return request, err
}

func (searxng) results(body []byte) ([]Result, error) { return contentResults(body) }

// contentResults parses the list of results that SearXNG and Tavily return.
func contentResults(body []byte) ([]Result, error) {
	var answer struct {
		Results *[]struct {
			Title, URL, Content string
			SearxngDate         string `json:"publishedDate"`
			TavilyDate          string `json:"published_date"`
		} `json:"results"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if answer.Results == nil {
		return nil, errNoResults
	}
	var found []Result
	for _, r := range *answer.Results {
		found = append(found, Result{Title: r.Title, URL: r.URL, Snippet: r.Content, Published: cmp.Or(r.SearxngDate, r.TavilyDate)})
	}
	return found, nil
}

// errNoResults reports that a response has no list of results, not even an empty one.
var errNoResults = errors.New("the response has no list of results")
