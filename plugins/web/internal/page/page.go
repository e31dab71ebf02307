// Package page turns what a web server sends into text for a model: the article
// of a page as markdown, the text of a PDF, the links of a page.
//
// What it reads is hostile: nothing in it may run for ever, take all memory or
// crash. So pages and PDFs of any size, and large texts, are read by a process of
// its own each; see [Isolated].
package page

import (
	"fmt"
	"net/url"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Request is a document and what is wanted of it.
type Request struct {
	// Body is the document, ContentType what its server says that it is.
	Body        []byte `json:"-"`
	ContentType string `json:"content_type"`
	// URL is where it came from; links are relative to it.
	URL string `json:"url"`
	// Format is Markdown, Text, HTML or Raw.
	Format Format `json:"format"`
	// Plain takes a document that is no text for one of bytes, even if its text
	// could be read.
	Plain bool `json:"plain,omitempty"`
	// Whole takes all of a page, not only the article that is found in it.
	Whole bool `json:"whole"`
	// Selector is a CSS selector: only what it names is taken. "" is everything.
	Selector string `json:"selector"`
	// Part is what is wanted of the text.
	Part Part `json:"part"`
	// Links asks for the links of a page, and not for its text.
	Links *LinkRequest `json:"links,omitempty"`
}

// Format is how a document is written for the reader.
type Format string

// The formats. Raw is the text of the document as it came.
const (
	Markdown Format = "markdown"
	Text     Format = "text"
	HTML     Format = "html"
	Raw      Format = "raw"
)

// Document is what was made of a document.
type Document struct {
	// Text is the part that was asked for of the document in its format. It is
	// valid UTF-8, without characters that nobody sees.
	Text string `json:"text"`
	// End is the character after the last one of Text, and Total how many there
	// are; or how many links there are.
	End   int `json:"end"`
	Total int `json:"total"`
	// Links are those that were asked for.
	Links []Link `json:"links,omitempty"`
	// Kind says what it is: "html", "text", "pdf" or "binary", which has no text.
	Kind Kind `json:"kind"`
	// MediaType is that of the document, Charset how its bytes became text; ""
	// if it is no text.
	MediaType string `json:"media_type"`
	Charset   string `json:"charset,omitempty"`
	// Title, Byline and Published are what a page or PDF says of itself.
	Title     string `json:"title,omitempty"`
	Byline    string `json:"byline,omitempty"`
	Published string `json:"published,omitempty"`
	// Extract says what was taken of a page: "article", "full", "selector", or
	// "flat" if it cannot be read as a tree and is text only.
	Extract string `json:"extract,omitempty"`
	// Pages is how many a PDF has.
	Pages int `json:"pages,omitempty"`
}

// Convert does what is wanted of a document, however long that takes. Its errors
// are [*tool.Error].
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

// read makes text of a document, all of it.
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
		return d, tool.Errorf(tool.InvalidArgument, "selector is for pages of HTML, and this is none").WithHint("leave selector out")
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
