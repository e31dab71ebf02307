package page

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/pdf"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxPages is the number of pages to read of a PDF.
	maxPages = 2000
	// maxPDFText bounds the bytes of text of a PDF.
	maxPDFText = 16 << 20
)

// readPDF returns the text of a PDF. It must run in a separate process.
func readPDF(d Document, body []byte) (Document, error) {
	read, err := pdf.Read(bytes.NewReader(body), int64(len(body)), pdf.Request{First: 1, Last: maxPages, Bytes: maxPDFText})
	if err != nil {
		return d, tool.AsError(err).WithHint("look for the document in another format")
	}
	d.Pages, d.Title, d.Byline = read.Total, line(read.Title), line(read.Author)
	var out strings.Builder
	unread := 0
	for _, p := range read.Pages {
		text := strings.TrimSpace(clean(p.Text))
		switch {
		case p.Incomplete && text == "":
			unread++
			text = "[this page cannot be read]"
		case p.Incomplete:
			text += "\n[the rest of this page cannot be read]"
		case text == "":
			continue
		}
		fmt.Fprintf(&out, "[page %d]\n%s\n\n", p.Number, text)
	}
	if unread > 0 && unread == len(read.Pages) {
		return d, tool.Errorf(tool.Failed, "none of %s of the PDF can be read: they are damaged or unsupported", display.Plural(unread, "page")).
			WithHint("look for the document in another format")
	}
	d.Text = strings.TrimRight(out.String(), "\n") + "\n"
	if out.Len() == 0 {
		return d, tool.Errorf(tool.Failed, "the PDF has %s without text, perhaps images", display.Plural(d.Pages, "page")).
			WithHint("look for the document in another format")
	}
	return d, nil
}
