//go:build !race

package pdf_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/pdf"
	"github.com/toolhost/toolhost/sdk/pdf/pdftest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Whatever a PDF contains, reading it ends within bounds: with text, or with an error for a
// model.
func TestHostile(t *testing.T) {
	zeros := bytes.Repeat([]byte("("), 64<<20)
	eight := [][]byte{zeros, zeros, zeros, zeros, zeros, zeros, zeros, zeros}
	content := func(filter string, data []byte) []byte {
		return pdftest.Make(pdftest.Catalog, pdftest.Tree, pdftest.OnePage, pdftest.Stream(filter, data), pdftest.Font)
	}
	withTable := func(table string) []byte {
		return withFont("BT /F1 10 Tf (a) Tj ET", "<< /Type /Font /Subtype /Type1 /ToUnicode 6 0 R >>", pdftest.Stream("", []byte(table)))
	}
	withWidths := func(widths string) []byte {
		return withFont("BT /F1 10 Tf <0061> Tj ET", "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /DescendantFonts [<< /W ["+widths+"] >>] >>")
	}
	form := func(content string) string {
		return strings.Replace(pdftest.Stream("", []byte(content)), "<<", "<< /Subtype /Form /Resources << /XObject << /X 6 0 R >> >>", 1)
	}
	withForm := func(content string) []byte {
		return pdftest.Make(pdftest.Catalog, pdftest.Tree, strings.Replace(pdftest.OnePage, "/Resources <<", "/Resources << /XObject << /X 6 0 R >>", 1),
			pdftest.Stream("", []byte("BT /F1 10 Tf (before) Tj ET /X Do")), pdftest.Font, form(content))
	}
	for name, body := range map[string][]byte{
		"a bomb":                 content("/FlateDecode", pdftest.Deflated(eight...)),
		"a bomb of a bomb":       content("[/FlateDecode /FlateDecode]", pdftest.Deflated(pdftest.Deflated(eight...))),
		"a bomb as a table":      withFont("BT /F1 10 Tf (a) Tj ET", "<< /Type /Font /Subtype /Type1 /ToUnicode 6 0 R >>", pdftest.Stream("/FlateDecode", pdftest.Deflated(eight...))),
		"more objects than any":  bytes.Replace(content("", nil), []byte("0 6\n0000000000"), []byte("9999999999 6\n0000000000"), 1),
		"a huge size":            bytes.Replace(content("", nil), []byte("/Size 6"), []byte("/Size 1099511627776"), 1),
		"a tree in a circle":     pdftest.Make(pdftest.Catalog, "<< /Type /Pages /Kids [2 0 R] /Count 100000 >>"),
		"circles without end":    pdftest.Make(pdftest.Catalog, "<< /Type /Pages /Kids ["+strings.Repeat("2 0 R ", 1000)+"] >>"),
		"a page of itself":       pdftest.Make(pdftest.Catalog, pdftest.Tree, "<< /Type /Page /Contents 3 0 R >>"),
		"an object of itself":    pdftest.Make(pdftest.Catalog, "2 0 R"),
		"earlier tables, itself": bytes.Replace(content("", nil), []byte("/Root"), []byte("/Prev "+fmt.Sprint(bytes.LastIndex(content("", nil), []byte("xref\n0")))+" /Root"), 1),
		"many pages":             pdftest.Make(pdftest.Catalog, "<< /Type /Pages /Kids [3 0 R] /Count 2000000000 >>", pdftest.OnePage, pdftest.Stream("", nil), pdftest.Font),
		"fewer pages than none":  pdftest.Make(pdftest.Catalog, "<< /Type /Pages /Kids [3 0 R] /Count -5 >>", pdftest.OnePage, pdftest.Stream("", nil), pdftest.Font),
		"a form of itself":       withForm("/X Do /X Do /X Do BT /F1 10 Tf (x) Tj ET"),
		"brackets without end":   content("", bytes.Repeat([]byte("["), 1<<20)),
		"dictionaries":           content("", bytes.Repeat([]byte("<<"), 1<<20)),
		"saved states":           content("", bytes.Repeat([]byte("q "), 2<<20)),
		"operands":               content("", bytes.Repeat([]byte("1 "), 1<<19)),
		"a long text":            content("", append([]byte("BT /F1 10 Tf ("), append(bytes.Repeat([]byte("a"), 4<<20), ") Tj ET"...)...)),
		"ranges":                 withTable(strings.Repeat("beginbfrange <0000><FFFF><0000> endbfrange\n", 20_000)),
		"ranges of nothing":      withTable(strings.Repeat("beginbfrange <><FFFF><> endbfrange\n", 20_000)),
		"ranges without end":     withTable("beginbfrange " + strings.Repeat("<00><01>[", 100_000)),
		"long texts of codes":    withTable("beginbfrange <0000><FFFF><" + strings.Repeat("00", 500_000) + "> endbfrange"),
		"widths":                 withWidths(strings.Repeat("0 9999999 5 ", 100_000)),
		"widths of nothing":      withWidths(strings.Repeat("9 0 5 ", 100_000)),
		"widths in lists":        withWidths(strings.Repeat("0 [1 2 3] ", 100_000)),
		"cut":                    content("", nil)[:100],
		"a version only":         []byte("%PDF-2.0\nnothing"),
		"nothing":                {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := readFile(t, body, pdf.Request{First: 1, Bytes: 40 << 10})
			size := 0
			for _, p := range d.Pages {
				size += len(p.Text)
			}
			if size > 2<<20 || len(d.Pages) > 200_000 {
				t.Errorf("%d pages with %d bytes", len(d.Pages), size)
			}
			if err != nil {
				if code := tool.AsError(err).Code; code != tool.Failed && code != tool.ResourceExhausted {
					t.Errorf("%v, want an error for a model", err)
				}
			}
		})
	}
}

func readFile(t *testing.T, body []byte, q pdf.Request) (pdf.Document, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.pdf")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return pdf.ReadFile(t.Context(), f, int64(len(body)), q)
}

// A PDF of 100,000 pages is read at its end, and one that only claims more pages tells how many
// it has.
func TestManyPages(t *testing.T) {
	const n = 100_000
	objects := []string{pdftest.Catalog, "", pdftest.Stream("", []byte("BT /F1 10 Tf (text) Tj ET"))}
	var kids strings.Builder
	for i := range n {
		fmt.Fprintf(&kids, "%d 0 R ", i+4)
		objects = append(objects, "<< /Type /Page /Contents 3 0 R >>")
	}
	objects[1] = "<< /Type /Pages /Kids [" + kids.String() + "] /Count 2000000 >>"
	d, err := readFile(t, pdftest.Make(objects...), pdf.Request{First: n - 1, Bytes: 1000})
	if err != nil || d.Total != n || len(d.Pages) != 2 || d.Pages[1] != (pdf.Page{Number: n, Text: "text"}) {
		t.Errorf("ReadFile = %+v, %v", d, err)
	}
	if d, err = readFile(t, pdftest.Make(objects...), pdf.Request{First: 1, Bytes: 100}); err != nil || d.Total != 2_000_000 || len(d.Pages) != 3 {
		t.Errorf("ReadFile of the beginning = %d pages of %d, %v", len(d.Pages), d.Total, err)
	}
}
