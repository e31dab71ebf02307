package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

func BenchmarkReadFile(b *testing.B) {
	for _, size := range []tool.ByteSize{tool.KiB, tool.MiB} {
		b.Run(size.String(), func(b *testing.B) {
			line := strings.Repeat("x", 63) + "\n"
			dir := tree(b, map[string]string{"a/b/c/file.txt": strings.Repeat(line, int(size)/len(line))})
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
