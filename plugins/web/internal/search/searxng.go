package search

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
)

// searxng asks a server of one's own: GET /search?q=...&format=json.
type searxng struct{}

func (searxng) request(ctx context.Context, base *url.URL, q Query) (*http.Request, error) {
	parameters := url.Values{"q": {withSite(q)}, "format": {"json"}}
	if q.Freshness != "" {
		parameters.Set("time_range", q.Freshness)
	}
	request, err := get(ctx, base, "/search", parameters)
	if err == nil && q.Key != "" {
		request.Header.Set("Authorization", "Bearer "+q.Key) // of what stands in front of it
	}
	return request, err
}

func (searxng) results(body []byte) ([]Result, error) {
	var answer struct {
		Results *[]struct {
			Title, URL, Content string
			PublishedDate       string `json:"publishedDate"`
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
		found = append(found, Result{Title: r.Title, URL: r.URL, Snippet: r.Content, Published: r.PublishedDate})
	}
	return found, nil
}

// errNoResults says that an answer has no list of results, not even an empty one.
var errNoResults = errors.New("there is no list of results")
