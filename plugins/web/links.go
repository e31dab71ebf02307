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
	URL      string `json:"url" jsonschema:"the URL of the page, as given to web_fetch"`
	Match    string `json:"match,omitempty" jsonschema:"return only links whose URL or text contains this, ignoring case"`
	SameHost bool   `json:"same_host,omitempty" jsonschema:"return only links to the host of the page"`
	Offset   int    `json:"offset,omitempty" jsonschema:"the number of links to skip; use it to continue a long list"`
	Limit    int    `json:"limit,omitempty" jsonschema:"the maximum number of links to return" default:"100"`
}

// webLinks is the tool web_links. It sends no request.
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
	response, err := p.client.Do(ctx, fetch.Request{URL: u, OnlyCached: true, Owner: c.User()})
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

// linksResult returns as many of the links as fit, as text and as data.
func linksResult(from *url.URL, d page.Document, in webLinksArgs, budget int) (tool.Result, error) {
	var out strings.Builder
	shown := []page.Link{}
	for _, link := range d.Links {
		text := link.URL + "\n"
		if link.Text != "" {
			text = link.Text + "\n  " + text
		}
		if 3*(out.Len()+len(text)) > budget { // it also appears in the data
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
	case end < d.Total && len(shown) == 0: // skip the link, so that the caller gets past it
		end++
		note = fmt.Sprintf("[1 of %d links omitted: it is too long to show", d.Total)
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
