package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/unicode"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/pdf/pdftest"
	"github.com/toolhost/toolhost/sdk/sdktest"
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
	dir := filetest.Tree(t, map[string]string{
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
		"three.pdf":   string(pdftest.OfPages("one\nmore", "", "three")),
	})
	runCases(t, dir, 1000+page.NoteRoom, readFileCases())
}

func readFileCases() []toolCase {
	return []toolCase{
		{
			tool: "read_file", name: "whole", in: readFileArgs{Path: "ten.txt"}, want: numbered(10),
			facts: map[string]any{
				"path": "ten.txt", "first_line": 1, "last_line": 10, "total_lines": 10, "total_bytes": 71, "eol": "lf", "encoding": "utf-8",
				"hash": "sha256:e71d970d34a5003190f0bcebf4e79bee538969aab5d24eef5449177468562b35", "next_offset": nil,
			},
		},
		{
			tool: "read_file", name: "offset and limit", in: readFileArgs{Path: "ten.txt", lineRange: lines(3, 2)},
			want:  "line 3\nline 4\n\n[lines 3-4 of 10; continue with offset=5]",
			facts: map[string]any{"first_line": 3, "last_line": 4, "next_offset": 5},
		},
		{tool: "read_file", name: "from the end", in: readFileArgs{Path: "ten.txt", lineRange: lines(-2, 0)}, want: "line 9\nline 10\n", facts: map[string]any{"first_line": 9}},
		{tool: "read_file", name: "more than there is from the end", in: readFileArgs{Path: "open.txt", lineRange: lines(-9, 0)}, want: "one\ntwo"},
		{tool: "read_file", name: "last line without its end", in: readFileArgs{Path: "open.txt", lineRange: lines(2, 1)}, want: "two", facts: map[string]any{"last_line": 2, "total_lines": 2, "next_offset": nil}},
		{tool: "read_file", name: "numbers", in: readFileArgs{Path: "ten.txt", lineRange: lines(-2, 0), LineNumbers: true}, want: "     9\tline 9\n    10\tline 10\n", facts: map[string]any{"first_line": 9, "last_line": 10}},
		{
			tool: "read_file", name: "numbers in a long line", in: readFileArgs{Path: "long.txt", LineNumbers: true},
			want:  "     1\t" + strings.Repeat("é", 496) + "\n[line 1 of 2 is too long and was cut; continue in it with offset=1 column=993, or after it with offset=2]",
			facts: map[string]any{"next_offset": 1, "next_column": 993},
		},
		{
			tool: "read_file", name: "on in a long line with numbers", in: readFileArgs{Path: "long.txt", lineRange: column(1, 1985), LineNumbers: true},
			want: "     1\t" + strings.Repeat("é", 8) + "\n     2\tnext\n", facts: map[string]any{"next_offset": nil},
		},
		{tool: "read_file", name: "past the end", in: readFileArgs{Path: "ten.txt", lineRange: lines(11, 0)}, err: "invalid_argument: offset is 11, but ten.txt has 10 lines"},
		{tool: "read_file", name: "offset 0", in: readFileArgs{Path: "ten.txt", lineRange: lineRange{Offset: new(0)}}, err: "invalid_argument: offset is 0, but lines are counted from 1"},
		{tool: "read_file", name: "limit 0", in: readFileArgs{Path: "ten.txt", lineRange: lineRange{Limit: new(0)}}, err: "invalid_argument: limit is 0, expected at least 1"},
		{tool: "read_file", name: "limit -1", in: readFileArgs{Path: "ten.txt", lineRange: lineRange{Limit: new(-1)}}, err: "invalid_argument: limit is -1, expected at least 1"},
		{tool: "read_file", name: "crlf", in: readFileArgs{Path: "crlf.txt"}, want: "a\r\nb\r\n", facts: map[string]any{"eol": "crlf"}},
		{tool: "read_file", name: "mixed", in: readFileArgs{Path: "mixed.txt"}, want: "a\r\nb\n", facts: map[string]any{"eol": "mixed"}},
		{tool: "read_file", name: "empty", in: readFileArgs{Path: "empty.txt"}, want: "\n[the file is empty]", facts: map[string]any{"total_lines": 0, "eol": "none"}},
		{
			tool: "read_file", name: "long line", in: readFileArgs{Path: "long.txt"},
			want:  strings.Repeat("é", 500) + "\n[line 1 of 2 is too long and was cut; continue in it with offset=1 column=1001, or after it with offset=2]",
			facts: map[string]any{"next_offset": 1, "next_column": 1001},
		},
		{
			tool: "read_file", name: "on in a long line", in: readFileArgs{Path: "long.txt", lineRange: column(1, 1202)}, // in the middle of a character
			want:  strings.Repeat("é", 399) + "\nnext\n",
			facts: map[string]any{"first_line": 1, "last_line": 2, "next_offset": nil, "next_column": nil},
		},
		{
			tool: "read_file", name: "on in a line from the end", in: readFileArgs{Path: "long.txt", lineRange: column(-2, 998)},
			want:  strings.Repeat("é", 500) + "\n[line 1 of 2 is too long and was cut; continue in it with offset=1 column=1999, or after it with offset=2]",
			facts: map[string]any{"next_column": 1999},
		},
		{tool: "read_file", name: "the end of a line", in: readFileArgs{Path: "ten.txt", lineRange: lineRange{Column: new(7), Limit: new(1)}}, want: "\n\n[lines 1-1 of 10; continue with offset=2]"},
		{tool: "read_file", name: "past the end of a line", in: readFileArgs{Path: "ten.txt", lineRange: column(10, 9)}, err: "invalid_argument: column is 9, but line 10 of ten.txt has 7 bytes"},
		{tool: "read_file", name: "past the end of the last line", in: readFileArgs{Path: "open.txt", lineRange: column(2, 4)}, err: "invalid_argument: column is 4, but line 2 of open.txt has 3 bytes"},
		{tool: "read_file", name: "past all lines", in: readFileArgs{Path: "open.txt", lineRange: column(3, 2)}, err: "invalid_argument: offset is 3, but open.txt has 2 lines"},
		{tool: "read_file", name: "column 0", in: readFileArgs{Path: "ten.txt", lineRange: column(1, 0)}, err: "invalid_argument: column is 0, expected at least 1"},
		{tool: "read_file", name: "column in UTF-16", in: readFileArgs{Path: "utf16le.txt", lineRange: column(1, 2)}, want: "i\n"},
		{tool: "read_file", name: "byte order mark", in: readFileArgs{Path: "bom.txt"}, want: "hi\n", facts: map[string]any{"byte_order_mark": true, "encoding": "utf-8"}},
		{tool: "read_file", name: "utf-16le", in: readFileArgs{Path: "utf16le.txt"}, want: "hi\n", facts: map[string]any{"encoding": "utf-16le", "total_lines": 1}},
		{tool: "read_file", name: "utf-16be", in: readFileArgs{Path: "utf16be.txt", Encoding: "utf-16"}, want: "hi", facts: map[string]any{"encoding": "utf-16be"}},
		{tool: "read_file", name: "utf-16 by name", in: readFileArgs{Path: "bare16.txt", Encoding: "utf-16"}, want: "hi", facts: map[string]any{"encoding": "utf-16le"}},
		{tool: "read_file", name: "latin1 by guess", in: readFileArgs{Path: "latin1.txt"}, want: "café\n", facts: map[string]any{"encoding": "windows-1252"}},
		{tool: "read_file", name: "latin1 by name", in: readFileArgs{Path: "latin1.txt", Encoding: "latin1"}, want: "café\n", facts: map[string]any{"encoding": "latin1"}},
		{tool: "read_file", name: "latin1 as utf-8", in: readFileArgs{Path: "latin1.txt", Encoding: "utf-8"}, want: "caf\uFFFD\n\n[bytes that are not utf-8 are shown as U+FFFD; name another encoding, such as latin1]", facts: map[string]any{"invalid_characters": true}},
		{tool: "read_file", name: "shift_jis", in: readFileArgs{Path: "sjis.txt", Encoding: "shift_jis"}, want: "日本\n"},
		{tool: "read_file", name: "gbk", in: readFileArgs{Path: "gbk.txt", Encoding: "gbk"}, want: "你\n"},
		{tool: "read_file", name: "unknown encoding", in: readFileArgs{Path: "gbk.txt", Encoding: "ebcdic"}, err: `invalid_argument: unknown encoding "ebcdic"`},
		{tool: "read_file", name: "invalid later on", in: readFileArgs{Path: "broken.txt", lineRange: lines(-1, 0)}, want: "\uFFFD\n\n[bytes that are not utf-8 are shown as U+FFFD; name another encoding, such as latin1]"},
		{tool: "read_file", name: "binary", in: readFileArgs{Path: "data.bin"}, want: "Binary file: application/octet-stream, 3 bytes", facts: map[string]any{"media_type": "application/octet-stream", "total_bytes": 3}},
		{tool: "read_file", name: "binary as text", in: readFileArgs{Path: "data.bin", Encoding: "latin1"}, want: "\x00\x01\x02"},
		{tool: "read_file", name: "html is text", in: readFileArgs{Path: "page.html"}, want: "<!DOCTYPE html><p>hi</p>"},
		{
			tool: "read_file", name: "pdf", in: readFileArgs{Path: "three.pdf"},
			want:  "[page 1]\none\nmore\n[page 2 has no text, but perhaps images]\n[page 3]\nthree\n",
			facts: map[string]any{"first_page": 1, "last_page": 3, "total_pages": 3, "media_type": "application/pdf", "next_pages": nil},
		},
		{
			tool: "read_file", name: "a page of a pdf", in: readFileArgs{Path: "three.pdf", Pages: "1"}, want: "[page 1]\none\nmore\n\n[page 1 of 3; continue with pages=2-3]",
			facts: map[string]any{"first_page": 1, "last_page": 1, "next_pages": "2-3"},
		},
		{tool: "read_file", name: "the last pages of a pdf", in: readFileArgs{Path: "three.pdf", Pages: " 2 - "}, want: "[page 2 has no text, but perhaps images]\n[page 3]\nthree\n\n[pages 2-3 of 3, the end]"},
		{tool: "read_file", name: "more pages than there are", in: readFileArgs{Path: "three.pdf", Pages: "3-99"}, want: "[page 3]\nthree\n\n[page 3 of 3, the end]"},
		{
			tool: "read_file", name: "lines of a pdf", in: readFileArgs{Path: "three.pdf", Pages: "1-3", lineRange: lines(2, 1), LineNumbers: true},
			want: "     2\tone\n\n[page 1 of 3; continue in page 1 with pages=1-3 offset=3]", facts: map[string]any{"next_pages": "1-3", "next_offset": 3},
		},
		{tool: "read_file", name: "lines up to a page", in: readFileArgs{Path: "three.pdf", lineRange: lines(3, 2)}, want: "more\n[page 2 has no text, but perhaps images]\n\n[pages 1-2 of 3; continue with pages=3]"},
		{tool: "read_file", name: "past the pages", in: readFileArgs{Path: "three.pdf", Pages: "4-5"}, err: "invalid_argument: pages is 4-5, but three.pdf has 3 pages"},
		{tool: "read_file", name: "past the lines of a pdf", in: readFileArgs{Path: "three.pdf", Pages: "3", lineRange: lines(3, 0)}, err: "invalid_argument: offset is 3 and column 1, but the pages 3 of three.pdf that are read have 2 lines"},
		{tool: "read_file", name: "from the end of a pdf", in: readFileArgs{Path: "three.pdf", lineRange: lines(-1, 0)}, err: "invalid_argument: offset is -1, but three.pdf is a PDF, whose lines are counted from the first page that is read"},
		{tool: "read_file", name: "pages of text", in: readFileArgs{Path: "ten.txt", Pages: "1"}, err: "invalid_argument: pages is for PDFs, and ten.txt is read as text/plain; charset=utf-8"},
		{tool: "read_file", name: "directory", in: readFileArgs{Path: "."}, err: "failed: Failed to read file: it is a directory, not a regular file"},
		{tool: "read_file", name: "missing", in: readFileArgs{Path: "none.txt"}, err: "not_found: File not found: none.txt"},
		{tool: "read_file", name: "outside", in: readFileArgs{Path: "../x"}, err: "permission_denied: Path not allowed by security policy: ../x"},
	}
}

