package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/toolhost/toolhost/plugins/web/internal/fetch"
	"github.com/toolhost/toolhost/plugins/web/internal/page"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type webLinksArgs struct {
	URL      string `json:"url" jsonschema:"the address of a page that was fetched"`
	Match    string `json:"match,omitempty" jsonschema:"only links whose address or text contains this, in any case"`
	SameHost bool   `json:"same_host,omitempty" jsonschema:"only links to the host of the page"`
	Offset   int    `json:"offset,omitempty" jsonschema:"how many links to leave out at the beginning, to read on"`
	Limit    int    `json:"limit,omitempty" jsonschema:"how many links to return at most" default:"100"`
}

// webLinks is the tool web_links. It contacts nobody.
func webLinks(ctx context.Context, p *parts, c *sdk.Call, in webLinksArgs) (tool.Result, error) {
	switch {
	case in.Limit < 1:
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "limit is %d, expected 1 or more", in.Limit)
	case in.Offset < 0:
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "offset is %d, expected 0 or more", in.Offset)
	}
	u, err := p.address(in.URL)
	if err != nil {
		return tool.Result{}, err
	}
	response, err := p.client.Do(ctx, fetch.Request{URL: u, Cache: p.cacheOf(c), OnlyCached: true})
	if err != nil {
		return tool.Result{}, err
	}
	defer response.Release()
	origin := originOf(response.URL)
	document, err := p.convert(ctx, page.Request{
		Body: response.Body, ContentType: response.Header.Get("Content-Type"), URL: response.URL.String(),
		Links: &page.LinkRequest{Match: in.Match, SameHost: in.SameHost, Offset: in.Offset, Limit: in.Limit, Bytes: room(c.MaxOutput(), origin)},
	})
	if err != nil {
		return tool.Result{}, err
	}
	return linksResult(response.URL, document, in, room(c.MaxOutput(), origin))
}

// linksResult shows as many of the links as fit, as text and as data.
func linksResult(from *url.URL, d page.Document, in webLinksArgs, budget int) (tool.Result, error) {
	var out strings.Builder
	shown := []page.Link{}
	for _, link := range d.Links {
		text := link.URL + "\n"
		if link.Text != "" {
			text = link.Text + "\n  " + text
		}
		if 3*(out.Len()+len(text)) > budget { // once more as data
			break
		}
		out.WriteString(text)
		shown = append(shown, link)
	}
	end := min(in.Offset, d.Total) + len(shown)
	note := ""
	switch {
	case d.Total == 0:
		note = "[no links]"
	case end < d.Total && len(shown) == 0: // whoever goes on comes past it
		end++
		note = fmt.Sprintf("[1 link of %d left out, which is too long to show", d.Total)
		if end < d.Total {
			note += fmt.Sprintf("; continue with offset=%d", end)
		}
		note += "]"
	case end < d.Total:
		note = fmt.Sprintf("[links %d-%d of %d; continue with offset=%d]", in.Offset, end, d.Total, end)
	}
	structured, err := json.Marshal(map[string]any{"links": shown, "total": d.Total})
	if err != nil {
		return tool.Result{}, err
	}
	facts := outsideFacts(originOf(from))
	facts["url"], facts["total"], facts["shown"] = from.String(), d.Total, len(shown)
	if end < d.Total {
		facts["next_offset"] = end
	}
	return tool.Result{Content: fromOutside(originOf(from), out.String(), note), Structured: structured, Metadata: facts}, nil
}
