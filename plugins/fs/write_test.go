package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestWriteFile(t *testing.T) { runChanges(t, writeFiles(), writeFileCases()) }

func writeFiles() map[string]string {
	return map[string]string{
		"a.txt": "one\ntwo\n", "dir/": "", "utf16.txt": "\xFF\xFEh\x00i\x00", "latin1.txt": "caf\xe9\n", "data.bin": "\x00\x01", "link": "-> a.txt",
	}
}

func writeFileCases() []changeCase {
	const (
		hash   = "sha256:c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8"
		failed = "failed: Failed to write file: "
	)
	return []changeCase{
		{
			name: "new", tool: "write_file", in: writeFileArgs{Path: "x/y/new.txt", Content: "hi\n", CreateDirs: true},
			want: "Wrote 3 bytes to x/y/new.txt", effects: []tool.Effect{effect("x/y/new.txt", "create")},
			facts: map[string]any{"bytes_written": 3, "path": "x/y/new.txt", "hash": "sha256:98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4"},
			files: map[string]string{"x/": "", "x/y/": "", "x/y/new.txt": "hi\n"}, summary: "Creates x/y/new.txt with 3 bytes",
			shown: "--- /dev/null\n+++ b/x/y/new.txt\n@@ -0,0 +1 @@\n+hi\n",
		},
		{
			name: "overwrite", tool: "write_file", in: writeFileArgs{Path: "./dir/../a.txt", Content: "one\n2\n", Mode: "overwrite"},
			want: "Wrote 6 bytes to a.txt", effects: []tool.Effect{effect("a.txt", "update")}, files: map[string]string{"a.txt": "one\n2\n"},
			summary: "Replaces 8 bytes of a.txt by 6", shown: "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
		},
		{
			name: "the same", tool: "write_file", in: writeFileArgs{Path: "a.txt", Content: "one\ntwo\n"},
			want: "Wrote 8 bytes to a.txt", effects: []tool.Effect{effect("a.txt", "update")},
			summary: "Replaces 8 bytes of a.txt by 8", shown: "The content stays the same.",
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
		{name: "no hash", tool: "write_file", in: writeFileArgs{Path: "a.txt", Content: "x", ExpectHash: "md5:1"}, err: `invalid_argument: expect_hash is "md5:1", expected sha256: and 64 hex digits`},
		{name: "hash of what is not there", tool: "write_file", in: writeFileArgs{Path: "new.txt", ExpectHash: hash}, err: "conflict: new.txt does not exist, but expect_hash says what it holds"},
		{name: "no directories", tool: "write_file", in: map[string]any{"path": "x/new.txt", "content": "hi", "create_dirs": false}, err: "not_found: File not found: x"},
		{name: "directory", tool: "write_file", in: writeFileArgs{Path: "dir", Content: "hi"}, err: failed + "it is a directory, not a regular file"},
		{name: "outside", tool: "write_file", in: writeFileArgs{Path: "../x", Content: "hi", CreateDirs: true}, err: "permission_denied: Path not allowed by security policy: ../x"},
		{name: "hook", tool: "write_file", in: writeFileArgs{Path: ".git/hooks/pre-commit", Content: "#!/bin/sh", CreateDirs: true}, err: "permission_denied: Path not allowed by security policy: .git/hooks/pre-commit"},
	}
}

// What is added to a file that is too large to be held is in its encoding too.
func TestAppendToLargeFile(t *testing.T) {
	large := "\xFF\xFE" + strings.Repeat("x\x00", maxDiff)
	dir := tree(t, map[string]string{"large.txt": large, "large.bin": "\x00" + large})
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
	got := p.Call(t.Context(), "write_file", writeFileArgs{Path: path, Content: "deep", CreateDirs: true})
	if got.Error != nil {
		t.Errorf("write_file of a path of %d bytes: %q", len(path), message(got))
	}
	if got := p.Call(t.Context(), "write_file", writeFileArgs{Path: "d" + path, Content: "deep", CreateDirs: true}); got.Error == nil || got.Error.Code != tool.InvalidArgument {
		t.Errorf("write_file of a path of %d bytes: %q", len(path)+1, message(got))
	}
}
