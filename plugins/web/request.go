package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/toolhost/toolhost/plugins/web/internal/fetch"
	"github.com/toolhost/toolhost/plugins/web/internal/page"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type httpRequestArgs struct {
	URL     string            `json:"url" jsonschema:"URL" role:"url"`
	Method  string            `json:"method" jsonschema:"method" enum:"GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS"`
	Headers map[string]string `json:"headers,omitempty" jsonschema:"{{secret:NAME}} becomes a secret"`
	Body    string            `json:"body,omitempty" jsonschema:"body as text"`
	JSON    sdk.JSON          `json:"json,omitempty" jsonschema:"body as JSON"`
}

const (
	maxHeaders     = 50
	maxHeaderBytes = 16 << 10
	maxRequestBody = 5 << 20
)

// request is a request that is planned and not sent yet, without the values of its
// secrets.
type request struct {
	parts   *parts
	call    *sdk.Call
	method  string
	url     *url.URL
	header  http.Header
	body    []byte
	secrets []string // sorted names
}

// planRequest returns the request that a call of http_request describes, or refuses it.
func planRequest(_ context.Context, p *parts, c *sdk.Call, in httpRequestArgs) (sdk.Change[tool.Result], error) {
	u, err := p.address(in.URL)
	if err != nil {
		return nil, err
	}
	if err := p.checkRequest(u); err != nil {
		return nil, fetch.Refused(err)
	}
	r := &request{parts: p, call: c, method: in.Method, url: u, header: make(http.Header)}
	if err := r.setHeaders(in.Headers); err != nil {
		return nil, err
	}
	if err := r.setBody(in); err != nil {
		return nil, err
	}
	if r.secrets, err = p.secretsIn(r.header, u); err != nil {
		return nil, err
	}
	return r, nil
}

// State implements [sdk.Change].
func (r *request) State(context.Context) (string, error) { return r.text(), nil }

// Show implements [sdk.Change].
func (r *request) Show(context.Context) (string, []tool.Content, error) {
	summary := fmt.Sprintf("Sends %s %s", r.method, display.Name(r.url.String()))
	if len(r.body) > 0 {
		summary += fmt.Sprintf(" with %d bytes", len(r.body))
	}
	if len(r.secrets) > 0 {
		summary += ", with the secret " + strings.Join(r.secrets, " and ")
	}
	return summary, []tool.Content{tool.Text(r.text())}, nil
}

// Apply implements [sdk.Change]. It sends the request.
func (r *request) Apply(ctx context.Context) (tool.Result, error) {
	values, err := r.reveal(ctx, r.call)
	if err != nil {
		return tool.Result{}, err
	}
	hider := newHider(values)
	response, err := r.parts.client.Do(ctx, fetch.Request{
		Method: r.method, URL: r.url, Header: r.header, Body: r.body, Check: r.parts.checkRequest, Dial: dialFor(r.call),
	})
	if err != nil {
		return tool.Result{}, hidden(err, hider)
	}
	defer response.Release()
	return r.parts.requestResult(ctx, response, hider, r.call.MaxOutput())
}

// hidden returns an error without the values of secrets. It drops the cause, which is
// logged and contains URLs that a server chose.
func hidden(err error, h *hider) error {
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		return err
	}
	return &tool.Error{Code: e.Code, Message: h.hide(e.Message), Hint: h.hide(e.Hint), Retryable: e.Retryable, RetryAfter: e.RetryAfter}
}

// checkRequest refuses a URL that http_request may not contact. It runs on each hop.
func (p *parts) checkRequest(u *url.URL) error { return p.requests.Domain(u.Hostname()) }

// setHeaders sets the headers of the caller. It refuses those of the connection.
func (r *request) setHeaders(headers map[string]string) error {
	if len(headers) > maxHeaders {
		return tool.Errorf(tool.InvalidArgument, "there are %d headers, expected at most %d", len(headers), maxHeaders)
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		total += len(name) + len(value)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return tool.Errorf(tool.InvalidArgument, "%q is not a valid header name", name)
		case !httpguts.ValidHeaderFieldValue(value):
			return tool.Errorf(tool.InvalidArgument, "the value of the header %s contains invalid characters, such as a line break", name)
		case ownHeader(name):
			return tool.Errorf(tool.InvalidArgument, "the header %s cannot be set: the connection controls it", name).WithHint("omit the header")
		}
		key := http.CanonicalHeaderKey(name)
		if _, twice := r.header[key]; twice {
			return tool.Errorf(tool.InvalidArgument, "the header %s is set twice", key)
		}
		r.header[key] = []string{value}
	}
	if total > maxHeaderBytes {
		return tool.Errorf(tool.InvalidArgument, "the headers have %d bytes, expected at most %d", total, maxHeaderBytes)
	}
	return nil
}

