//go:build !race

package page_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/web/internal/page"
	"github.com/toolhost/toolhost/sdk/pdf/pdftest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Whatever a PDF contains (package pdf has more of them), reading it ends within bounds and does not affect other calls.
func TestHostileDocuments(t *testing.T) {
	for name, body := range map[string][]byte{
		"more objects than any": bytes.Replace(pdftest.OfPages("text"), []byte("xref\n0 "), []byte("xref\n90000000 "), 1),
		"a tree in a circle":    pdftest.Make(pdftest.Catalog, "<< /Type /Pages /Kids [2 0 R] /Count 100000 >>"),
		"many pages":            pdftest.Make(pdftest.Catalog, "<< /Type /Pages /Kids [3 0 R] /Count 2000000000 >>", pdftest.OnePage, pdftest.Stream("", nil), pdftest.Font),
		"no text":               pdftest.Make(pdftest.Catalog, pdftest.Tree, pdftest.OnePage, pdftest.Stream("", nil), pdftest.Font),
		"cut":                   pdftest.Make(pdftest.Catalog, pdftest.Tree, pdftest.OnePage)[:100],
		"another version":       []byte("%PDF-2.0\nnothing"),
		"nothing":               {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := page.Isolated(t.Context(), page.Request{Body: body, ContentType: "application/pdf", URL: "https://example.com/"})
			if err == nil {
				t.Fatalf("it became %.200q", d.Text)
			}
			if e := tool.AsError(err); e.Code != tool.Failed && e.Code != tool.ResourceExhausted || e.Hint == "" {
				t.Errorf("%v, want an error for a model", err)
			}
		})
	}
}

// Tables and code blocks that ask for more than they are become text, within the bounds of
// every page.
func TestHostileTables(t *testing.T) {
	for name, tt := range map[string]struct {
		body, want string
		article    bool
	}{
		"100,000 cells":      {"<table>" + strings.Repeat("<tr>"+strings.Repeat("<td>x", 10), 10_000), "|x|x|x|x|x|x|x|x|x|x|\n|---|", false},
		"more with spans":    {"<table>" + strings.Repeat("<tr><td colspan=1000>x", 1000), "x\n\nx\n\nx", false},
		"a huge colspan":     {"<table><tr><td colspan=1000000000>x<tr><td>y", "|x||||", false},
		"a huge rowspan":     {"<table><tr><td rowspan=1000000000>x<td>y", "|x|y|", false},
		"huge rowspans":      {"<table>" + strings.Repeat("<tr>"+strings.Repeat("<td rowspan=65534>x", 10), 1000), "x\n\nx\n\nx", false},
		"rows without cells": {"<table><tr>" + strings.Repeat("<td colspan=1000 rowspan=65534>x", 100) + strings.Repeat("<tr>", 1000), "x\n\nx\n\nx", false},
		"one long row":       {"<table><tr>" + strings.Repeat("<td>x", 10_000) + strings.Repeat("<tr><td>x", 10_000), "x\n\nx\n\nx", false},
		"many that are wide": {strings.Repeat("<table><tr><td colspan=1000>x<td>y</table>", 1000), "|x||||", false},
		"tables in tables":   {strings.Repeat("<table><tr><td>a<td>", 120) + "x", "a\n\na", false},
		"the same, in cells": {strings.Repeat("<table><tr><th>a<td>", 120) + "x", "|a|a  <br />a", false},
		"classes":            {"<div class='" + strings.Repeat("language- ", 100_000) + "'>" + strings.Repeat("<pre class=language-go>x</pre><p>", 5000), "```go\nx\n```", true},
		"many wrappers":      {strings.Repeat(strings.Repeat("<div>", 400)+"<pre class=language-go>x</pre>"+strings.Repeat("</div>", 400), 50), "```go\nx\n```", true},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := page.Isolated(t.Context(), page.Request{
				Body: []byte(tt.body), ContentType: "text/html", URL: "https://example.com/", Format: page.Markdown, Whole: !tt.article, Part: page.Part{Length: 1000},
			})
			if err != nil || !strings.HasPrefix(d.Text, tt.want) {
				t.Errorf("it becomes %.100q, %v, want %q", d.Text, err, tt.want)
			}
		})
	}
}
