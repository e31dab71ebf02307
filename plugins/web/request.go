package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/toolhost/toolhost/plugins/web/internal/fetch"
	"github.com/toolhost/toolhost/plugins/web/internal/page"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type httpRequestArgs struct {
	URL     string            `json:"url" jsonschema:"the address, as https://api.example.com/items" role:"url"`
	Method  string            `json:"method" jsonschema:"the method; all but GET and HEAD count as changes" enum:"GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS"`
	Headers map[string]string `json:"headers,omitempty" jsonschema:"headers by name; {{secret:NAME}} in a value stands for a secret that the administrator lets be sent to this host"`
	Body    string            `json:"body,omitempty" jsonschema:"what is sent, as text; give its type as the header Content-Type"`
	JSON    string            `json:"json,omitempty" jsonschema:"what is sent instead of body: a JSON value, as text; its Content-Type is application/json"`
}

const (
	maxHeaders     = 50
	maxHeaderBytes = 16 << 10
	maxRequestBody = 5 << 20
)

// httpRequest is the tool http_request.
func httpRequest(ctx context.Context, p *parts, c *sdk.Call, in httpRequestArgs) (tool.Result, error) {
	plan, err := p.plan(c, in)
	var digest []byte
	if err == nil {
		digest = plan.digest()
	}
	if err := sdk.CheckPreview(c.PreviewDigest(), digest, err); err != nil {
		return tool.Result{}, err
	}
	values, err := plan.reveal(ctx, c)
	if err != nil {
		return tool.Result{}, err
	}
	hider := newHider(values)
	response, err := p.client.Do(ctx, fetch.Request{
		Method: plan.method, URL: plan.url, Header: plan.header, Body: plan.body, Jar: p.jarOf(c),
		Check: p.checkRequest,
	})
	if err != nil {
		return tool.Result{}, hidden(err, hider)
	}
	defer response.Release()
	return p.requestResult(ctx, response, hider, c.MaxOutput())
}

// hidden is an error without the values of secrets. Its cause, which is for the log,
// is left out: it holds addresses that a server has chosen.
func hidden(err error, h *hider) error {
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		return err
	}
	return &tool.Error{Code: e.Code, Message: h.hide(e.Message), Hint: h.hide(e.Hint), Retryable: e.Retryable, RetryAfter: e.RetryAfter}
}

// checkRequest judges an address that http_request contacts, on each hop.
func (p *parts) checkRequest(u *url.URL) error { return p.requests.Domain(u.Hostname()) }

// previewRequest says what a call of http_request would send.
func previewRequest(_ context.Context, p *parts, c *sdk.Call, in httpRequestArgs) (tool.Preview, error) {
	plan, err := p.plan(c, in)
	if err != nil {
		return tool.Preview{}, err
	}
	return tool.Preview{Summary: plan.summary(), Content: []tool.Content{tool.Text(plan.text())}, Digest: plan.digest()}, nil
}

// requestPlan is a request before it is sent, without the values of its secrets.
type requestPlan struct {
	method  string
	url     *url.URL
	header  http.Header
	body    []byte
	secrets []string // their names, sorted
	cookies []string // the names of those of the session, sorted
}

// plan reads the arguments of a request, and refuses what may not be sent.
func (p *parts) plan(c *sdk.Call, in httpRequestArgs) (*requestPlan, error) {
	u, err := p.address(in.URL)
	if err != nil {
		return nil, err
	}
	if err := p.checkRequest(u); err != nil {
		return nil, fetch.Refused(err)
	}
	plan := &requestPlan{method: in.Method, url: u, header: make(http.Header)}
	if err := plan.setHeaders(in.Headers); err != nil {
		return nil, err
	}
	if err := plan.setBody(in); err != nil {
		return nil, err
	}
	if plan.secrets, err = p.secretsIn(plan.header, u); err != nil {
		return nil, err
	}
	if jar := p.jarOf(c); jar != nil {
		for _, cookie := range jar.Cookies(u) {
			plan.cookies = append(plan.cookies, cookie.Name)
		}
		slices.Sort(plan.cookies)
	}
	return plan, nil
}

