package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestWriteFile(t *testing.T) { runChanges(t, writeFiles(), writeFileCases()) }

func writeFiles() map[string]string {
	return map[string]string{
		"a.txt": "one\ntwo\n", "dir/": "", "utf16.txt": "\xFF\xFEh\x00i\x00", "latin1.txt": "caf\xe9\n", "data.bin": "\x00\x01", "link": "-> a.txt",
		"bom.txt": "\xEF\xBB\xBFone\n", "crlf.txt": "one\r\ntwo\r\n", "both.txt": "\xEF\xBB\xBFone\r\ntwo", "mixed.txt": "one\r\ntwo\n", "open.txt": "one",
		"crlf16.txt": "\xFF\xFEh\x00\r\x00\n\x00", "late.txt": strings.Repeat("line\n", 2000) + "caf\xe9\n", "odd.txt": "caf\xe9\x81\n",
		"late-crlf.txt": strings.Repeat("x", textfile.HeadSize) + "\r\n" + strings.Repeat("line\r\n", 2000), "late-lf.txt": strings.Repeat("line\r\n", 2000) + "\n",
	}
}

func writeFileCases() []changeCase {
	const (
		hash   = "sha256:c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8"
		failed = "failed: Failed to write file: "
	)
	note := func(kept string) string {
		return "[as in the file that was there: " + kept + "; verbatim writes the content exactly]"
	}
	updated := func(path string) []tool.Effect { return []tool.Effect{effect(path, "update")} }
	return []changeCase{
		{
			name: "new", tool: "write_file", in: writeFileArgs{Path: "x/y/new.txt", Content: "hi\n"},
			want: "Wrote 3 bytes to x/y/new.txt", effects: []tool.Effect{effect("x/y/new.txt", "create")},
			facts: map[string]any{"bytes_written": 3, "path": "x/y/new.txt", "hash": "sha256:98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4"},
			files: map[string]string{"x/": "", "x/y/": "", "x/y/new.txt": "hi\n"}, summary: "Creates x/y/new.txt with 3 bytes",
			shown: "--- /dev/null\n+++ b/x/y/new.txt\n@@ -0,0 +1 @@\n+hi\n",
		},
		{
			name: "overwrite", tool: "write_file", in: writeFileArgs{Path: "./dir/../a.txt", Content: "one\n2\n", Mode: "overwrite"},
			want: "Wrote 6 bytes to a.txt", effects: []tool.Effect{effect("a.txt", "update")}, files: map[string]string{"a.txt": "one\n2\n"},
			summary: "Replaces 8 bytes of a.txt with 6", shown: "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
		},
		{
			name: "the same", tool: "write_file", in: writeFileArgs{Path: "a.txt", Content: "one\ntwo\n"},
			want: "Wrote 8 bytes to a.txt", effects: []tool.Effect{effect("a.txt", "update")},
			summary: "Replaces 8 bytes of a.txt with 8", shown: "The content stays the same.",
		},
		{
			name: "nothing", tool: "write_file", in: writeFileArgs{Path: "new.txt"},
			want: "Wrote 0 bytes to new.txt", effects: []tool.Effect{effect("new.txt", "create")}, files: map[string]string{"new.txt": ""},
			summary: "Creates new.txt with 0 bytes",
		},
		{
			name: "behind a link", tool: "write_file", in: writeFileArgs{Path: "link", Content: "new"},
			want: "Wrote 3 bytes to a.txt", effects: []tool.Effect{effect("a.txt", "update")}, files: map[string]string{"a.txt": "new"},
		},
		{
			name: "create", tool: "write_file", in: writeFileArgs{Path: "new.txt", Content: "hi", Mode: "create"},
			want: "Wrote 2 bytes to new.txt", effects: []tool.Effect{effect("new.txt", "create")}, files: map[string]string{"new.txt": "hi"},
		},
		{name: "create over a file", tool: "write_file", in: writeFileArgs{Path: "a.txt", Content: "hi", Mode: "create"}, err: failed + "file exists"},
		{
			name: "append", tool: "write_file", in: writeFileArgs{Path: "a.txt", Content: "three", Mode: "append"},
			want: "Wrote 5 bytes to a.txt", effects: []tool.Effect{effect("a.txt", "update")}, files: map[string]string{"a.txt": "one\ntwo\nthree"},
			summary: "Adds 5 bytes to the end of a.txt, which has 8",
			shown:   "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,3 @@\n one\n two\n+three\n\\ No newline at end of file\n",
		},
		{
			name: "append to nothing", tool: "write_file", in: writeFileArgs{Path: "new.txt", Content: "hi", Mode: "append"},
			want: "Wrote 2 bytes to new.txt", effects: []tool.Effect{effect("new.txt", "create")}, files: map[string]string{"new.txt": "hi"},
		},
		{
			name: "append in utf-16", tool: "write_file", in: writeFileArgs{Path: "utf16.txt", Content: "!", Mode: "append"},
			want: "Wrote 2 bytes to utf16.txt", effects: []tool.Effect{effect("utf16.txt", "update")}, files: map[string]string{"utf16.txt": "\xFF\xFEh\x00i\x00!\x00"},
		},
		{
			name: "append in latin1", tool: "write_file", in: writeFileArgs{Path: "latin1.txt", Content: "thé", Mode: "append"},
			want: "Wrote 3 bytes to latin1.txt", effects: []tool.Effect{effect("latin1.txt", "update")}, files: map[string]string{"latin1.txt": "caf\xe9\nth\xe9"},
		},
		{name: "append what latin1 lacks", tool: "write_file", in: writeFileArgs{Path: "latin1.txt", Content: "日", Mode: "append"}, err: failed + "it is written in windows-1252, which lacks a character of the content"},
		{name: "append to what is no text", tool: "write_file", in: writeFileArgs{Path: "data.bin", Content: "x", Mode: "append"}, err: failed + "it is not text: 2 bytes, sha256:b413f47d13ee2fe6c845b2ee141af81de858df4ec549a58b7970bb96645bc8d2, application/octet-stream"},
		{
			name: "expected hash", tool: "write_file", in: writeFileArgs{Path: "a.txt", Content: "x", ExpectHash: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
			err: "conflict: a.txt has changed: its hash is sha256:c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8",
		},
		{
			name: "the expected hash", tool: "write_file", in: writeFileArgs{Path: "a.txt", Content: "x", ExpectHash: "sha256:c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8"},
			want: "Wrote 1 bytes to a.txt", effects: []tool.Effect{effect("a.txt", "update")}, files: map[string]string{"a.txt": "x"},
		},
		{
			name: "byte order mark is kept", tool: "write_file", in: writeFileArgs{Path: "bom.txt", Content: "one\n"}, want: "Wrote 7 bytes to bom.txt\n" + note("the byte order mark"), effects: updated("bom.txt"),
			facts:   map[string]any{"bytes_written": 7, "kept": []string{"the byte order mark"}, "hash": fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("\xEF\xBB\xBFone\n")))},
			summary: "Replaces 7 bytes of bom.txt with 7", shown: note("the byte order mark") + "\nThe content stays the same.",
		},
		{
			name: "byte order mark in the content", tool: "write_file", in: writeFileArgs{Path: "bom.txt", Content: "\uFEFF1\n"}, want: "Wrote 5 bytes to bom.txt", effects: updated("bom.txt"),
			files: map[string]string{"bom.txt": "\xEF\xBB\xBF1\n"}, summary: "Replaces 7 bytes of bom.txt with 5", shown: "--- a/bom.txt\n+++ b/bom.txt\n@@ -1 +1 @@\n-one\n+1\n",
		},
		{
			name: "byte order mark that comes", tool: "write_file", in: writeFileArgs{Path: "open.txt", Content: "\uFEFFone"}, want: "Wrote 6 bytes to open.txt", effects: updated("open.txt"),
			files: map[string]string{"open.txt": "\xEF\xBB\xBFone"}, summary: "Replaces 3 bytes of open.txt with 6", shown: "The encoding changes from utf-8 to utf-8 with a byte order mark.\nThe content stays the same.",
		},
		{
			name: "byte order mark goes", tool: "write_file", in: writeFileArgs{Path: "bom.txt", Content: "one\n", Verbatim: true}, want: "Wrote 4 bytes to bom.txt", effects: updated("bom.txt"),
			files: map[string]string{"bom.txt": "one\n"}, summary: "Replaces 7 bytes of bom.txt with 4",
			shown: "The encoding changes from utf-8 with a byte order mark to utf-8 without a byte order mark.\nThe content stays the same.",
		},
		{
			name: "crlf is kept", tool: "write_file", in: writeFileArgs{Path: "crlf.txt", Content: "one\n2\n"}, want: "Wrote 8 bytes to crlf.txt\n" + note("CRLF line ends"), effects: updated("crlf.txt"),
			files: map[string]string{"crlf.txt": "one\r\n2\r\n"}, summary: "Replaces 10 bytes of crlf.txt with 8",
			shown: note("CRLF line ends") + "\n--- a/crlf.txt\n+++ b/crlf.txt\n@@ -1,2 +1,2 @@\n one\r\n-two\r\n+2\r\n",
		},
		{
			name: "both are kept", tool: "write_file", in: writeFileArgs{Path: "both.txt", Content: "1\n2"}, want: "Wrote 7 bytes to both.txt\n" + note("the byte order mark and CRLF line ends"), effects: updated("both.txt"),
			files: map[string]string{"both.txt": "\xEF\xBB\xBF1\r\n2"},
		},
		{
			name: "crlf goes", tool: "write_file", in: writeFileArgs{Path: "crlf.txt", Content: "one\ntwo\n", Verbatim: true}, want: "Wrote 8 bytes to crlf.txt", effects: updated("crlf.txt"),
			files: map[string]string{"crlf.txt": "one\ntwo\n"}, summary: "Replaces 10 bytes of crlf.txt with 8",
			shown: "The line ends change from CRLF to LF.\n--- a/crlf.txt\n+++ b/crlf.txt\n@@ -1,2 +1,2 @@\n-one\r\n-two\r\n+one\n+two\n",
		},
		{
			name: "mixed content stays", tool: "write_file", in: writeFileArgs{Path: "crlf.txt", Content: "a\r\nb\n"}, want: "Wrote 5 bytes to crlf.txt", effects: updated("crlf.txt"),
			files: map[string]string{"crlf.txt": "a\r\nb\n"},
		},
		{
			name: "mixed files keep nothing", tool: "write_file", in: writeFileArgs{Path: "mixed.txt", Content: "a\n"}, want: "Wrote 2 bytes to mixed.txt", effects: updated("mixed.txt"),
			files: map[string]string{"mixed.txt": "a\n"},
		},
		{
			name: "crlf far behind", tool: "write_file", in: writeFileArgs{Path: "late-crlf.txt", Content: "a\n"}, want: "Wrote 3 bytes to late-crlf.txt\n" + note("CRLF line ends"), effects: updated("late-crlf.txt"),
			files: map[string]string{"late-crlf.txt": "a\r\n"},
		},
		{
			name: "lf far behind", tool: "write_file", in: writeFileArgs{Path: "late-lf.txt", Content: "a\n"}, want: "Wrote 2 bytes to late-lf.txt", effects: updated("late-lf.txt"),
			files: map[string]string{"late-lf.txt": "a\n"},
		},
		{
			name: "crlf of utf-16", tool: "write_file", in: writeFileArgs{Path: "crlf16.txt", Content: "a\n", Mode: "append"}, want: "Wrote 6 bytes to crlf16.txt\n" + note("CRLF line ends"), effects: updated("crlf16.txt"),
			files: map[string]string{"crlf16.txt": "\xFF\xFEh\x00\r\x00\n\x00a\x00\r\x00\n\x00"},
		},
		{
			name: "append to crlf", tool: "write_file", in: writeFileArgs{Path: "crlf.txt", Content: "c\n", Mode: "append"}, want: "Wrote 3 bytes to crlf.txt\n" + note("CRLF line ends"), effects: updated("crlf.txt"),
			files: map[string]string{"crlf.txt": "one\r\ntwo\r\nc\r\n"}, summary: "Adds 3 bytes to the end of crlf.txt, which has 10",
			shown: note("CRLF line ends") + "\n--- a/crlf.txt\n+++ b/crlf.txt\n@@ -1,2 +1,3 @@\n one\r\n two\r\n+c\r\n",
		},
		{
			name: "append to crlf as it is", tool: "write_file", in: writeFileArgs{Path: "crlf.txt", Content: "c\n", Mode: "append", Verbatim: true}, want: "Wrote 2 bytes to crlf.txt", effects: updated("crlf.txt"),
			files: map[string]string{"crlf.txt": "one\r\ntwo\r\nc\n"},
		},
		{name: "bytes shown as U+FFFD", tool: "write_file", in: writeFileArgs{Path: "late.txt", Content: "caf\uFFFD\n"}, err: failed + "it has bytes that are not utf-8, which are shown as U+FFFD, and the content has U+FFFD"},
		{name: "bytes that windows-1252 lacks", tool: "write_file", in: writeFileArgs{Path: "odd.txt", Content: "café\uFFFD\n"}, err: failed + "it has bytes that are not windows-1252, which are shown as U+FFFD, and the content has U+FFFD"},
		{
			name: "U+FFFD as it is", tool: "write_file", in: writeFileArgs{Path: "late.txt", Content: "caf\uFFFD\n", Verbatim: true}, want: "Wrote 7 bytes to late.txt", effects: updated("late.txt"),
			files: map[string]string{"late.txt": "caf\uFFFD\n"},
		},
		{
			name: "U+FFFD in a file without such bytes", tool: "write_file", in: writeFileArgs{Path: "a.txt", Content: "caf\uFFFD\n"}, want: "Wrote 7 bytes to a.txt", effects: updated("a.txt"),
			files: map[string]string{"a.txt": "caf\uFFFD\n"},
		},
		{name: "slash at the end", tool: "write_file", in: writeFileArgs{Path: "newdir/", Content: "x"}, err: "invalid_argument: newdir/ ends in /, so it names a directory, but a file is expected"},
		{name: "dot at the end", tool: "write_file", in: writeFileArgs{Path: "a.txt/.", Content: "x"}, err: "invalid_argument: a.txt/. ends in /., so it names a directory, but a file is expected"},
		{name: "no hash", tool: "write_file", in: writeFileArgs{Path: "a.txt", Content: "x", ExpectHash: "md5:1"}, err: `invalid_argument: expect_hash is "md5:1", expected sha256: and 64 hex digits`},
		{name: "hash of what is not there", tool: "write_file", in: writeFileArgs{Path: "new.txt", ExpectHash: hash}, err: "conflict: new.txt does not exist, but expect_hash is given"},
		{name: "directory", tool: "write_file", in: writeFileArgs{Path: "dir", Content: "hi"}, err: failed + "it is a directory, not a regular file"},
		{name: "outside", tool: "write_file", in: writeFileArgs{Path: "../x", Content: "hi"}, err: "permission_denied: Path not allowed by security policy: ../x"},
		{name: "hook", tool: "write_file", in: writeFileArgs{Path: ".git/hooks/pre-commit", Content: "#!/bin/sh"}, err: "permission_denied: Path not allowed by security policy: .git/hooks/pre-commit"},
	}
}

