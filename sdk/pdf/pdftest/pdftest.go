// Package pdftest makes PDFs for tests: whole ones, and such that no program should read.
package pdftest

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
)

// The first objects of a PDF with one page. Its content is object 4 and its font object 5.
const (
	Catalog = "<< /Type /Catalog /Pages 2 0 R >>"
	Tree    = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
	OnePage = "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>"
	Font    = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
)

// Make returns a PDF of these objects, the first of which is number 1 and the catalog.
func Make(objects ...string) []byte { return MakeWith("", objects...) }

// MakeWith is like Make, with more entries of the trailer.
func MakeWith(trailer string, objects ...string) []byte {
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	offsets := make([]int, len(objects))
	for i, object := range objects {
		offsets[i] = out.Len()
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, trailer, start)
	return out.Bytes()
}

// Stream returns a stream object. Its data already has the filter, which may be "".
func Stream(filter string, data []byte) string {
	if filter != "" {
		filter = "/Filter " + filter
	}
	return fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(data), filter, data)
}

// Deflated returns the parts together, compressed.
func Deflated(parts ...[]byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	for _, part := range parts {
		_, _ = w.Write(part) // a buffer takes everything
	}
	_ = w.Close()
	return out.Bytes()
}

// OfPages returns a PDF with a page for each text, in nodes of up to 100 pages. The lines of a
// text, in which there are no brackets, are lines of the page.
func OfPages(texts ...string) []byte {
	const fontNumber, firstNode = 3, 4
	nodes := (len(texts) + 99) / 100
	kids := make([]string, nodes)
	for i := range kids {
		kids[i] = fmt.Sprintf("%d 0 R", firstNode+i)
	}
	objects := []string{Catalog, fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(texts)), Font}
	firstPage := firstNode + nodes
	for i := range nodes {
		var pages []string
		for page := i * 100; page < min(len(texts), i*100+100); page++ {
			pages = append(pages, fmt.Sprintf("%d 0 R", firstPage+2*page))
		}
		objects = append(objects, fmt.Sprintf("<< /Type /Pages /Parent 2 0 R /Kids [%s] /Count %d /Resources << /Font << /F1 %d 0 R >> >> >>", strings.Join(pages, " "), len(pages), fontNumber))
	}
	for i, text := range texts {
		objects = append(objects, fmt.Sprintf("<< /Type /Page /Parent %d 0 R /Contents %d 0 R >>", firstNode+i/100, firstPage+2*i+1))
		shown := ""
		if text != "" {
			shown = "(" + strings.ReplaceAll(text, "\n", ") Tj T* (") + ") Tj"
		}
		objects = append(objects, Stream("/FlateDecode", Deflated([]byte("BT /F1 12 Tf 14 TL 72 720 Td "+shown+" ET"))))
	}
	return Make(objects...)
}
