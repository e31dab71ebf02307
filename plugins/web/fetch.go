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
	URL       string     `json:"url" jsonschema:"URL of the page" role:"url" raw:"true"`
	Format    string     `json:"format,omitempty" jsonschema:"format" enum:"markdown,text,html,raw" default:"markdown"`
	Extract   string     `json:"extract,omitempty" jsonschema:"main article or full page" enum:"article,full" default:"article"`
	Selector  string     `json:"selector,omitempty" jsonschema:"CSS selector of a part"`
	Cursor    sdk.Cursor `json:"cursor,omitempty" jsonschema:"the last next_cursor" alias:"start_index"`
	MaxLength int        `json:"max_length,omitempty" jsonschema:"most characters" min:"1"`
}

// address parses a caller's URL, and refuses one that is not allowed.
func (p *parts) address(text string) (*url.URL, error) {
	if p.unguarded {
		return url.Parse(text)
	}
	u, err := p.guard.URL(text)
	if err != nil {
		return nil, fetch.Refused(err)
	}
	return u, nil
}

// webFetch is the tool web_fetch.
func webFetch(ctx context.Context, p *parts, c *sdk.Call, in webFetchArgs) (tool.Result, error) {
	start, _ := in.Cursor.Position()
	u, err := p.address(in.URL)
	if err != nil {
		return tool.Result{}, err
	}
	response, err := p.client.Do(ctx, fetch.Request{
		URL: u, Robots: p.settings.Robots, Cache: true, Owner: c.User(), Dial: dialFor(c),
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
		Part: page.Part{Start: int(start), Length: in.MaxLength, Bytes: room(c.MaxOutput(), origin)},
	})
	if err != nil {
		return tool.Result{}, err
	}
	facts := fetchFacts(response, document)
	if document.Kind == page.KindBinary {
		text := "Binary content: " + document.MediaType + ", " + tool.ByteSize(len(response.Body)).String()
		return tool.Result{Content: fromOutside(origin, text, ""), Metadata: facts}, nil
	}
	facts["start_index"], facts["end_index"], facts["total_length"] = start, document.End, document.Total
	next, note := partNote(int(start), document)
	if next != "" {
		facts[sdk.NextCursor] = string(next)
	}
	return tool.Result{Content: fromOutside(origin, document.Text, note), Metadata: facts}, nil
}

// partNote returns the cursor of the part that follows a part of a document, and the note
// that names the part. Both are "" for a whole document.
func partNote(start int, d page.Document) (next sdk.Cursor, note string) {
	part := fmt.Sprintf("characters %d-%d of %d", start, d.End, d.Total)
	switch {
	case start == 0 && d.End == d.Total:
		return "", ""
	case d.End == d.Total:
		return "", "[" + part + ", the end]"
	}
	next = sdk.CursorAt(int64(d.End), "")
	return next, next.Note(part)
}

// convert converts a document. It waits while too many others are converted.
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

// enter waits for a slot. The caller frees it by calling leave.
func enter(ctx context.Context, slots chan struct{}) (leave func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fetchFacts returns the metadata of a page.
func fetchFacts(r *fetch.Response, d page.Document) map[string]any {
	facts := map[string]any{
		"url": r.URL.String(), "status": r.Status, "media_type": d.MediaType, "total_bytes": len(r.Body),
		"fetched_at": r.Fetched.UTC().Format(time.RFC3339),
	}
	for name, value := range map[string]string{
		"charset": d.Charset, "title": d.Title, "byline": d.Byline, "published": d.Published, "extract": d.Extract,
	} {
		if value != "" {
			facts[name] = value
		}
	}
	if r.Cached {
		facts["cached"] = true
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

// statusError returns the error for a response that is not a page; nil for a page.
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
		return e(tool.NotFound, "check the URL, or search for the page")
	case r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden:
		return e(tool.PermissionDenied, "the server requires a login; look for the same information elsewhere")
	case r.Status == http.StatusTooManyRequests:
		return e(tool.RateLimited, "wait before you send another request to this host").WithRetry(wait)
	case r.Status >= 500:
		return e(tool.Unavailable, "try again later, or look for the same information elsewhere").WithRetry(wait)
	}
	return e(tool.Failed, "use another page, or get the whole response with http_request")
}
