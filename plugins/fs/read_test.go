package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/tool"
)

// numbered returns the lines "line 1" to "line n".
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestReadFile(t *testing.T) {
	dir := tree(t, map[string]string{
		"ten.txt":     numbered(10),
		"open.txt":    "one\ntwo",
		"crlf.txt":    "a\r\nb\r\n",
		"mixed.txt":   "a\r\nb\n",
		"empty.txt":   "",
		"long.txt":    strings.Repeat("é", 1000) + "\nnext\n",
		"bom.txt":     "\xEF\xBB\xBFhi\n",
		"utf16le.txt": "\xFF\xFEh\x00i\x00\n\x00",
		"utf16be.txt": "\xFE\xFF\x00h\x00i",
		"bare16.txt":  "h\x00i\x00",
		"latin1.txt":  "caf\xe9\n",
		"sjis.txt":    "\x93\xfa\x96\x7b\n",
		"gbk.txt":     "\xc4\xe3\n",
		"broken.txt":  strings.Repeat("a\n", 5000) + "\xff\n",
		"data.bin":    "\x00\x01\x02",
		"page.html":   "<!DOCTYPE html><p>hi</p>",
		"one.png":     "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"one.wav":     "RIFF\x24\x00\x00\x00WAVEfmt ",
	})
	w := workspaceOf(t, dir, 1000+noteRoom)
	for _, tt := range []struct {
		name      string
		in        readFileArgs
		want      string         // text parts, joined by newlines
		wantFacts map[string]any // some of the metadata
		wantErr   string
	}{
		{
			name: "whole", in: readFileArgs{Path: "ten.txt"}, want: numbered(10),
			wantFacts: map[string]any{
				"path": "ten.txt", "first_line": 1, "last_line": 10, "total_lines": 10, "total_bytes": int64(71), "eol": "lf", "encoding": "utf-8",
				"hash": "sha256:e71d970d34a5003190f0bcebf4e79bee538969aab5d24eef5449177468562b35", "next_offset": nil,
			},
		},
		{
			name: "offset and limit", in: readFileArgs{Path: "ten.txt", lineRange: lines(3, 2)},
			want:      "line 3\nline 4\n\n[lines 3-4 of 10; continue with offset=5]",
			wantFacts: map[string]any{"first_line": 3, "last_line": 4, "next_offset": 5},
		},
		{name: "from the end", in: readFileArgs{Path: "ten.txt", lineRange: lines(-2, 0)}, want: "line 9\nline 10\n", wantFacts: map[string]any{"first_line": 9}},
		{name: "more than there is from the end", in: readFileArgs{Path: "open.txt", lineRange: lines(-9, 0)}, want: "one\ntwo"},
		{name: "last line without its end", in: readFileArgs{Path: "open.txt", lineRange: lines(2, 1)}, want: "two", wantFacts: map[string]any{"last_line": 2, "total_lines": 2, "next_offset": nil}},
		{name: "past the end", in: readFileArgs{Path: "ten.txt", lineRange: lines(11, 0)}, wantErr: "invalid_argument: offset is 11, but ten.txt has 10 lines"},
		{name: "offset 0", in: readFileArgs{Path: "ten.txt", lineRange: lineRange{Offset: new(0)}}, wantErr: "invalid_argument: offset is 0, but lines are counted from 1"},
		{name: "limit 0", in: readFileArgs{Path: "ten.txt", lineRange: lineRange{Limit: new(0)}}, wantErr: "invalid_argument: limit is 0, expected at least 1"},
		{name: "limit -1", in: readFileArgs{Path: "ten.txt", lineRange: lineRange{Limit: new(-1)}}, wantErr: "invalid_argument: limit is -1, expected at least 1"},
		{name: "crlf", in: readFileArgs{Path: "crlf.txt"}, want: "a\r\nb\r\n", wantFacts: map[string]any{"eol": "crlf"}},
		{name: "mixed", in: readFileArgs{Path: "mixed.txt"}, want: "a\r\nb\n", wantFacts: map[string]any{"eol": "mixed"}},
		{name: "empty", in: readFileArgs{Path: "empty.txt"}, want: "\n[the file is empty]", wantFacts: map[string]any{"total_lines": 0, "eol": "none"}},
		{
			name: "long line", in: readFileArgs{Path: "long.txt"},
			want: strings.Repeat("é", 500) + "\n[line 1 of 2 is too long and was cut; continue with offset=2]", wantFacts: map[string]any{"next_offset": 2},
		},
		{name: "byte order mark", in: readFileArgs{Path: "bom.txt"}, want: "hi\n", wantFacts: map[string]any{"byte_order_mark": true, "encoding": "utf-8"}},
		{name: "utf-16le", in: readFileArgs{Path: "utf16le.txt"}, want: "hi\n", wantFacts: map[string]any{"encoding": "utf-16le", "total_lines": 1}},
		{name: "utf-16be", in: readFileArgs{Path: "utf16be.txt", Encoding: "utf-16"}, want: "hi", wantFacts: map[string]any{"encoding": "utf-16be"}},
		{name: "utf-16 by name", in: readFileArgs{Path: "bare16.txt", Encoding: "utf-16"}, want: "hi", wantFacts: map[string]any{"encoding": "utf-16le"}},
		{name: "latin1 by guess", in: readFileArgs{Path: "latin1.txt"}, want: "café\n", wantFacts: map[string]any{"encoding": "windows-1252"}},
		{name: "latin1 by name", in: readFileArgs{Path: "latin1.txt", Encoding: "latin1"}, want: "café\n", wantFacts: map[string]any{"encoding": "latin1"}},
		{name: "latin1 as utf-8", in: readFileArgs{Path: "latin1.txt", Encoding: "utf-8"}, want: "caf\uFFFD\n", wantFacts: map[string]any{"invalid_characters": true}},
		{name: "shift_jis", in: readFileArgs{Path: "sjis.txt", Encoding: "shift_jis"}, want: "日本\n"},
		{name: "gbk", in: readFileArgs{Path: "gbk.txt", Encoding: "gbk"}, want: "你\n"},
		{name: "unknown encoding", in: readFileArgs{Path: "gbk.txt", Encoding: "ebcdic"}, wantErr: `invalid_argument: unknown encoding "ebcdic"`},
		{name: "invalid later on", in: readFileArgs{Path: "broken.txt", lineRange: lines(-1, 0)}, want: "\uFFFD\n"},
		{name: "binary", in: readFileArgs{Path: "data.bin"}, want: "Binary file: application/octet-stream, 3 bytes", wantFacts: map[string]any{"media_type": "application/octet-stream", "total_bytes": int64(3)}},
		{name: "binary as text", in: readFileArgs{Path: "data.bin", Encoding: "latin1"}, want: "\x00\x01\x02"},
		{name: "html is text", in: readFileArgs{Path: "page.html"}, want: "<!DOCTYPE html><p>hi</p>"},
		{name: "directory", in: readFileArgs{Path: "."}, wantErr: "failed: Failed to read file: it is a directory, not a regular file"},
		{name: "missing", in: readFileArgs{Path: "none.txt"}, wantErr: "not_found: File not found: none.txt"},
		{name: "outside", in: readFileArgs{Path: "../x"}, wantErr: "permission_denied: Path not allowed by security policy: ../x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readFile(t.Context(), w, tt.in)
			if diff := cmp.Diff(tt.wantErr, message(err)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, got.Text()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			for fact, want := range tt.wantFacts {
				if diff := cmp.Diff(want, got.Metadata[fact]); diff != "" {
					t.Errorf("metadata %q (-want +got):\n%s", fact, diff)
				}
			}
		})
	}
}

