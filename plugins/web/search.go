package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/plugins/web/internal/search"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type webSearchArgs struct {
	Query     string `json:"query" jsonschema:"search terms" raw:"true"`
	Count     int    `json:"count,omitempty" jsonschema:"maximum number of results" min:"1" max:"20" default:"10"`
	Freshness string `json:"freshness,omitempty" jsonschema:"published within the last" enum:"day,week,month,year"`
	Site      string `json:"site,omitempty" jsonschema:"only this domain"`
}

const maxQuery = 1000

// webSearch is the tool web_search.
func webSearch(ctx context.Context, p *parts, c *sdk.Call, in webSearchArgs) (tool.Result, error) {
	query := search.Query{Text: strings.TrimSpace(in.Query), Count: in.Count, Freshness: in.Freshness, Site: strings.TrimSpace(in.Site)}
	switch {
	case query.Text == "":
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "query is empty")
	case len(query.Text) > maxQuery:
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "query has %d bytes, expected at most %d", len(query.Text), maxQuery).
			WithHint("use a few words")
	}
	if query.Site != "" {
		site, err := p.guard.Name(query.Site)
		if err != nil {
			return tool.Result{}, tool.Errorf(tool.InvalidArgument, "site is %q, expected a domain that the settings allow", in.Site).
				WithHint("use a domain such as docs.python.org, without https://").WithCause(err)
		}
		query.Site = site
	}
	if name := p.searchSecret(); name != "" {
		key, err := c.Secret(ctx, name)
		if err != nil {
			return tool.Result{}, err
		}
		query.Key = strings.TrimSpace(key)
	}
	leave, err := enter(ctx, p.asking)
	if err != nil {
		return tool.Result{}, err
	}
	defer leave()
	results, err := p.search.Search(ctx, query)
	if err != nil {
		return tool.Result{}, err
	}
	return p.searchResult(results[:min(len(results), in.Count)], room(c.MaxOutput(), p.search.Origin()))
}

// searchResult returns as many results as fit, as text and as data.
func (p *parts) searchResult(found []search.Result, budget int) (tool.Result, error) {
	var out strings.Builder
	shown := []search.Result{}
	for i, r := range found {
		text := fmt.Sprintf("%d. %s\n", i+1, r.URL)
		if r.Title != "" {
			text = fmt.Sprintf("%d. %s\n   %s\n", i+1, r.Title, r.URL)
		}
		if r.Published != "" {
			text += "   " + r.Published + "\n"
		}
		if r.Snippet != "" {
			text += "   " + r.Snippet + "\n"
		}
		if 3*(out.Len()+len(text)) > budget { // it also appears in the data
			break
		}
		out.WriteString(text)
		shown = append(shown, r)
	}
	note := ""
	switch {
	case len(found) == 0:
		note = "[no results]"
	case len(shown) < len(found):
		note = fmt.Sprintf("[only %d of %d results fit]", len(shown), len(found))
	}
	structured, err := json.Marshal(map[string]any{"results": shown})
	if err != nil {
		return tool.Result{}, err
	}
	origin := p.search.Origin()
	facts := outsideFacts(origin)
	facts["provider"], facts["shown"] = p.settings.Search.Provider, len(shown)
	return tool.Result{Content: fromOutside(origin, out.String(), note), Structured: structured, Metadata: facts}, nil
}