// Text that is appended to a file too large for memory uses the file's encoding, too.
func TestAppendToLargeFile(t *testing.T) {
	large := "\xFF\xFE" + strings.Repeat("x\x00", snapshot.MaxDiff)
	dir := filetest.Tree(t, map[string]string{"large.txt": large, "large.bin": "\x00" + large})
	p := start(t, dir, tool.MiB)
	if got := p.Call(t.Context(), "write_file", writeFileArgs{Path: "large.txt", Content: "é", Mode: "append"}); got.Error != nil {
		t.Fatal(message(got))
	}
	if data, err := os.ReadFile(filepath.Join(dir, "large.txt")); err != nil || string(data) != large+"\xe9\x00" {
		t.Errorf("the file has %d bytes and ends in %q, %v", len(data), data[len(data)-4:], err)
	}
	if got := p.Call(t.Context(), "write_file", writeFileArgs{Path: "large.bin", Content: "x", Mode: "append"}); got.Error == nil {
		t.Error("text was added to what is no text")
	}
}

// A whole argument of the largest size is written, and a path of the largest
// size is refused.
func TestWriteFileLimits(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, tool.MiB)
	large := strings.Repeat("0123456789abcde\n", int(tool.MiB)/16)
	if got := p.Call(t.Context(), "write_file", writeFileArgs{Path: "large", Content: large}); got.Text() != "Wrote 1048576 bytes to large" {
		t.Errorf("write_file = %q, %v", got.Text(), got.Error)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "large")); err != nil || string(data) != large {
		t.Errorf("the file has %d bytes, %v", len(data), err)
	}
	path := strings.Repeat("d/", 2047) + "f"
	got := p.Call(t.Context(), "write_file", writeFileArgs{Path: path, Content: "deep"})
	if got.Error != nil {
		t.Errorf("write_file of a path of %d bytes: %q", len(path), message(got))
	}
	if got := p.Call(t.Context(), "write_file", writeFileArgs{Path: "d" + path, Content: "deep"}); got.Error == nil || got.Error.Code != tool.InvalidArgument {
		t.Errorf("write_file of a path of %d bytes: %q", len(path)+1, message(got))
	}
}