// column chooses where in a line to begin.
func column(offset, column int) lineRange { return lineRange{Offset: &offset, Column: &column} }

// lines chooses lines; limit 0 leaves it out.
func lines(offset, limit int) lineRange {
	r := lineRange{Offset: &offset}
	if limit != 0 {
		r.Limit = &limit
	}
	return r
}

// The lines at the end of a file that is too large to count its lines have no numbers.
func TestReadFileNumbersOfTheEnd(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a.log": numbered(2000)})
	if err := os.Truncate(filepath.Join(dir, "a.log"), 2*snapshot.MaxWhole); err != nil {
		t.Fatal(err)
	}
	got := start(t, dir, 4*tool.KiB).Call(t.Context(), "read_file", readFileArgs{Path: "a.log", lineRange: lines(-2, 0), LineNumbers: true})
	if want := "invalid_argument: line_numbers needs the number of the first line, which a negative offset does not tell in a file of more than 64 MiB"; message(got) != want {
		t.Errorf("read_file = %q, want %q", message(got), want)
	}
}

// Images and audio are returned as such, judged by the content of the file and not by its name.
func TestReadFileMedia(t *testing.T) {
	for _, tt := range []struct {
		name, content, mediaType string
		kind                     tool.Kind
	}{
		{"one.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "image/png", tool.KindImage},
		{"moving.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + strings.Repeat("\x00", 21) + "acTL", "image/png", tool.KindImage},
		{"misnamed.txt", "\xFF\xD8\xFF\xE0\x00\x10JFIF\x00", "image/jpeg", tool.KindImage},
		{"one.gif", "GIF89a\x01\x00\x01\x00", "image/gif", tool.KindImage},
		{"one.webp", "RIFF\x24\x00\x00\x00WEBPVP8 ", "image/webp", tool.KindImage},
		{"one.wav", "RIFF\x24\x00\x00\x00WAVEfmt ", "audio/wav", tool.KindAudio},
		{"one.mp3", "ID3\x03\x00\x00\x00\x00\x00\x0fTIT2\x00\x00\x00\x05\x00\x00\x00song", "audio/mpeg", tool.KindAudio},
		{"one.ogg", "OggS\x00\x02" + strings.Repeat("\x00", 22) + "\x7fFLAC" + strings.Repeat("\x00", 20), "audio/ogg", tool.KindAudio},
		{"one.flac", "fLaC\x00\x00\x00\x22", "audio/flac", tool.KindAudio},
		{"one.m4a", "\x00\x00\x00\x20ftypM4A \x00\x00\x00\x00", "audio/mp4", tool.KindAudio},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := start(t, filetest.Tree(t, map[string]string{tt.name: tt.content}), 1000).Call(t.Context(), "read_file", readFileArgs{Path: tt.name})
			want := []tool.Content{{Kind: tt.kind, MediaType: tt.mediaType, Name: tt.name, Data: []byte(tt.content)}}
			if diff := cmp.Diff(want, got.Content); diff != "" {
				t.Errorf("read_file (-want +got):\n%s", diff)
			}
			if bytes := got.Metadata["total_bytes"]; asJSON(t, bytes) != fmt.Sprint(len(tt.content)) {
				t.Errorf("the file has %v bytes, want %d", bytes, len(tt.content))
			}
		})
	}
}

