package search

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// brave is the Brave Search API: GET /res/v1/web/search?q=...
type brave struct{}

func (brave) request(ctx context.Context, base *url.URL, q Query) (*http.Request, error) {
	parameters := url.Values{"q": {withSite(q)}, "count": {strconv.Itoa(q.Count)}, "text_decorations": {"false"}}
	if freshness := map[string]string{"day": "pd", "week": "pw", "month": "pm", "year": "py"}[q.Freshness]; freshness != "" {
		parameters.Set("freshness", freshness)
	}
	request, err := get(ctx, base, "/res/v1/web/search", parameters)
	if err == nil {
		request.Header.Set("X-Subscription-Token", q.Key)
	}
	return request, err
}

func (brave) results(body []byte) ([]Result, error) {
	var answer struct {
		Type string `json:"type"`
		Web  struct {
			Results []struct {
				Title, URL, Description, Age string
				PageAge                      string `json:"page_age"`
			} `json:"results"`
		} `json:"web"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if answer.Type != "search" { // a response without results has no "web"
		return nil, errNoResults
	}
	var found []Result
	for _, r := range answer.Web.Results {
		found = append(found, Result{Title: r.Title, URL: r.URL, Snippet: r.Description, Published: cmp.Or(r.PageAge, r.Age)})
	}
	return found, nil
}
