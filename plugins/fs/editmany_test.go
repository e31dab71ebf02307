package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/edit"
	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestEditFiles(t *testing.T) { runChanges(t, editFiles(), editFilesCases()) }

func editFilesCases() []changeCase {
	edits := func(edits ...fileEdit) editFileArgs { return editFileArgs{Path: "open.txt", Edits: edits} }
	two := []fileEdit{editOf("", "two", "2"), editOf("crlf.txt", "two\n", "2\n3\n"), editOf("", "one", "1")}
	dry := edits(two...)
	dry.DryRun = true
	hashed := edits(two...)
	hashed.ExpectHash = "sha256:" + strings.Repeat("0", 64)
	latin := edits(editOf("latin1.txt", "café", "Café"), editOf("a.go", "return 1", "return é"))
	latin.Encoding = "windows-1252"
	updated := func(paths ...string) (all []tool.Effect) {
		for _, path := range paths {
			all = append(all, effect(path, "update"))
		}
		return all
	}
	hash := func(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }
	diff := "--- a/open.txt\n+++ b/open.txt\n@@ -1,2 +1,2 @@\n-one\n-two\n\\ No newline at end of file\n+1\n+2\n\\ No newline at end of file\n" +
		"--- a/crlf.txt\n+++ b/crlf.txt\n@@ -1,3 +1,4 @@\n one\r\n-two\r\n+2\r\n+3\r\n three\r\n"
	return []changeCase{
		{
			name: "two files", tool: "edit_file", in: edits(two...), effects: updated("open.txt", "crlf.txt"),
			want:  "Edited 2 files:\nupdates open.txt (+2 -2)\nupdates crlf.txt (+2 -1)",
			files: map[string]string{"open.txt": "1\n2", "crlf.txt": "one\r\n2\r\n3\r\nthree\r\n"},
			facts: map[string]any{"files": []map[string]any{
				{"path": "open.txt", "operation": "update", "bytes": 3, "hash": hash("1\n2"), "added": 2, "removed": 2},
				{"path": "crlf.txt", "operation": "update", "bytes": 18, "hash": hash("one\r\n2\r\n3\r\nthree\r\n"), "added": 2, "removed": 1},
			}},
			summary: "Edits 2 files", shown: "updates open.txt\nupdates crlf.txt\n\n" + diff,
		},
		{name: "a dry run", tool: "edit_file", in: dry, want: "[nothing was changed; the edits apply to 2 files:]\nupdates open.txt (+2 -2)\nupdates crlf.txt (+2 -1)\n" + diff},
		{
			name: "a link and its file", tool: "edit_file", in: edits(editOf("", "two", "2"), editOf("link", "2", "3"), editOf("./open.txt", "3", "4")),
			want: "Edited 1 file:\nupdates open.txt (+1 -1)", files: map[string]string{"open.txt": "one\n4"}, effects: updated("open.txt"), summary: "Edits: updates open.txt",
			shown: "--- a/open.txt\n+++ b/open.txt\n@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+4\n\\ No newline at end of file\n",
		},
		{
			name: "one file that is not that of the call", tool: "edit_file", in: editFileArgs{Path: "none", Edits: []fileEdit{editOf("open.txt", "one", "1")}},
			want: "Edited open.txt: 1 replacement, the first at line 1", files: map[string]string{"open.txt": "1\ntwo"}, effects: updated("open.txt"),
		},
		{
			name: "indentation", tool: "edit_file", in: edits(editOf("tabs.py", "  if x:\n", "  if y:\n"), editOf("spaces.txt", "one\ntwo", "1\n2")),
			want:    "Edited 2 files:\nupdates tabs.py (+1 -1): ignoring indentation; the new text was indented like the old\nupdates spaces.txt (+2 -2): ignoring spaces at line ends",
			effects: updated("tabs.py", "spaces.txt"), files: map[string]string{"tabs.py": "def f():\n\tif y:\n\t\treturn 1\n", "spaces.txt": "1\n2\nthree\n"},
		},
		{
			name: "encodings", tool: "edit_file", in: edits(editOf("utf16le.txt", "one", "é"), editOf("bom.txt", "one", "1")),
			want: "Edited 2 files:\nupdates utf16le.txt (+1 -1)\nupdates bom.txt (+1 -1)", effects: updated("utf16le.txt", "bom.txt"),
			files: map[string]string{"utf16le.txt": "\xFF\xFE\xe9\x00\n\x00", "bom.txt": "\xEF\xBB\xBF1\n"},
		},
		{
			name: "an encoding for all", tool: "edit_file", in: latin, want: "Edited 2 files:\nupdates latin1.txt (+1 -1)\nupdates a.go (+1 -1)", effects: updated("latin1.txt", "a.go"),
			files: map[string]string{"latin1.txt": "Caf\xe9\n", "a.go": strings.Replace(goFile, "return 1", "return \xe9", 1)},
		},
		{name: "one misses", tool: "edit_file", in: edits(two[0], editOf("a.go", "none", "x")), err: "not_found: edit 2: The text to replace was not found in a.go; none of the edits was made"},
		{name: "one is not unique", tool: "edit_file", in: edits(editOf("a.go", "if x", "if y"), two[0]), err: "invalid_argument: edit 1: The text to replace is in a.go 2 times, at lines 2, 8; none of the edits was made"},
		{name: "no file", tool: "edit_file", in: edits(two[0], editOf("no/file", "a", "b")), err: "not_found: edit 2: File not found: no/file; none of the edits was made"},
		{name: "a directory", tool: "edit_file", in: edits(two[0], editOf("dir", "a", "b")), err: "failed: dir: Failed to write file: it is a directory, not a regular file; nothing was done"},
		{name: "no text", tool: "edit_file", in: edits(two[0], editOf("data.bin", "a", "b")), err: "failed: edit 2: data.bin: Failed to write file: it is not text: " + "2 bytes, " + hash("\x00\x01") + ", application/octet-stream; none of the edits was made"},
		{name: "outside", tool: "edit_file", in: edits(two[0], editOf("../x", "a", "b")), err: "permission_denied: edit 2: Path not allowed by security policy: ../x; none of the edits was made"},
		{name: "git's files", tool: "edit_file", in: edits(two[0], editOf(".git/config", "a", "b")), err: "permission_denied: edit 2: Path not allowed by security policy: .git/config; none of the edits was made"},
		{name: "a secret", tool: "edit_file", in: edits(two[0], editOf(".env", "a", "b")), err: "permission_denied: edit 2: Path not allowed by security policy: .env; none of the edits was made"},
		{name: "back again", tool: "edit_file", in: edits(editOf("", "two", "2"), editOf("link", "2", "two")), err: "invalid_argument: The edits together change nothing"},
		{name: "a hash", tool: "edit_file", in: hashed, err: "invalid_argument: expect_hash is the hash of one file, and the edits are in several"},
	}
}