// setHeaders takes the headers of the caller, but those that are the connection's.
func (r *requestPlan) setHeaders(headers map[string]string) error {
	if len(headers) > maxHeaders {
		return tool.Errorf(tool.InvalidArgument, "there are %d headers, at most %d are possible", len(headers), maxHeaders)
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		total += len(name) + len(value)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return tool.Errorf(tool.InvalidArgument, "%q is no name of a header", name)
		case !httpguts.ValidHeaderFieldValue(value):
			return tool.Errorf(tool.InvalidArgument, "the value of the header %s holds characters that none may have, such as a line break", name)
		case ownHeader(name):
			return tool.Errorf(tool.InvalidArgument, "the header %s cannot be set: it belongs to the connection", name).WithHint("leave it out")
		}
		key := http.CanonicalHeaderKey(name)
		if _, twice := r.header[key]; twice {
			return tool.Errorf(tool.InvalidArgument, "the header %s is given twice", key)
		}
		r.header[key] = []string{value}
	}
	if total > maxHeaderBytes {
		return tool.Errorf(tool.InvalidArgument, "the headers have %d bytes, at most %d are possible", total, maxHeaderBytes)
	}
	return nil
}

// ownHeader reports whether a header is not the caller's to set.
func ownHeader(name string) bool {
	name = strings.ToLower(name)
	if strings.HasPrefix(name, "proxy-") {
		return true
	}
	return slices.Contains([]string{
		"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "accept-encoding", "expect", "http2-settings",
	}, name)
}

func (r *requestPlan) setBody(in httpRequestArgs) error {
	given := in.JSON != ""
	switch {
	case given && in.Body != "":
		return tool.Errorf(tool.InvalidArgument, "both body and json are given").WithHint("give one of them")
	case (given || in.Body != "") && (r.method == http.MethodGet || r.method == http.MethodHead):
		return tool.Errorf(tool.InvalidArgument, "a request with the method %s sends nothing", r.method).WithHint("put it into the address, or use POST")
	case len(in.JSON)+len(in.Body) > maxRequestBody:
		return tool.Errorf(tool.InvalidArgument, "the request has %d bytes, at most %d are possible", len(in.JSON)+len(in.Body), maxRequestBody)
	case given && !json.Valid([]byte(in.JSON)):
		return tool.Errorf(tool.InvalidArgument, "json is no JSON value").WithHint("give an object as {\"name\": \"value\"}, or send other text as body")
	case given:
		r.body = []byte(in.JSON)
		if r.header.Get("Content-Type") == "" {
			r.header.Set("Content-Type", "application/json")
		}
	case in.Body != "":
		r.body = []byte(in.Body)
		if r.header.Get("Content-Type") == "" {
			r.header.Set("Content-Type", "text/plain; charset=utf-8")
		}
	}
	return nil
}

// digest identifies the request.
func (r *requestPlan) digest() []byte {
	sum := sha256.Sum256([]byte(r.text()))
	return sum[:]
}

func (r *requestPlan) summary() string {
	text := fmt.Sprintf("Sends %s %s", r.method, tool.VisibleName(r.url.String()))
	if len(r.body) > 0 {
		text += fmt.Sprintf(" with %d bytes", len(r.body))
	}
	if len(r.secrets) > 0 {
		text += ", with the secret " + strings.Join(r.secrets, " and ")
	}
	if len(r.cookies) > 0 {
		text += fmt.Sprintf(", with %d cookies of the session", len(r.cookies))
	}
	return text
}

// text is the request as it would be sent, but for the values of secrets and of the
// session's cookies.
func (r *requestPlan) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s\n", r.method, r.url)
	for _, name := range slices.Sorted(maps.Keys(r.header)) {
		fmt.Fprintf(&out, "%s: %s\n", name, r.header.Get(name))
	}
	if len(r.cookies) > 0 {
		fmt.Fprintf(&out, "[cookies of the session: %s]\n", tool.VisibleName(strings.Join(r.cookies, ", ")))
	}
	fmt.Fprintf(&out, "\n%s", r.body)
	return out.String()
}

