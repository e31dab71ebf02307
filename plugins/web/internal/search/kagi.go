package search

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/toolhost/toolhost/sdk/tool"
)

// kagi is the Kagi Search API: GET /api/v0/search?q=...
type kagi struct{}

func (kagi) request(ctx context.Context, base *url.URL, q Query) (*http.Request, error) {
	if q.Freshness != "" {
		return nil, tool.Errorf(tool.InvalidArgument, "the search service kagi does not support freshness").
			WithHint("omit freshness, and add the year to the query")
	}
	request, err := get(ctx, base, "/api/v0/search", url.Values{"q": {withSite(q)}, "limit": {strconv.Itoa(q.Count)}})
	if err == nil {
		request.Header.Set("Authorization", "Bot "+q.Key)
	}
	return request, err
}

func (kagi) results(body []byte) ([]Result, error) {
	var answer struct {
		Data *[]struct {
			// T is 0 for a result and 1 for related searches.
			T                              int
			URL, Title, Snippet, Published string
		} `json:"data"`
		Error []struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if len(answer.Error) > 0 {
		return nil, tool.Errorf(tool.Failed, "the search service kagi rejects the query (error %d)", answer.Error[0].Code).
			WithHint("use other search terms; if it fails again, the administrator should check the secret of the search service")
	}
	if answer.Data == nil {
		return nil, errNoResults
	}
	var found []Result
	for _, r := range *answer.Data {
		if r.T == 0 {
			found = append(found, Result{Title: r.Title, URL: r.URL, Snippet: r.Snippet, Published: r.Published})
		}
	}
	return found, nil
}
