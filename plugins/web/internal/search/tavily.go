package search

import (
	"context"
	"encoding/json"
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

func (tavily) results(body []byte) ([]Result, error) {
	var answer struct {
		Results *[]struct {
			Title, URL, Content string
			PublishedDate       string `json:"published_date"`
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
