package search

import (
	"context"
	"net/http"
	"net/url"
)

// tavily is the Tavily API: POST /search with JSON.
type tavily struct{}

type tavilyQuery struct {
	Query          string   `json:"query"`
	MaxResults     int      `json:"max_results"`
	SearchDepth    string   `json:"search_depth"`
	TimeRange      string   `json:"time_range,omitempty"`
	IncludeDomains []string `json:"include_domains,omitempty"`
}

func (tavily) request(ctx context.Context, base *url.URL, q Query) (*http.Request, error) {
	body := tavilyQuery{Query: q.Text, MaxResults: q.Count, SearchDepth: "basic", TimeRange: q.Freshness}
	if q.Site != "" {
		body.IncludeDomains = []string{q.Site}
	}
	request, err := post(ctx, base, "/search", body)
	if err == nil {
		request.Header.Set("Authorization", "Bearer "+q.Key)
	}
	return request, err
}

func (tavily) results(body []byte) ([]Result, error) { return contentResults(body) }