// An image that exceeds a call's limit is reported, like any other file.
func TestReadFileMediaIsBounded(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"one.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "film.mp4": "\x00\x00\x00\x20ftypisom\x00\x00\x00\x00"})
	p := sdktest.Start(t, newPlugin(), sdktest.Options{
		Context: tool.Context{Roots: []string{dir}, MaxOutput: tool.MiB}, Settings: map[string]any{"max_read": 10},
	})
	if got := p.Call(t.Context(), "read_file", readFileArgs{Path: "one.png"}); got.Text() != "image/png of 16 bytes, too large to show: the maximum is 10 bytes" {
		t.Errorf("read_file of an image = %q, %q", got.Text(), message(got))
	}
	if got := start(t, dir, 1000).Call(t.Context(), "read_file", readFileArgs{Path: "film.mp4"}); got.Text() != "Binary file: video/mp4, 16 bytes" {
		t.Errorf("read_file of a film = %q, %q", got.Text(), message(got))
	}
}

// A file of up to the size of a result is returned as a whole, however many lines it has.
// Of a larger one, a call returns 2,000 lines at most.
func TestReadFileReturnsWholeFiles(t *testing.T) {
	const budget = 40 << 10
	short := strings.Repeat("x\n", budget/2)
	dir := filetest.Tree(t, map[string]string{"whole.txt": short, "larger.txt": short + "y\n", "image.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + strings.Repeat("x", 2*budget)})
	p := start(t, dir, budget)
	if got := p.Call(t.Context(), "read_file", readFileArgs{Path: "whole.txt"}); got.Text() != short {
		t.Errorf("read_file returns %d bytes, %q, want all %d", len(got.Text()), message(got), len(short))
	}
	want := strings.Repeat("x\n", 2000) + "\n[lines 1-2000 of 20481; continue with offset=2001]"
	if got := p.Call(t.Context(), "read_file", readFileArgs{Path: "larger.txt"}); got.Text() != want {
		t.Errorf("read_file of a larger file returns %d bytes, want 2,000 lines", len(got.Text()))
	}
	if got := p.Call(t.Context(), "read_file", readFileArgs{Path: "image.png"}); got.Error != nil || len(got.Content) != 1 || got.Content[0].Kind != tool.KindImage {
		t.Errorf("read_file of an image = %q, %q", got.Text(), message(got))
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
	dir := filetest.Tree(t, map[string]string{"big.txt": content.String()})
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

func TestReadFiles(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a.txt": "a\n", "ten.txt": numbered(10), ".env": "X=1"})
	runCases(t, dir, 8*tool.KiB, readFilesCases())
}

func readFilesCases() []toolCase {
	return []toolCase{
		{
			tool: "read_files", name: "some cannot be read",
			in: readFilesArgs{Items: []readFilesItem{{Path: "a.txt"}, {Path: "missing"}, {Path: ".env"}, {Path: "ten.txt", lineRange: lineRange{Offset: new(2), Column: new(6), Limit: new(1)}}}},
			want: "==> a.txt <==\na\n\n==> missing <==\n[File not found: missing; list the directory that it should be in; paths are relative to the workspace]\n" +
				"==> .env <==\n[Path not allowed by security policy: .env; files of this name usually hold secrets; ask the user for the part that you need]\n" +
				"==> ten.txt <==\n2\n\n[lines 2-2 of 10; continue with offset=3]",
			facts: map[string]any{"failed": 2},
		},
		{
			tool: "read_files", name: "none can be read", in: readFilesArgs{Items: []readFilesItem{{Path: "missing"}}},
			want: "==> missing <==\n[File not found: missing; list the directory that it should be in; paths are relative to the workspace]", err: "failed: None of the 1 files could be read",
		},
		{
			tool: "read_files", name: "paths", in: readFilesArgs{Paths: []string{"a.txt", "missing"}}, want: "==> a.txt <==\na\n\n==> missing <==\n[File not found: missing; list the directory that it should be in; paths are relative to the workspace]",
			facts: map[string]any{"failed": 1},
		},
		{
			tool: "read_files", name: "too many together", in: readFilesArgs{Paths: make([]string, 60), Items: make([]readFilesItem, 60)},
			err: "invalid_argument: paths and items have 120 files together, expected 1 to 100",
		},
		{tool: "read_files", name: "none", in: readFilesArgs{Items: []readFilesItem{}}, err: "invalid_argument: paths and items have 0 files together, expected 1 to 100"},
		{tool: "read_files", name: "too many", in: readFilesArgs{Items: make([]readFilesItem, 101)}, err: "invalid_argument: items has 101 items, expected at most 100"},
	}
}

// Room that a small file does not use goes to a large file that follows, and both fit.
func TestReadFilesShareTheRoom(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"small.txt": "s\n", "big.txt": numbered(5000)})
	got := start(t, dir, 8*tool.KiB).Call(t.Context(), "read_files", readFilesArgs{Items: []readFilesItem{{Path: "small.txt"}, {Path: "big.txt"}}})
	if n := len(got.Text()); n > 8<<10 || n < 7<<10 {
		t.Errorf("result has %d bytes, want nearly and at most 8 KiB", n)
	}
}

// The calls that the notes name read a line that is longer than a result. Together they return
// exactly the line, whichever character is at a cut.
func TestReadFileLongLine(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"a":[`)
	for i := 0; b.Len() < 300_000; i++ {
		b.WriteString([]string{"x", "é", "€", "😀", `",`}[i%5])
	}
	whole := b.String() + "]}\nlast\n"
	wide, err := textfile.Charset{Decoder: textfile.UTF16(unicode.LittleEndian, 2).Decoder}.Encode(whole)
	if err != nil {
		t.Fatal(err)
	}
	dir := filetest.Tree(t, map[string]string{"one.json": whole, "utf16.txt": "\xFF\xFE" + string(wide)})
	p := start(t, dir, 16*tool.KiB+1)
	for _, path := range []string{"one.json", "utf16.txt"} {
		var got strings.Builder
		in := map[string]any{"path": path}
		for rounds := 0; ; rounds++ {
			result := p.Call(t.Context(), "read_file", in)
			if n := len(result.Text()); result.Error != nil || n > 16<<10+1 || rounds > 100 {
				t.Fatalf("%s, call %d: %d bytes, %v", path, rounds, n, result.Error)
			}
			got.Write(result.Content[0].Data)
			if result.Metadata["next_column"] == nil {
				break
			}
			in["offset"], in["column"] = result.Metadata["next_offset"], result.Metadata["next_column"]
			if note := fmt.Sprintf("continue in it with offset=%v column=%.0f, or after it with offset=2]", in["offset"], in["column"]); !strings.HasSuffix(result.Text(), note) {
				t.Fatalf("%s, call %d ends in %q, want %q", path, rounds, result.Text()[len(result.Text())-100:], note)
			}
		}
		if got.String() != whole {
			t.Errorf("%s: what was read has %d bytes and differs from the %d of the text", path, got.Len(), len(whole))
		}
	}
}
