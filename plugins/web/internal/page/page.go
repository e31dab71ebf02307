// Package page converts the response of a web server into text for a model: the article
// of a page as markdown, the text of a PDF, the links of a page.
//
// Documents are hostile: they may try to run forever, to use all memory or to crash the
// program. A separate process converts each page, PDF and large text; see [Isolated].
package page

import (
	"fmt"
	"net/url"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Request is a document and the conversion to make.
type Request struct {
	// Body is the document, and ContentType its Content-Type header.
	Body        []byte `json:"-"`
	ContentType string `json:"content_type"`
	// URL is the address of the document. Links are relative to it.
	URL string `json:"url"`
	// Format is Markdown, Text, HTML or Raw.
	Format Format `json:"format"`
	// Plain treats a PDF as binary content.
	Plain bool `json:"plain,omitempty"`
	// Whole returns the full page, not only its main article.
	Whole bool `json:"whole"`
	// Selector is a CSS selector: only matching elements are returned. "" means no selector.
	Selector string `json:"selector"`
	// Part is the part of the text to return.
	Part Part `json:"part"`
	// Links requests the links of a page instead of its text.
	Links *LinkRequest `json:"links,omitempty"`
}

// Format is the format of the text.
type Format string

// The formats. Raw is the source text of the document.
const (
	Markdown Format = "markdown"
	Text     Format = "text"
	HTML     Format = "html"
	Raw      Format = "raw"
)

// Document is the result of a conversion.
type Document struct {
	// Text is the requested part of the text. It is valid UTF-8 without invisible
	// characters.
	Text string `json:"text"`
	// End is the index of the character after Text. Total is the number of characters of
	// the whole text, or the number of matching links.
	End   int `json:"end"`
	Total int `json:"total"`
	// Links are the requested links.
	Links []Link `json:"links,omitempty"`
	// Kind is the kind of document. A binary one has no text.
	Kind Kind `json:"kind"`
	// MediaType is the media type of the document. Charset is the encoding it was decoded
	// from; "" if it is not text.
	MediaType string `json:"media_type"`
	Charset   string `json:"charset,omitempty"`
	// Title, Byline and Published are from the metadata of a page or PDF.
	Title     string `json:"title,omitempty"`
	Byline    string `json:"byline,omitempty"`
	Published string `json:"published,omitempty"`
	// Extract is the part of a page that was converted: "article", "full", "selector", or
	// "flat" for the text of a page that could not be parsed.
	Extract string `json:"extract,omitempty"`
	// Pages is the number of pages of a PDF.
	Pages int `json:"pages,omitempty"`
}

// Convert converts a document without a limit on time and memory. Its errors are
// [*tool.Error].
func Convert(r Request) (Document, error) {
	if r.Links != nil {
		return r.links()
	}
	d, err := read(r)
	if err != nil {
		return d, err
	}
	d.Text, d.End, d.Total, err = r.Part.of(d.Text)
	return d, err
}

// read converts a document to its whole text.
func read(r Request) (Document, error) {
	base, err := url.Parse(r.URL)
	if err != nil {
		return Document{}, fmt.Errorf("read the document's address: %w", err)
	}
	kind, mediaType := kindOf(r.Body, r.ContentType)
	if kind == KindPDF && r.Plain {
		kind = KindBinary
	}
	d := Document{Kind: kind, MediaType: mediaType}
	if r.Selector != "" && kind != KindHTML {
		return d, tool.Errorf(tool.InvalidArgument, "selector needs an HTML page, and the document is %s", mediaType).WithHint("omit selector")
	}
	switch kind {
	case KindPDF:
		return readPDF(d, r.Body)
	case KindBinary:
		return d, nil
	case KindHTML, KindText:
	}
	text, charset := decode(r.Body, r.ContentType, kind == KindHTML)
	d.Charset = charset
	if kind == KindText || r.Format == Raw {
		d.Text = clean(text)
		return d, nil
	}
	return readHTML(d, text, base, r)
}
