package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/pdf/pdftest"
	"github.com/toolhost/toolhost/sdk/tool"
)

func BenchmarkReadFile(b *testing.B) {
	for _, size := range []tool.ByteSize{tool.KiB, tool.MiB} {
		b.Run(size.String(), func(b *testing.B) {
			line := strings.Repeat("x", 63) + "\n"
			dir := filetest.Tree(b, map[string]string{"a/b/c/file.txt": strings.Repeat(line, int(size)/len(line))})
			p := start(b, dir, tool.MiB)
			b.SetBytes(int64(size))
			for b.Loop() {
				if got := p.Call(b.Context(), "read_file", readFileArgs{Path: "a/b/c/file.txt"}); len(got.Text()) != int(size) {
					b.Fatalf("read %d bytes, want %d: %v", len(got.Text()), size, got.Error)
				}
			}
		})
	}
}

// BenchmarkReadPDF reads the first and the last pages of a PDF of 1,000 pages, in a process of
// its own each time.
func BenchmarkReadPDF(b *testing.B) {
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = fmt.Sprintf("page %d\n", i+1) + strings.Repeat(strings.Repeat("word ", 16)+"\n", 40)
	}
	p := start(b, filetest.Tree(b, map[string]string{"a.pdf": string(pdftest.OfPages(texts...))}), 40*tool.KiB)
	for _, pages := range []string{"", "990-1000"} {
		b.Run("pages="+pages, func(b *testing.B) {
			for b.Loop() {
				got := p.Call(b.Context(), "read_file", readFileArgs{Path: "a.pdf", Pages: pages})
				if got.Metadata["total_pages"] != float64(1000) || len(got.Text()) < 20<<10 {
					b.Fatalf("read %v: %v", got.Metadata, got.Error)
				}
				b.ReportMetric(got.Metadata["last_page"].(float64)-got.Metadata["first_page"].(float64)+1, "pages")
			}
		})
	}
}

func BenchmarkListDirectory(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%04d.txt", i)), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	p := start(b, dir, 64*tool.KiB)
	for b.Loop() {
		if got := p.Call(b.Context(), "list_directory", listDirectoryArgs{}); got.Metadata["shown"] != float64(1000) {
			b.Fatalf("listed %v: %v", got.Metadata, got.Error)
		}
	}
}

// BenchmarkSearchFiles finds some of 20,000 files.
func BenchmarkSearchFiles(b *testing.B) {
	dir := b.TempDir()
	for i := range 20_000 {
		name := filepath.Join(dir, fmt.Sprintf("d%d/e%d/file-%05d.txt", i%20, i/20%50, i))
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err := errors.Join(err, os.WriteFile(name, nil, 0o644)); err != nil {
			b.Fatal(err)
		}
	}
	p := start(b, dir, 64*tool.KiB)
	for b.Loop() {
		if got := p.Call(b.Context(), "search_files", searchFilesArgs{Pattern: "*99.txt"}); got.Metadata["shown"] != float64(200) {
			b.Fatalf("found %v: %v", got.Metadata, got.Error)
		}
	}
}

// BenchmarkWriteFile writes 1 KiB, and compares that with the cost of its promises: a new file,
// synced, renamed, and a synced directory.
func BenchmarkWriteFile(b *testing.B) {
	content := strings.Repeat("x", 1023) + "\n"
	b.Run("tool", func(b *testing.B) {
		p := start(b, filetest.Tree(b, map[string]string{"a/b/c/file.txt": content}), tool.MiB)
		for b.Loop() {
			if got := p.Call(b.Context(), "write_file", writeFileArgs{Path: "a/b/c/file.txt", Content: content}); got.Error != nil {
				b.Fatal(got.Error)
			}
		}
	})
	b.Run("system", func(b *testing.B) {
		dir := filepath.Join(filetest.Tree(b, map[string]string{"a/b/c/file.txt": content}), "a/b/c")
		d, err := os.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		defer d.Close()
		for b.Loop() {
			f, err := os.Create(filepath.Join(dir, "temporary"))
			if err != nil {
				b.Fatal(err)
			}
			_, err = f.WriteString(content)
			if err := errors.Join(err, f.Sync(), os.Rename(f.Name(), filepath.Join(dir, "file.txt")), d.Sync(), f.Close()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEditFile(b *testing.B) {
	for _, size := range []tool.ByteSize{tool.KiB, tool.MiB} {
		b.Run(size.String(), func(b *testing.B) {
			line := strings.Repeat("x", 63) + "\n"
			dir := filetest.Tree(b, map[string]string{"a/b/c/file.txt": strings.Repeat(line, int(size)/len(line)) + "value: a\n"})
			p := start(b, dir, tool.MiB)
			was, now := "value: a", "value: b"
			for b.Loop() {
				if got := p.Call(b.Context(), "edit_file", editCall("a/b/c/file.txt", was, now)); got.Error != nil {
					b.Fatal(got.Error)
				}
				was, now = now, was
			}
		})
	}
}
