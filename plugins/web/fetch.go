package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toolhost/toolhost/plugins/web/internal/fetch"
	"github.com/toolhost/toolhost/plugins/web/internal/page"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type webFetchArgs struct {
	URL        string `json:"url" jsonschema:"the address of the page, as https://example.com/page" role:"url" raw:"true"`
	Format     string `json:"format,omitempty" jsonschema:"how the page is returned: as markdown, as plain text, as cleaned html, or raw as it came" enum:"markdown,text,html,raw" default:"markdown"`
	Extract    string `json:"extract,omitempty" jsonschema:"what of the page: the article that is found in it, or all of it" enum:"article,full" default:"article"`
	Selector   string `json:"selector,omitempty" jsonschema:"a CSS selector, as main or #content: returns the elements that it names, instead of extract"`
	StartIndex int    `json:"start_index,omitempty" jsonschema:"the first character to return, counted from 0 (the default); to read on in a long page"`
	MaxLength  int    `json:"max_length,omitempty" jsonschema:"how many characters to return at most; the default is as many as fit"`
}

// webFetch is the tool web_fetch.
func webFetch(ctx context.Context, p *parts, c *sdk.Call, in webFetchArgs) (tool.Result, error) {
	switch {
	case in.StartIndex < 0:
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "start_index is %d, expected 0 or more", in.StartIndex)
	case in.MaxLength < 0:
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "max_length is %d, expected 1 or more", in.MaxLength).
			WithHint("leave max_length out for as much as fits")
	}
	u, err := p.address(in.URL)
	if err != nil {
		return tool.Result{}, err
	}
	response, err := p.client.Do(ctx, fetch.Request{
		URL: u, Robots: p.settings.Robots, Cache: p.cacheOf(c), Jar: p.jarOf(c),
	})
	if err != nil {
		return tool.Result{}, err
	}
	defer response.Release()
	if err := statusError(u, response); err != nil {
		return tool.Result{}, err
	}
	origin := originOf(response.URL)
	document, err := p.convert(ctx, page.Request{
		Body: response.Body, ContentType: response.Header.Get("Content-Type"), URL: response.URL.String(),
		Format: page.Format(in.Format), Whole: in.Extract == "full", Selector: in.Selector,
		Part: page.Part{Start: in.StartIndex, Length: in.MaxLength, Bytes: room(c.MaxOutput(), origin)},
	})
	if err != nil {
		return tool.Result{}, err
	}
	facts := fetchFacts(response, document)
	if document.Kind == page.KindBinary {
		text := "Binary content: " + document.MediaType + ", " + tool.ByteSize(len(response.Body)).String()
		return tool.Result{Content: fromOutside(origin, text, ""), Metadata: facts}, nil
	}
	facts["start_index"], facts["end_index"], facts["total_length"] = in.StartIndex, document.End, document.Total
	if document.End < document.Total {
		facts["next_start_index"] = document.End
	}
	return tool.Result{Content: fromOutside(origin, document.Text, partNote(in.StartIndex, document)), Metadata: facts}, nil
}

// partNote says how to go on after a part of a document; "" if it is all.
func partNote(start int, d page.Document) string {
	switch {
	case start == 0 && d.End == d.Total:
		return ""
	case d.End == d.Total:
		return fmt.Sprintf("[characters %d-%d of %d, the end]", start, d.End, d.Total)
	}
	return fmt.Sprintf("[characters %d-%d of %d; continue with start_index=%d]", start, d.End, d.Total, d.End)
}

// convert reads a document, not too many at once.
func (p *parts) convert(ctx context.Context, r page.Request) (page.Document, error) {
	if page.Apart(r) {
		leave, err := enter(ctx, p.apart)
		if err != nil {
			return page.Document{}, err
		}
		defer leave()
	}
	return page.Isolated(ctx, r)
}

// enter waits for a place, which is free again after leave.
func enter(ctx context.Context, places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fetchFacts are the metadata of a page.
func fetchFacts(r *fetch.Response, d page.Document) map[string]any {
	facts := map[string]any{
		"url": r.URL.String(), "status": r.Status, "media_type": d.MediaType, "total_bytes": len(r.Body),
		"fetched_at": r.Fetched.UTC().Format(time.RFC3339),
	}
	for name, value := range map[string]string{
		"charset": d.Charset, "title": d.Title, "byline": d.Byline, "published": d.Published, "extract": d.Extract, "cache": r.Cached,
	} {
		if value != "" {
			facts[name] = value
		}
	}
	if d.Pages > 0 {
		facts["pages"] = d.Pages
	}
	if len(r.Redirects) > 0 {
		facts["redirects"] = r.Redirects
	}
	maps.Copy(facts, outsideFacts(originOf(r.URL)))
	return facts
}

// statusError is for an answer that is no page.
func statusError(asked *url.URL, r *fetch.Response) error {
	if r.Status >= 200 && r.Status < 300 {
		return nil
	}
	e := func(code tool.Code, hint string) *tool.Error {
		text := strings.TrimSpace(fmt.Sprint(r.Status, " ", http.StatusText(r.Status)))
		return tool.Errorf(code, "%s answered %s", fetch.Where(asked, r.URL), text).WithHint("%s", hint)
	}
	wait := fetch.RetryAfter(r.Header, r.Fetched)
	switch {
	case r.Status == http.StatusNotFound || r.Status == http.StatusGone:
		return e(tool.NotFound, "check the address, or search for the page")
	case r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden:
		return e(tool.PermissionDenied, "the server wants to know who asks; look for the same elsewhere")
	case r.Status == http.StatusTooManyRequests:
		return e(tool.RateLimited, "wait before the next request to this host").WithRetry(wait)
	case r.Status >= 500:
		return e(tool.Unavailable, "try again later, or look for the same elsewhere").WithRetry(wait)
	}
	return e(tool.Failed, "look for another page, or see the whole answer with http_request")
}
