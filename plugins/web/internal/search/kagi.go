package search

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/toolhost/toolhost/sdk/tool"
)

// kagi asks the Kagi Search API: GET /api/v0/search?q=...
type kagi struct{}

func (kagi) request(ctx context.Context, base *url.URL, q Query) (*http.Request, error) {
	if q.Freshness != "" {
		return nil, tool.Errorf(tool.InvalidArgument, "the search service kagi cannot search by freshness").
			WithHint("leave freshness out, and put the year into the query")
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
			// T is 0 for a page that was found, 1 for related searches.
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
		return nil, tool.Errorf(tool.Failed, "the search service kagi refuses the query (its error %d)", answer.Error[0].Code).
			WithHint("search with other words; if that does not help, the administrator should look at the secret of web_search")
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