// lines chooses lines; limit 0 leaves it out.
func lines(offset, limit int) lineRange {
	r := lineRange{Offset: &offset}
	if limit != 0 {
		r.Limit = &limit
	}
	return r
}

func TestReadFileMedia(t *testing.T) {
	dir := tree(t, map[string]string{
		"one.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"one.wav": "RIFF\x24\x00\x00\x00WAVEfmt ",
	})
	for _, tt := range []struct {
		path string
		want tool.Content
	}{
		{"one.png", tool.Content{Kind: tool.KindImage, MediaType: "image/png", Name: "one.png", Data: []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")}},
		{"one.wav", tool.Content{Kind: tool.KindAudio, MediaType: "audio/wav", Name: "one.wav", Data: []byte("RIFF\x24\x00\x00\x00WAVEfmt ")}},
	} {
		got, err := readFile(t.Context(), workspaceOf(t, dir, 1000), readFileArgs{Path: tt.path})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]tool.Content{tt.want}, got.Content); diff != "" {
			t.Errorf("readFile(%s) (-want +got):\n%s", tt.path, diff)
		}
	}
	small := workspaceOf(t, dir, 10)
	if got, err := small.readBinary(&file{path: "x.png", size: 16, mediaType: "image/png"}); err != nil || got.Text() != "image/png of 16 bytes, too large to show: at most 10 bytes are possible" {
		t.Errorf("readBinary of a large image = %q, %v", got.Text(), err)
	}
}

