//go:build !race

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/sdk/pdf/pdftest"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestParsePages(t *testing.T) {
	for text, want := range map[string][2]int{"": {1, 0}, "3": {3, 3}, "3-7": {3, 7}, "3-": {3, 0}, " 3 - 7 ": {3, 7}, "1-1": {1, 1}} {
		if first, last, err := parsePages(text); err != nil || [2]int{first, last} != want {
			t.Errorf("parsePages(%q) = %d, %d, %v, want %v", text, first, last, err, want)
		}
	}
	for _, text := range []string{"0", "-", "-3", "7-3", "3-0", "a", "1,3", "1-2-3", "99999999999999999999", strings.Repeat("9", 1<<20)} {
		if _, _, err := parsePages(text); err == nil || tool.AsError(err).Code != tool.InvalidArgument || len(tool.AsError(err).Message) > 200 {
			t.Errorf("parsePages(%.100q) = %v, want an error", text, err)
		}
	}
}

// The calls that the notes name read a PDF to its end: page by page, and within pages that do
// not fit. Together they return all of it.
func TestReadFileOfManyPages(t *testing.T) {
	long := strings.Repeat(strings.Repeat("word ", 10)+"\n", 200) + strings.Repeat("x", 7000)
	texts := []string{"first", long, "", strings.Repeat("y", 10_000)}
	for i := range 60 {
		texts = append(texts, fmt.Sprintf("page %d is\nshort", i))
	}
	p := start(t, filetest.Tree(t, map[string]string{"a.pdf": string(pdftest.OfPages(texts...))}), 3000+page.NoteRoom)
	var got strings.Builder
	in := map[string]any{"path": "a.pdf"}
	for rounds := 0; ; rounds++ {
		result := p.Call(t.Context(), "read_file", in)
		if n := len(result.Text()); result.Error != nil || n > 3000+page.NoteRoom || rounds > 100 {
			t.Fatalf("call %d with %v: %d bytes, %v", rounds, in, n, result.Error)
		}
		got.Write(result.Content[0].Data)
		in = map[string]any{"path": "a.pdf", "pages": result.Metadata["next_pages"]}
		if in["pages"] == nil {
			break
		}
		note := "continue with pages=" + in["pages"].(string) + "]"
		if offset := result.Metadata["next_offset"]; offset != nil {
			in["offset"] = offset
			note = fmt.Sprintf("with pages=%v offset=%v]", in["pages"], offset)
		}
		if column := result.Metadata["next_column"]; column != nil {
			in["column"] = column
			note = fmt.Sprintf("with pages=%v offset=%v column=%.0f]", in["pages"], in["offset"], column)
		}
		if !strings.HasSuffix(result.Text(), note) {
			t.Fatalf("call %d ends in %q, want %q", rounds, result.Text()[len(result.Text())-100:], note)
		}
	}
	var want strings.Builder
	for i, text := range texts {
		if text == "" {
			fmt.Fprintf(&want, "[page %d has no text, but perhaps images]\n", i+1)
			continue
		}
		fmt.Fprintf(&want, "[page %d]\n%s\n", i+1, strings.ReplaceAll(text, " \n", "\n"))
	}
	if text := strings.ReplaceAll(got.String(), " \n", "\n"); text != want.String() {
		t.Errorf("what was read has %d bytes and differs from the %d of the pages", len(text), want.Len())
	}
}

// PDFs that cannot be read have an error that says why and what to do.
func TestReadFileHostilePDFs(t *testing.T) {
	whole := string(pdftest.OfPages("good"))
	dir := filetest.Tree(t, map[string]string{
		"text.pdf": "%PDF-1.7 is a version of PDF\n", "cut.pdf": whole[:300],
		"bomb.pdf":   strings.Replace(whole, "xref\n0 ", "xref\n90000000 ", 1),
		"locked.pdf": string(pdftest.MakeWith("/Encrypt << /Filter /Standard /V 5 /R 6 /Length 256 >>", pdftest.Catalog)),
		"circle.pdf": string(pdftest.Make(pdftest.Catalog, "<< /Type /Pages /Kids [2 0 R] /Count 100000 >>")),
		"broken.pdf": string(pdftest.Make(pdftest.Catalog, pdftest.Tree, pdftest.OnePage, pdftest.Stream("/Nonsense", []byte("x")), pdftest.Font)),
		"good.pdf":   whole,
	})
	p := start(t, dir, 4*tool.KiB)
	const hint = "ask for the document in another format; the encoding latin1 shows the bytes of the file"
	for name, want := range map[string]string{
		"text.pdf":   "failed: the PDF cannot be read: it is damaged or unsupported",
		"cut.pdf":    "failed: the PDF cannot be read: it is damaged or unsupported",
		"locked.pdf": "failed: the PDF is encrypted in an unsupported way: only RC4 and AES with keys of 128 bits can be read",
		"circle.pdf": "failed: the PDF cannot be read: it is damaged or unsupported",
		"bomb.pdf":   "resource_exhausted: the PDF takes too much time or memory to read",
	} {
		got := p.Call(t.Context(), "read_file", readFileArgs{Path: name})
		if message(got) != want || got.Error.Hint != hint {
			t.Errorf("%s = %.100q, %q, want %q", name, got.Text(), message(got), want)
		}
	}
	if got := p.Call(t.Context(), "read_file", readFileArgs{Path: "broken.pdf"}); got.Text() != "[page 1 cannot be read]\n" {
		t.Errorf("broken.pdf = %q, %q", got.Text(), message(got))
	}
	if got := p.Call(t.Context(), "read_file", readFileArgs{Path: "text.pdf", Encoding: "latin1"}); got.Text() != "%PDF-1.7 is a version of PDF\n" {
		t.Errorf("text.pdf as text = %q, %q", got.Text(), message(got))
	}
	got := p.Call(t.Context(), "read_files", readFilesArgs{Paths: []string{"good.pdf", "cut.pdf", "good.pdf"}})
	if got.Error != nil || strings.Count(got.Text(), "[page 1]\ngood\n") != 2 || !strings.Contains(got.Text(), "==> cut.pdf <==\n[the PDF cannot be read") {
		t.Errorf("read_files = %q, %q", got.Text(), message(got))
	}
}