const (
	// maxShownHeaders and maxShownHeader bound the headers that are shown, and
	// maxShownBody the body.
	maxShownHeaders = 60
	maxShownHeader  = 500
	maxShownBody    = 256 << 10
)

// requestResult is the answer of a server, without the values of secrets that were
// sent to it.
func (p *parts) requestResult(ctx context.Context, r *fetch.Response, h *hider, output tool.ByteSize) (tool.Result, error) {
	origin := h.hide(originOf(r.URL))
	facts := outsideFacts(origin)
	facts["url"], facts["status"], facts["total_bytes"] = h.hide(r.URL.String()), r.Status, len(r.Body)
	if len(r.Redirects) > 0 {
		var redirects []string
		for _, address := range r.Redirects {
			redirects = append(redirects, h.hide(address))
		}
		facts["redirects"] = redirects
	}
	head, headers := shownHeaders(r, h)
	facts["headers"] = headers
	body, mediaType, note, err := p.shownBody(ctx, r, h)
	if err != nil {
		return tool.Result{}, err
	}
	if mediaType != "" {
		facts["media_type"] = mediaType
	}
	return tool.Result{Content: blocks(origin, head+"\n"+body, note, output), Metadata: facts}, nil
}

// shownHeaders are the status and the headers of an answer, as text and as data.
func shownHeaders(r *fetch.Response, h *hider) (string, map[string]string) {
	headers := make(map[string]string)
	var out strings.Builder
	fmt.Fprintf(&out, "%s %d %s\n", r.Proto, r.Status, http.StatusText(r.Status))
	for _, key := range slices.Sorted(maps.Keys(r.Header)) {
		name, value := h.hide(key), h.hide(tool.Visible(strings.Join(r.Header[key], ", ")))
		if len(value) > maxShownHeader {
			value = strings.ToValidUTF8(value[:maxShownHeader], "") + "..."
		}
		if len(headers) == maxShownHeaders {
			fmt.Fprintf(&out, "[%d headers more]\n", len(r.Header)-maxShownHeaders)
			break
		}
		headers[name] = value
		fmt.Fprintf(&out, "%s: %s\n", name, value)
	}
	return out.String(), headers
}

// shownBody is the text of an answer's body, and what is to be said of it.
func (p *parts) shownBody(ctx context.Context, r *fetch.Response, h *hider) (body, mediaType, note string, err error) {
	document, err := p.convert(ctx, page.Request{
		Body: r.Body, ContentType: r.Header.Get("Content-Type"), URL: r.URL.String(), Format: page.Raw, Plain: true,
		Part: page.Part{Bytes: maxShownBody + h.longest},
	})
	document.MediaType = h.hide(document.MediaType) // the server's words, too
	switch {
	case ctx.Err() != nil:
		return "", "", "", ctx.Err()
	case err != nil:
		return "", "", "[the body cannot be shown: " + tool.AsError(err).Message + "]", nil
	case document.Kind == page.KindBinary:
		return fmt.Sprintf("[binary content: %s, %d bytes]", document.MediaType, len(r.Body)), document.MediaType, "", nil
	}
	cut := document.End < document.Total
	if cut {
		body = h.beginning(document.Text)
	} else {
		body = h.hide(document.Text)
	}
	if cut || len(body) > maxShownBody {
		body = strings.ToValidUTF8(body[:min(len(body), maxShownBody)], "")
		note = fmt.Sprintf("[the first %v of a body of %v; ask for a part of it, if the server has parts]", tool.ByteSize(maxShownBody), tool.ByteSize(len(r.Body)))
	}
	return body, document.MediaType, note, nil
}

// blocks puts text between lines again and again, so that whoever reads a part of a
// result that was cut sees where it is from.
func blocks(origin, text, after string, output tool.ByteSize) []tool.Content {
	most := room(output, origin)
	var all []tool.Content
	for len(text) > most {
		end := most
		for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		all = append(all, fromOutside(origin, text[:max(end, 1)], "[it goes on]")...)
		text = text[max(end, 1):]
	}
	return append(all, fromOutside(origin, text, after)...)
}
