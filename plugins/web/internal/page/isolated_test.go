package page_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/web/internal/page"
	"github.com/toolhost/toolhost/sdk/pdf/pdftest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The test binary becomes the process that reads one document, if its environment says so.
func TestMain(m *testing.M) {
	page.ServeChild()
	os.Exit(m.Run())
}

func TestPDF(t *testing.T) {
	text := []byte("BT /F1 12 Tf 72 720 Td (Hello, ) Tj (PDF) Tj 0 -14 Td (second line) Tj 0 -60 Td (a paragraph) Tj ET")
	const one = "[page 1]\nHello, PDF\nsecond line\n\na paragraph\n"
	for _, tt := range []struct {
		name, want string
		body       []byte
		pages      int
	}{
		{"plain", one, pdftest.Make(pdftest.Catalog, pdftest.Tree, pdftest.OnePage, pdftest.Stream("", text), pdftest.Font), 1},
		{"deflated", one, pdftest.Make(pdftest.Catalog, pdftest.Tree, pdftest.OnePage, pdftest.Stream("/FlateDecode", pdftest.Deflated(text)), pdftest.Font), 1},
		{"an empty page", "[page 1]\none\n\n[page 3]\nthree\n", pdftest.OfPages("one", "", "three"), 3},
		{"damaged", "[page 1]\none\n[the rest of this page cannot be read]\n", pdftest.Make(pdftest.Catalog, pdftest.Tree, pdftest.OnePage, pdftest.Stream("[/FlateDecode]", pdftest.Deflated([]byte("BT (one) Tj ET"))[:20]), pdftest.Font), 1},
	} {
		d, err := page.Isolated(t.Context(), page.Request{Body: tt.body, ContentType: "application/pdf", URL: "https://example.com/"})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if d.Text != tt.want || d.Pages != tt.pages || d.Kind != page.KindPDF {
			t.Errorf("%s: %+v, want %q", tt.name, d, tt.want)
		}
	}
}

// Pages, PDFs and large texts are read in a separate process, whatever the request.
func TestApart(t *testing.T) {
	large := strings.Repeat("text ", 100_000)
	for _, tt := range []struct {
		r    page.Request
		want bool
	}{
		{page.Request{ContentType: "text/html", Body: []byte("<p>short")}, true},
		{page.Request{ContentType: "text/html", Body: []byte("<p>short"), Format: page.Text, Selector: "p"}, true},
		{page.Request{ContentType: "text/html", Body: []byte("<p>short"), Links: &page.LinkRequest{}}, true},
		{page.Request{ContentType: "text/html", Body: []byte("<p>short"), Format: page.Raw}, false},
		{page.Request{ContentType: "text/html", Body: []byte("<p>" + large), Format: page.Raw}, true},
		{page.Request{ContentType: "text/plain", Body: []byte("short")}, false},
		{page.Request{ContentType: "text/plain", Body: []byte(large)}, true},
		{page.Request{ContentType: "application/pdf", Body: []byte("%PDF-1.4")}, true},
		{page.Request{ContentType: "application/pdf", Body: []byte("%PDF-1.4"), Plain: true}, false},
		{page.Request{ContentType: "image/png", Body: []byte(large)}, false},
	} {
		if got := page.Apart(tt.r); got != tt.want {
			t.Errorf("%s of %d bytes as %q: apart %v, want %v", tt.r.ContentType, len(tt.r.Body), tt.r.Format, got, tt.want)
		}
	}
}

// A separate process reads a page with the same result.
func TestLargePages(t *testing.T) {
	long := strings.Repeat("<p>Boats are old, and people have always built them, of wood, of skins, and of reed.</p>\n", 8000)
	r := page.Request{Body: []byte("<title>T</title>" + long), ContentType: "text/html", URL: "https://example.com/", Format: page.Markdown}
	if !page.Apart(r) {
		t.Fatal("the page is not large enough")
	}
	apart, err := page.Isolated(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	here, err := page.Convert(r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(here, apart); diff != "" || len(here.Text) < 500_000 {
		t.Errorf("%d and %d bytes, %s: %.1000s", len(apart.Text), len(here.Text), here.Extract, diff)
	}
	larger := page.Request{Body: bytes.Repeat([]byte("\"text\" "), 500_000), ContentType: "text/plain", URL: "https://example.com/"}
	if d, err := page.Isolated(t.Context(), larger); err != nil || len(d.Text) != 2<<20 || d.End != len(d.Text) || d.Total != len(larger.Body) {
		t.Errorf("%d of %d bytes, %v; want 2 MiB", len(d.Text), len(larger.Body), err)
	}
	r.Selector = "p["
	if _, err := page.Isolated(t.Context(), r); err == nil || tool.AsError(err).Code != tool.InvalidArgument {
		t.Errorf("the error of the other process: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := page.Isolated(ctx, r); err == nil {
		t.Error("a canceled call goes on")
	}
}

// Pages that are made to take long end within bounds, too.
func TestHostilePages(t *testing.T) {
	for name, text := range map[string]string{
		"elements never closed": strings.Repeat("<div>", 400_000),
		"formatting, mixed up":  strings.Repeat("<b><i><u><a href=x>", 60_000),
		"tables in tables":      strings.Repeat("<table><tr><td>", 100_000),
		"attributes":            "<p " + strings.Repeat("a=b ", 400_000) + ">text",
		"entities":              strings.Repeat("&notanentity&amp;", 100_000),
		"a comment":             "<!--" + strings.Repeat("-", 1<<20),
		"lists in lists":        strings.Repeat("<ul><li>", 100_000) + "text",
		"quotes":                strings.Repeat("<blockquote>", 500) + strings.Repeat("text ", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []page.Format{page.Markdown, page.Text, page.HTML} {
				d, err := page.Isolated(t.Context(), page.Request{Body: []byte(text), ContentType: "text/html", URL: "https://example.com/", Format: format})
				if err != nil && tool.AsError(err).Code != tool.ResourceExhausted {
					t.Errorf("%s: %v", format, err)
				}
				if len(d.Text) > 8<<20 {
					t.Errorf("%s: %d bytes", format, len(d.Text))
				}
			}
		})
	}
}

// FuzzConvert: no document causes a panic or invalid text.
func FuzzConvert(f *testing.F) {
	for _, text := range []string{
		"<p>text", "<table><tr><td>a|b", "<a href='x y'>[l]", "<pre><code class=language-x>```", "{\"a\":1}", "<ul><li><ul><li>x", "\xff\xfe\x00", "<base href='//x'><img src=y>", "<svg><title>x", "<select><option>y",
	} {
		f.Add([]byte(text), "text/html", "p")
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType, selector string) {
		for _, format := range []page.Format{page.Markdown, page.Text, page.HTML, page.Raw} {
			for _, selector := range []string{"", selector} {
				r := page.Request{Body: body, ContentType: contentType, URL: "https://example.com/", Format: format, Selector: selector}
				d, err := page.Convert(r)
				if err == nil && (strings.ContainsRune(d.Text, '\u202e') || strings.ToValidUTF8(d.Text, "") != d.Text) {
					t.Errorf("%q became %q", body, d.Text)
				}
			}
		}
		links := &page.LinkRequest{Limit: 10, Bytes: 1000}
		if d, err := page.Convert(page.Request{Body: body, ContentType: contentType, URL: "https://example.com/", Links: links}); err != nil || len(d.Links) > d.Total {
			t.Errorf("%q has the links %+v, %v", body, d, err)
		}
	})
}
