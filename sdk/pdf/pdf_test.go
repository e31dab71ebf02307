package pdf_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/pdf"
	"github.com/toolhost/toolhost/sdk/pdf/pdftest"
	"github.com/toolhost/toolhost/sdk/worker"
)

// The test binary becomes the process that reads one PDF, if its arguments say so.
func TestMain(m *testing.M) {
	functions := map[string]worker.Function{}
	pdf.AddFunction(functions)
	worker.Serve(functions)
	os.Exit(m.Run())
}

// onePage returns a PDF of one page with the content and more objects, from number 6 on.
func onePage(content string, more ...string) []byte {
	return pdftest.Make(append([]string{pdftest.Catalog, pdftest.Tree, pdftest.OnePage, pdftest.Stream("", []byte(content)), pdftest.Font}, more...)...)
}

// withFont is like onePage, with another font.
func withFont(content, font string, more ...string) []byte {
	return pdftest.Make(append([]string{pdftest.Catalog, pdftest.Tree, pdftest.OnePage, pdftest.Stream("", []byte(content)), font}, more...)...)
}

func readAll(t *testing.T, body []byte) pdf.Document {
	t.Helper()
	d, err := pdf.Read(bytes.NewReader(body), int64(len(body)), pdf.Request{First: 1, Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestText(t *testing.T) {
	const hello = "BT /F1 12 Tf 72 720 Td (Hello, ) Tj (PDF) Tj 0 -14 Td (second line) Tj 0 -60 Td (a paragraph) Tj ET"
	const want = "Hello, PDF\nsecond line\n\na paragraph"
	table := func(text string) string { return pdftest.Stream("", []byte("begincmap "+text+" endcmap")) }
	composite := func(more string) string {
		return "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /DescendantFonts [<< /W [1 [500 600] 3 9 500] /DW 700 >>] " + more + " >>"
	}
	for _, tt := range []struct {
		name string
		body []byte
		want string
	}{
		{"plain", onePage(hello), want},
		{"deflated", pdftest.Make(pdftest.Catalog, pdftest.Tree, pdftest.OnePage, pdftest.Stream("/FlateDecode", pdftest.Deflated([]byte(hello))), pdftest.Font), want},
		{"a later version", bytes.Replace(onePage(hello), []byte("%PDF-1.4"), []byte("%PDF-2.0"), 1), want},
		{"no line end after the version", bytes.Replace(onePage(hello), []byte("%PDF-1.4\n"), []byte("%PDF-1.4%"), 1), want},
		{"more after its end", append(onePage(hello), bytes.Repeat([]byte("\x00junk"), 100)...), want},
		{"in two parts", pdftest.Make(pdftest.Catalog, pdftest.Tree, strings.Replace(pdftest.OnePage, "4 0 R", "[4 0 R 6 0 R]", 1), pdftest.Stream("", []byte("BT /F1 9 Tf (a) Tj")), pdftest.Font, pdftest.Stream("", []byte(" (b) Tj ET"))), "ab"},
		{"gaps are spaces", onePage("BT /F1 10 Tf [(one) -300 (two) -20 (three) 10 (four)] TJ 100 0 Td (five) Tj ET"), "one twothreefour five"},
		{"turned", onePage("BT /F1 10 Tf 0 1 -1 0 300 100 Tm (up the ) Tj (page) Tj 0 -14 Td (next) Tj ET"), "up the page\nnext"},
		{"lines", onePage("BT /F1 10 Tf 12 TL (a) Tj (b) ' 0 0 (c) \" T* (d) Tj 0 -12 TD (e) Tj T* (f) Tj ET"), "a\nb\nc\nd\ne\nf"},
		{"saved states", onePage("BT /F1 10 Tf q /F1 99 Tf Q Q Q (a) Tj 2 Tc 1 Tw 50 Tz 3 Ts 1 Tr (b) Tj ET"), "ab"},
		{"missing operands", onePage("BT Tf Td Tj TJ cm Tm ' \" Do (a) Tj ET"), "a"},
		{"no font", onePage("BT (a) Tj /F9 10 Tf (b) Tj ET"), "ab"},
		{"names of glyphs", withFont("BT /F1 10 Tf (\\001\\002) Tj ET", "<< /Type /Font /Subtype /Type1 /Encoding << /Differences [1 /fi /bullet] >> >>"), "ﬁ•"},
		{"a table", withFont("BT /F1 10 Tf (abcdefg) Tj ET", "<< /Type /Font /Subtype /TrueType /Encoding /WinAnsiEncoding /ToUnicode 6 0 R >>",
			table("2 beginbfchar <61> <0058> <62> <D83D DE00> endbfchar 2 beginbfrange <63><64><0031> <65><66>[<00590059> <005A>] endbfrange")), "X😀12YYZg"},
		{"a composite font", withFont("BT /F1 10 Tf <000100020003> Tj ET", composite("/ToUnicode 6 0 R"), table("1 beginbfrange <0001><0002><0041> endbfrange")), "AB\uFFFD"},
		{"widths of a composite font", withFont("BT /F1 10 Tf <0001> Tj 5 0 Td <0002> Tj 8 0 Td <0001> Tj ET", composite("/ToUnicode 6 0 R"), table("1 beginbfrange <0001><0002><0041> endbfrange")), "AB A"},
		{"UTF-16", withFont("BT /F1 10 Tf <4F60597D> Tj ET", strings.Replace(composite(""), "Identity-H", "UniGB-UCS2-H", 1)), "你好"},
		{"a form", pdftest.Make(pdftest.Catalog, pdftest.Tree, strings.Replace(pdftest.OnePage, "/Resources <<", "/Resources << /XObject << /X 6 0 R /Y 5 0 R >>", 1),
			pdftest.Stream("", []byte("/X Do /Y Do BT /F1 10 Tf 0 -100 Td (after) Tj ET")), pdftest.Font,
			strings.Replace(pdftest.Stream("", []byte("Q Q BT /F1 10 Tf (in the form) Tj ET")), "<<", "<< /Subtype /Form /Matrix [1 0 0 1 0 200]", 1)), "in the form\n\nafter"},
		{"control characters", onePage("BT /F1 10 Tf (a\\000\\033[1mb) Tj ET"), "a[1mb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff([]pdf.Page{{Number: 1, Text: tt.want}}, readAll(t, tt.body).Pages); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPages(t *testing.T) {
	texts := make([]string, 250)
	for i := range texts {
		texts[i] = fmt.Sprintf("text of page %d", i+1)
	}
	body := pdftest.OfPages(texts...)
	for _, tt := range []struct {
		request     pdf.Request
		first, last int // that are read
	}{
		{pdf.Request{First: 1, Bytes: 1 << 20}, 1, 250},
		{pdf.Request{First: 1, Bytes: 130}, 1, 3},
		{pdf.Request{First: 99, Last: 102, Bytes: 1 << 20}, 99, 102},
		{pdf.Request{First: 201, Last: 201, Bytes: 1 << 20}, 201, 201},
		{pdf.Request{First: 249, Last: 900, Bytes: 1 << 20}, 249, 250},
		{pdf.Request{First: 251, Bytes: 1 << 20}, 0, 0},
	} {
		d, err := pdf.Read(bytes.NewReader(body), int64(len(body)), tt.request)
		if err != nil || d.Total != 250 {
			t.Fatalf("Read(%+v) = %d pages, %v, want 250", tt.request, d.Total, err)
		}
		var want []pdf.Page
		for n := max(tt.first, 1); n <= tt.last; n++ {
			want = append(want, pdf.Page{Number: n, Text: texts[n-1]})
		}
		if diff := cmp.Diff(want, d.Pages); diff != "" {
			t.Errorf("Read(%+v) (-want +got):\n%s", tt.request, diff)
		}
	}
}

func TestFacts(t *testing.T) {
	body := pdftest.MakeWith("/Info 6 0 R", pdftest.Catalog, pdftest.Tree, pdftest.OnePage, pdftest.Stream("", nil), pdftest.Font, "<< /Title (A\\nlong  title) /Author <FEFF00C900E9> >>")
	if d := readAll(t, body); d.Title != "A long title" || d.Author != "Éé" || d.Total != 1 || len(d.Pages) != 1 || d.Pages[0].Text != "" {
		t.Errorf("Read = %+v", d)
	}
	long := pdftest.MakeWith("/Info 6 0 R", pdftest.Catalog, pdftest.Tree, pdftest.OnePage, pdftest.Stream("", nil), pdftest.Font, "<< /Title ("+strings.Repeat("x", 10_000)+") >>")
	if d := readAll(t, long); len(d.Title) > 510 {
		t.Errorf("the title has %d bytes", len(d.Title))
	}
}

// What can be read of a damaged page is returned, and other pages are not affected.
func TestDamagedPages(t *testing.T) {
	kids := "<< /Type /Pages /Kids [3 0 R 6 0 R 7 0 R 8 0 R] /Count 4 >>"
	page := func(contents string) string { return strings.Replace(pdftest.OnePage, "4 0 R", contents, 1) }
	body := pdftest.Make(pdftest.Catalog, kids, pdftest.OnePage, pdftest.Stream("", []byte("BT /F1 10 Tf (half) Tj <</A")), pdftest.Font,
		page("9 0 R"), "endobj", page("10 0 R"), pdftest.Stream("/Nonsense", []byte("x")), pdftest.Stream("", []byte("BT /F1 10 Tf (whole) Tj ET")))
	want := []pdf.Page{{Number: 1, Text: "half"}, {Number: 2, Incomplete: true}, {Number: 3, Incomplete: true}, {Number: 4, Text: "whole"}}
	if diff := cmp.Diff(want, readAll(t, body).Pages); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("BT /F1 12 Tf 72 720 Td (Hello) Tj [(a) -300 <41>] TJ ET"), []byte("1 beginbfrange <00><ff><0041> endbfrange"))
	f.Add([]byte("q Q /X Do BI /W 1 ID \x00 EI"), []byte("beginbfrange <01><02>[<0041>"))
	f.Fuzz(func(t *testing.T, content, table []byte) {
		body := withFont(string(content), "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R >>", pdftest.Stream("", table))
		d, err := pdf.Read(bytes.NewReader(body), int64(len(body)), pdf.Request{First: 1, Bytes: 1 << 20})
		for _, p := range d.Pages {
			if err == nil && p.Text != strings.ToValidUTF8(p.Text, "") {
				t.Errorf("%q became %q", content, p.Text)
			}
		}
	})
}