// ownHeader reports whether the connection controls a header.
func ownHeader(name string) bool {
	name = strings.ToLower(name)
	if strings.HasPrefix(name, "proxy-") {
		return true
	}
	return slices.Contains([]string{
		"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "accept-encoding", "expect", "http2-settings",
	}, name)
}

func (r *request) setBody(in httpRequestArgs) error {
	value, given := []byte(in.JSON), in.JSON != nil
	if text := ""; json.Unmarshal(value, &text) == nil { // JSON as a text
		value, given = []byte(text), text != ""
	}
	switch {
	case given && in.Body != "":
		return tool.Errorf(tool.InvalidArgument, "body and json are both set").WithHint("use one of them")
	case (given || in.Body != "") && (r.method == http.MethodGet || r.method == http.MethodHead):
		return tool.Errorf(tool.InvalidArgument, "a %s request cannot have a body", r.method).WithHint("put the data into the URL, or use POST")
	case len(value)+len(in.Body) > maxRequestBody:
		return tool.Errorf(tool.InvalidArgument, "the body has %d bytes, expected at most %d", len(value)+len(in.Body), maxRequestBody)
	case given && !json.Valid(value):
		return tool.Errorf(tool.InvalidArgument, "json is not valid JSON").WithHint("use an object such as {\"name\": \"value\"}, or send other text as body")
	case given:
		r.body = value
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

// text returns the request as it would be sent, without the values of secrets.
func (r *request) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s\n", r.method, r.url)
	for _, name := range slices.Sorted(maps.Keys(r.header)) {
		fmt.Fprintf(&out, "%s: %s\n", name, r.header.Get(name))
	}
	fmt.Fprintf(&out, "\n%s", r.body)
	return out.String()
}

const (
	// maxShownHeaders is the number of headers to show, maxShownHeader the number of
	// bytes of each, and maxShownBody that of the body.
	maxShownHeaders = 60
	maxShownHeader  = 500
	maxShownBody    = 256 << 10
)

// requestResult returns the response of a server, without the values of the secrets that
// were sent to it.
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

// shownHeaders returns the status and headers of a response, as text and as data.
func shownHeaders(r *fetch.Response, h *hider) (string, map[string]string) {
	headers := make(map[string]string)
	var out strings.Builder
	fmt.Fprintf(&out, "%s %d %s\n", r.Proto, r.Status, http.StatusText(r.Status))
	for _, key := range slices.Sorted(maps.Keys(r.Header)) {
		name, value := h.hide(key), display.Cut(h.hide(display.Visible(strings.Join(r.Header[key], ", "))), maxShownHeader)
		if len(headers) == maxShownHeaders {
			fmt.Fprintf(&out, "[%d more headers]\n", len(r.Header)-maxShownHeaders)
			break
		}
		headers[name] = value
		fmt.Fprintf(&out, "%s: %s\n", name, value)
	}
	return out.String(), headers
}

// shownBody returns the text of a body, its media type, and a note.
func (p *parts) shownBody(ctx context.Context, r *fetch.Response, h *hider) (body, mediaType, note string, err error) {
	document, err := p.convert(ctx, page.Request{
		Body: r.Body, ContentType: r.Header.Get("Content-Type"), URL: r.URL.String(), Format: page.Raw, Plain: true,
		Part: page.Part{Bytes: maxShownBody + h.longest},
	})
	document.MediaType = h.hide(document.MediaType) // the server chose it
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
		body = display.Head(body, maxShownBody)
		note = fmt.Sprintf("[the first %v of a body of %v; request a part of it if the API supports that]", tool.ByteSize(maxShownBody), tool.ByteSize(len(r.Body)))
	}
	return body, document.MediaType, note, nil
}

// blocks marks a long text in several blocks, so that the origin stays visible when the
// result is truncated.
func blocks(origin, text, note string, output tool.ByteSize) []tool.Content {
	most := room(output, origin)
	var all []tool.Content
	for len(text) > most {
		part := cmp.Or(display.Head(text, most), text[:1])
		all = append(all, fromOutside(origin, part, "[continued]")...)
		text = text[len(part):]
	}
	return append(all, fromOutside(origin, text, note)...)
}