// Edits of several files are refused before they take more memory than a patch may.
func TestEditFilesAreBounded(t *testing.T) {
	files := map[string]string{}
	var grow, many []fileEdit
	for i := range 20 {
		name := fmt.Sprintf("f%d", i)
		files[name] = strings.Repeat("a\n", 1000)
		grow = append(grow, fileEdit{name, edit.Replacement{Old: "a", New: strings.Repeat("b", 5000), All: true}})
		many = append(many, editOf(name, strings.Repeat("a\n", 1000), "b\n"))
	}
	files["large"] = strings.Repeat("x", edit.MaxBytes+1)
	dir := filetest.Tree(t, files)
	p := start(t, dir, 64*tool.KiB)
	for _, tt := range []struct {
		name  string
		edits []fileEdit
		err   string
	}{
		{"growing", grow, "resource_exhausted: edit 7: The files up to f6 have 34993000 bytes together; the maximum is 33554432; none of the edits was made"},
		{"large", []fileEdit{many[0], editOf("large", "x", "y")}, "resource_exhausted: large has 8388609 bytes; at most 8388608 can be changed"},
		{"one huge", []fileEdit{many[0], {"f1", edit.Replacement{Old: "a", New: strings.Repeat("b", 10_000), All: true}}}, "resource_exhausted: edit 2: f1 would have 10001000 bytes, the maximum is 8388608; none of the edits was made"},
		{"many", many, ""}, // the last: it changes the files
	} {
		before := contents(t, dir)
		got := p.Call(t.Context(), "edit_file", editFileArgs{Path: "f0", Edits: tt.edits})
		if message(got) != tt.err {
			t.Errorf("%s: %q, want %q", tt.name, message(got), tt.err)
		}
		if tt.err != "" {
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Errorf("%s: files have changed:\n%.500s", tt.name, diff)
			}
			continue
		}
		for i := range many {
			if data, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("f%d", i))); err != nil || string(data) != "b\n" {
				t.Fatalf("f%d is %.20q, %v", i, data, err)
			}
		}
	}
}

// An approval is for the files as they were: if one of them changes, none is edited.
func TestEditFilesAsApproved(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a": "one\n", "b": "one\n"})
	p := start(t, dir, 4*tool.KiB)
	in := editFileArgs{Path: "a", Edits: []fileEdit{editOf("", "one", "1"), editOf("b", "one", "1")}}
	preview, err := p.Preview(t.Context(), "edit_file", in)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b"), []byte("one\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := callWith(t, p, preview.Digest, "edit_file", in)
	want := map[string]string{"a": "one\n", "b": "one\ntwo\n"}
	if diff := cmp.Diff(want, contents(t, dir)); got.Error == nil || got.Error.Code != tool.Conflict || diff != "" {
		t.Errorf("%v, files (-want +got):\n%s", got.Error, diff)
	}
}
