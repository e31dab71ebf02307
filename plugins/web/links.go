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
	URL      string     `json:"url" jsonschema:"URL as given to web_fetch"`
	Match    string     `json:"match,omitempty" jsonschema:"text in link or URL"`
	SameHost bool       `json:"same_host,omitempty" jsonschema:"only of its host"`
	Limit    int        `json:"limit,omitempty" jsonschema:"most links" min:"1" default:"100"`
	Cursor   sdk.Cursor `json:"cursor,omitempty" jsonschema:"the last next_cursor" alias:"offset"`
}

// webLinks is the tool web_links. It sends no request.
func webLinks(ctx context.Context, p *parts, c *sdk.Call, in webLinksArgs) (tool.Result, error) {
	offset, _ := in.Cursor.Position()
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
		Links: &page.LinkRequest{Match: in.Match, SameHost: in.SameHost, Offset: int(offset), Limit: in.Limit, Bytes: room(c.MaxOutput(), origin)},
	})
	if err != nil {
		return tool.Result{}, err
	}
	return linksResult(response.URL, document, int(offset), room(c.MaxOutput(), origin))
}

// linksResult returns as many of the links as fit, as text and as data.
func linksResult(from *url.URL, d page.Document, offset, budget int) (tool.Result, error) {
	var out strings.Builder
	shown := []page.Link{}
	for _, link := range d.Links {
		text := link.URL + "\n"
		if link.Text != "" {
			text = link.Text + "\n  " + text
		}
		if link.Title != "" {
			text += "  " + link.Title + "\n"
		}
		if 3*(out.Len()+len(text)) > budget { // it also appears in the data
			break
		}
		out.WriteString(text)
		shown = append(shown, link)
	}
	end := min(offset, d.Total) + len(shown)
	part := fmt.Sprintf("links %d-%d of %d", offset, end, d.Total)
	if end < d.Total && len(shown) == 0 { // skip the link, so that the caller gets past it
		end++
		part = fmt.Sprintf("1 of %d links omitted: it is too long to show", d.Total)
	}
	var next sdk.Cursor
	if end < d.Total {
		next = sdk.CursorAt(int64(end), "")
	}
	note := next.Note(part)
	switch {
	case d.Total == 0:
		note = "[no links]"
	case next == "" && len(shown) == 0 && offset < d.Total:
		note = "[" + part + "]"
	}
	structured, err := json.Marshal(map[string]any{"links": shown, "total": d.Total})
	if err != nil {
		return tool.Result{}, err
	}
	facts := outsideFacts(originOf(from))
	facts["url"], facts["total"], facts["shown"] = from.String(), d.Total, len(shown)
	if d.Title != "" {
		facts["title"] = d.Title
	}
	if next != "" {
		facts[sdk.NextCursor] = string(next)
	}
	return tool.Result{Content: fromOutside(originOf(from), out.String(), note), Structured: structured, Metadata: facts}, nil
}
