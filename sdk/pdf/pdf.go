// Package pdf reads the text of PDFs by page.
//
// The library below it trusts a PDF: it panics, follows cycles and takes the sizes that a PDF
// names. [Read] must run in a process of its own; [ReadFile] starts one.
package pdf

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"

	"github.com/ledongthuc/pdf"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxFact is the maximum size of a title or author in bytes.
const maxFact = 500

// Request selects pages.
type Request struct {
	// First and Last are the first and the last page, from 1. A Last of 0 is the end.
	First int `json:"first"`
	Last  int `json:"last,omitempty"`
	// Bytes is how much text is enough: after the page that reaches it, no page is read.
	Bytes int `json:"bytes"`
}

// Document is the selected part of a PDF.
type Document struct {
	// Title and Author are those in the PDF's metadata.
	Title  string `json:"title,omitempty"`
	Author string `json:"author,omitempty"`
	// Total is the number of pages of the PDF.
	Total int `json:"total"`
	// Pages are the selected pages that were read, in order.
	Pages []Page `json:"pages"`
}

// Page is one page.
type Page struct {
	Number int `json:"number"`
	// Text is the text in the order of the PDF. It is valid UTF-8, without control characters
	// other than line feeds, and "" if the page has none.
	Text string `json:"text,omitempty"`
	// Incomplete means that the rest of the page is damaged, unsupported or too long.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Read reads pages in this process. Its errors are of type [*tool.Error].
func Read(r io.ReaderAt, size int64, q Request) (d Document, err error) {
	reader, err := pdf.NewReader(&source{r}, endOf(r, size))
	switch {
	case errors.Is(err, pdf.ErrInvalidPassword):
		return Document{}, tool.Errorf(tool.Failed, "the PDF is encrypted and needs a password").WithCause(err)
	case err != nil && strings.Contains(err.Error(), "encryption"), err == nil && hasShortKey(reader):
		return Document{}, tool.Errorf(tool.Failed, "the PDF is encrypted in an unsupported way: only RC4 and AES with keys of 128 bits can be read").WithCause(err)
	case err != nil:
		return Document{}, unreadable(err)
	}
	root, err := look(func() pdf.Value { return reader.Trailer().Key("Root").Key("Pages") }, pdf.Value{})
	if err != nil {
		return Document{}, unreadable(err)
	}
	d = Document{Title: fact(reader, "Title"), Author: fact(reader, "Author")}
	s := selection{Request: q, fonts: map[string]*font{}}
	ended := s.walk(root, 0)
	d.Pages, d.Total = s.pages, s.number
	if !ended {
		d.Total = max(root.count, s.number)
	}
	if len(d.Pages) == 0 && q.First <= d.Total {
		return Document{}, unreadable(errors.New("no page is found"))
	}
	return d, nil
}

// hasShortKey reports whether a PDF is encrypted with a key that the library uses wrongly.
func hasShortKey(r *pdf.Reader) bool {
	encrypt, err := look(func() pdf.Value { return r.Trailer().Key("Encrypt") }, pdf.Value{})
	return err != nil || encrypt.value.Kind() != pdf.Null && encrypt.value.Key("Length").Int64() != 128
}

func unreadable(err error) error {
	return tool.Errorf(tool.Failed, "the PDF cannot be read: it is damaged or unsupported").WithCause(err)
}

// fact returns what the PDF tells of itself, on one line, or "" if that is damaged.
func fact(r *pdf.Reader, name string) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	text = r.Trailer().Key("Info").Key(name).Text()
	return display.Cut(strings.Join(strings.Fields(visible(text)), " "), maxFact)
}

// visible returns a text as valid UTF-8 without control characters other than line feeds.
func visible(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n':
			return c
		case unicode.IsSpace(c) && c < ' ':
			return ' '
		case unicode.IsControl(c):
			return -1
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// source is a PDF with a version that the library reads: it refuses later ones, whose text is
// the same.
type source struct{ io.ReaderAt }

const header = "%PDF-1.7\n"

// ReadAt implements [io.ReaderAt].
func (s *source) ReadAt(p []byte, at int64) (int, error) {
	n, err := s.ReaderAt.ReadAt(p, at)
	if at == 0 && n >= len(header) && string(p[:5]) == header[:5] {
		copy(p, header)
	}
	return n, err
}

// endOf returns where a PDF ends, since other bytes may follow.
func endOf(r io.ReaderAt, size int64) int64 {
	const mark = "%%EOF"
	tail := make([]byte, min(size, 1024))
	n, err := r.ReadAt(tail, size-int64(len(tail)))
	if err != nil && !errors.Is(err, io.EOF) {
		return size
	}
	if i := bytes.LastIndex(tail[:n], []byte(mark)); i >= 0 {
		return size - int64(len(tail)) + int64(i+len(mark))
	}
	return size
}