// A file that is larger than the result may be can be read in windows that,
// put together, are the file.
func TestReadFileWindows(t *testing.T) {
	var content bytes.Buffer
	for i := 0; content.Len() < 142_857; i++ {
		fmt.Fprintf(&content, "%d%s\n", i, strings.Repeat("x", i%97))
	}
	content.Truncate(142_857)
	dir := tree(t, map[string]string{"big.txt": content.String()})
	w := workspaceOf(t, dir, 16*tool.KiB)
	var got bytes.Buffer
	in := readFileArgs{Path: "big.txt"}
	for rounds := 1; ; rounds++ {
		result, err := readFile(t.Context(), w, in)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(result.Text()); n > w.budget {
			t.Fatalf("window %d has %d bytes, want at most %d", rounds, n, w.budget)
		}
		got.Write(result.Content[0].Data)
		next, more := result.Metadata["next_offset"].(int)
		if !more {
			break
		}
		in.Offset = &next
		if rounds > 100 {
			t.Fatal("no end after 100 windows")
		}
	}
	if !bytes.Equal(got.Bytes(), content.Bytes()) {
		t.Errorf("windows put together have %d bytes and differ from the file", got.Len())
	}
}

// Of a file that is too large to read, only what is needed is read: its first
// lines at once, its last lines from the end, never all of it.
func TestReadFileSparse(t *testing.T) {
	dir := t.TempDir()
	make := func(name, head, tail string) {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		const size = 10 << 30
		if _, err := f.WriteString(head); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(tail), size-int64(len(tail))); err != nil {
			t.Fatal(err)
		}
	}
	make("zeros", "", "\x00")
	make("log", numbered(5000), "\n"+numbered(3))
	w := workspaceOf(t, dir, 1000+noteRoom)
	for _, tt := range []struct {
		name    string
		in      readFileArgs
		want    string
		wantErr string
	}{
		{"binary", readFileArgs{Path: "zeros"}, "Binary file: application/octet-stream, 10737418240 bytes", ""},
		{"one line", readFileArgs{Path: "zeros", Encoding: "utf-8"}, strings.Repeat("\x00", 1000) + "\n[line 1 is too long and was cut; continue with offset=2]", ""},
		{"first lines", readFileArgs{Path: "log", lineRange: lines(2, 1)}, "line 2\n\n[lines 2-2; continue with offset=3]", ""},
		{"last lines", readFileArgs{Path: "log", lineRange: lines(-2, 0)}, "line 2\nline 3\n", ""},
		{"beyond", readFileArgs{Path: "log", lineRange: lines(-200, 0)}, "", "invalid_argument: offset is -200, but the last 64 MiB of log have 3 lines only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readFile(t.Context(), w, tt.in)
			if message(err) != tt.wantErr || got.Text() != tt.want {
				t.Errorf("readFile = %.60q, %q, want %.60q, %q", got.Text(), message(err), tt.want, tt.wantErr)
			}
			if hash, ok := got.Metadata["hash"]; ok {
				t.Errorf("hash = %v, want none for a file that was not read wholly", hash)
			}
		})
	}
}

func TestReadFiles(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "a\n", "ten.txt": numbered(10), ".env": "X=1"})
	w := workspaceOf(t, dir, 8*tool.KiB)
	got, err := readFiles(t.Context(), w, readFilesArgs{Items: []readFilesItem{
		{Path: "a.txt"}, {Path: "missing"}, {Path: ".env"}, {Path: "ten.txt", lineRange: lines(2, 1)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := "==> a.txt <==\na\n\n==> missing <==\n[File not found: missing]\n==> .env <==\n[Path not allowed by security policy: .env]\n" +
		"==> ten.txt <==\nline 2\n\n[lines 2-2 of 10; continue with offset=3]"
	if diff := cmp.Diff(want, got.Text()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if got.Error != nil || got.Metadata["failed"] != 2 {
		t.Errorf("error %v, failed %v, want no error and 2", got.Error, got.Metadata["failed"])
	}
}
