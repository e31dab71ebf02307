package page

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/ledongthuc/pdf"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxPages is the number of pages to read of a PDF.
	maxPages = 2000
	// maxPDFText bounds the bytes of text of a PDF.
	maxPDFText = 16 << 20
)

// readPDF returns the text of a PDF. The library trusts the sizes in a PDF and follows
// cycles, so it must run in a separate process.
func readPDF(d Document, body []byte) (result Document, err error) {
	defer func() {
		if r := recover(); r != nil {
			result, err = d, unreadable(fmt.Errorf("read a PDF: %v", r))
		}
	}()
	if header := []byte("%PDF-1.7\n"); len(body) > len(header) && bytes.HasPrefix(body, header[:5]) {
		body = append(header, body[len(header):]...) // the library refuses later versions, whose text is the same
	}
	reader, err := pdf.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return d, unreadable(err)
	}
	d.Pages = reader.NumPage()
	d.Title = line(reader.Trailer().Key("Info").Key("Title").Text())
	d.Byline = line(reader.Trailer().Key("Info").Key("Author").Text())
	var out strings.Builder
	unread := 0
	for number := 1; number <= min(d.Pages, maxPages); number++ {
		text, err := pageText(reader, number)
		if err != nil {
			unread++
			text = "[this page cannot be read]"
		}
		if text = strings.TrimSpace(clean(text)); text == "" {
			continue
		}
		fmt.Fprintf(&out, "[page %d]\n%s\n\n", number, text)
		if out.Len() > maxPDFText {
			break
		}
	}
	if unread > 0 && unread == min(d.Pages, maxPages) {
		return d, unreadable(fmt.Errorf("none of %d pages can be read", unread))
	}
	d.Text = strings.TrimRight(out.String(), "\n") + "\n"
	if out.Len() == 0 {
		return d, tool.Errorf(tool.Failed, "the PDF has %d pages without text, perhaps images", d.Pages).
			WithHint("look for the document in another format")
	}
	return d, nil
}

// pageText returns the text of a page in the order of the PDF. It finds the ends of words
// and lines by their positions.
func pageText(reader *pdf.Reader, number int) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("read page %d of a PDF: %v", number, r)
		}
	}()
	var out strings.Builder
	var last pdf.Text
	for _, t := range reader.Page(number).Content().Text {
		if strings.Trim(t.S, "\n") == "" { // the library adds it to each piece
			continue
		}
		size := max(t.FontSize, 1)
		switch down := last.Y - t.Y; {
		case out.Len() == 0:
		case math.Abs(down) > 1.8*size:
			out.WriteString("\n\n")
		case math.Abs(down) > 0.5*size:
			out.WriteByte('\n')
		case t.X-last.X-last.W > 0.15*size, t.X < last.X-size:
			out.WriteByte(' ')
		}
		out.WriteString(t.S)
		last = t
	}
	return out.String(), nil
}

func unreadable(err error) error {
	return tool.Errorf(tool.Failed, "the PDF cannot be read: it is damaged, encrypted or unsupported").
		WithHint("look for the document in another format").WithCause(err)
}
