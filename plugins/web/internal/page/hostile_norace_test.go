//go:build !race

package page_test

import (
	"bytes"
	"testing"

	"github.com/toolhost/toolhost/plugins/web/internal/page"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Whatever a document contains, reading it ends within bounds and does not affect other calls.
func TestHostileDocuments(t *testing.T) {
	zeros := bytes.Repeat([]byte("("), 64<<20)
	for name, body := range map[string][]byte{
		"a bomb":                 makePDF(0, catalog, tree, onePage, stream("/FlateDecode", deflated(zeros, zeros, zeros, zeros, zeros, zeros, zeros, zeros)), font),
		"a bomb of a bomb":       makePDF(0, catalog, tree, onePage, stream("[/FlateDecode /FlateDecode]", deflated(deflated(zeros, zeros, zeros, zeros, zeros, zeros, zeros, zeros))), font),
		"more objects than any":  bytes.Replace(makePDF(0, catalog, tree, onePage, stream("", nil), font), []byte("0 6\n0000000000"), []byte("9999999999 6\n0000000000"), 1),
		"a huge size":            makePDF(1<<40, catalog, tree, onePage, stream("", nil), font),
		"a tree in a circle":     makePDF(0, catalog, "<< /Type /Pages /Kids [2 0 R] /Count 100000 >>"),
		"a parent of itself":     makePDF(0, catalog, tree, "<< /Type /Page /Parent 3 0 R /Contents 4 0 R >>", stream("", []byte("BT /F1 12 Tf (x) Tj ET")), font),
		"many pages":             makePDF(0, catalog, "<< /Type /Pages /Kids [3 0 R] /Count 2000000000 >>", onePage, stream("", nil), font),
		"a filter that is none":  makePDF(0, catalog, tree, onePage, stream("/Nonsense", []byte("x")), font),
		"brackets without end":   makePDF(0, catalog, tree, onePage, stream("", bytes.Repeat([]byte("["), 4<<20)), font),
		"dictionaries, the same": makePDF(0, catalog, tree, onePage, stream("", bytes.Repeat([]byte("<<"), 4<<20)), font),
		"no text":                makePDF(0, catalog, tree, onePage, stream("", nil), font),
		"cut":                    makePDF(0, catalog, tree, onePage)[:100],
		"another version":        []byte("%PDF-2.0\nnothing"),
		"nothing":                {},
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
