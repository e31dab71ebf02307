package main

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/edit"
	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestEditFile(t *testing.T) { runChanges(t, editFiles(), editFileCases()) }

const goFile = "func a() {\n\tif x {\n\t\treturn 1\n\t}\n}\n\nfunc b() {\n\tif x {\n\t\treturn 2\n\t}\n}\n"

func editFiles() map[string]string {
	return map[string]string{
		"a.go": goFile, "open.txt": "one\ntwo", "crlf.txt": "one\r\ntwo\r\nthree\r\n", "mixed.txt": "one\r\ntwo\nthree\n", "spaces.txt": "one  \ntwo\t\nthree\n",
		"bom.txt": "\xEF\xBB\xBFone\n", "utf16le.txt": "\xFF\xFEo\x00n\x00e\x00\n\x00", "utf16be.txt": "\xFE\xFF\x00h\x00i\x00\n", "latin1.txt": "caf\xe9\n",
		"sjis.txt": "\x93\xfa\x96\x7b\n", "odd16.txt": "\xFF\xFEo\x00n", "invalid.txt": strings.Repeat("a\n", 5000) + "\xff\xfe!\n", "data.bin": "\x00\x01", "empty.txt": "",
		"lone16.txt": "\xFF\xFE\x00\xD8o\x00", "dir/": "", "link": "-> open.txt", "repeat.txt": "x\nx\nx\n",
		"utf32le.txt": "\xFF\xFE\x00\x00h\x00\x00\x00i\x00\x00\x00\n\x00\x00\x00", "utf32be.txt": "\x00\x00\xFE\xFF\x00\x00\x00h",
		"tabs.py": "def f():\n\tif x:\n\t\treturn 1\n",
	}
}

// edit is the arguments of an edit with old and new.
func editCall(path, old, replacement string) editFileArgs {
	return editFileArgs{Path: path, Old: &old, New: &replacement}
}

// editOf is one of several edits.
func editOf(path, old, replacement string) fileEdit {
	return fileEdit{path, edit.Replacement{Old: old, New: replacement}}
}

func editFileCases() []changeCase {
	const failed = "failed: Failed to write file: "
	all := editCall("a.go", "if x {", "if y {")
	all.ReplaceAll = true
	dry := editCall("open.txt", "two", "2")
	dry.DryRun = true
	sjis := editCall("sjis.txt", "本", "語")
	sjis.Encoding = "shift_jis"
	wrong := editCall("latin1.txt", "caf", "Caf")
	wrong.Encoding = "utf-16le"
	hashed := editCall("open.txt", "two", "2")
	hashed.ExpectHash = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("one\ntwo")))
	stale := editCall("open.txt", "two", "2")
	stale.ExpectHash = fmt.Sprintf("sha256:%x", sha256.Sum256(nil))
	both := editCall("open.txt", "two", "2")
	both.Edits = []fileEdit{editOf("", "a", "b")}
	updated := func(path string) []tool.Effect { return []tool.Effect{effect(path, "update")} }
	return []changeCase{
		{
			name: "exact", tool: "edit_file", in: editCall("a.go", "return 1", "return 3"), want: "Edited a.go: 1 replacement, the first at line 3", effects: updated("a.go"),
			facts: map[string]any{"path": "a.go", "replacements": 1, "first_line": 3, "added": 1, "removed": 1, "bytes": len(goFile)},
			files: map[string]string{"a.go": strings.Replace(goFile, "return 1", "return 3", 1)}, summary: "Edits a.go: 1 replacement from line 3 on",
			shown: "--- a/a.go\n+++ b/a.go\n@@ -1,6 +1,6 @@\n func a() {\n \tif x {\n-\t\treturn 1\n+\t\treturn 3\n \t}\n }\n \n",
		},
		{
			name: "not unique", tool: "edit_file", in: editCall("a.go", "if x {", "if y {"),
			err: "invalid_argument: The text to replace is in a.go 2 times, at lines 2, 8",
		},
		{
			name: "every occurrence", tool: "edit_file", in: all, want: "Edited a.go: 2 replacements, the first at line 2", effects: updated("a.go"),
			files: map[string]string{"a.go": strings.ReplaceAll(goFile, "if x {", "if y {")},
		},
		{
			name: "several", tool: "edit_file", in: editFileArgs{Path: "a.go", Edits: []fileEdit{editOf("", "return 1", "return 10"), editOf("a.go", "return 10", "return 100"), {"", edit.Replacement{Old: "if x", New: "if z", All: true}}}},
			want: "Edited a.go: 4 replacements, the first at line 3", effects: updated("a.go"),
			files: map[string]string{"a.go": strings.ReplaceAll(strings.Replace(goFile, "return 1", "return 100", 1), "if x", "if z")},
		},
		{
			name: "one of several fails", tool: "edit_file", in: editFileArgs{Path: "open.txt", Edits: []fileEdit{editOf("", "one", "1"), editOf("", "one", "2")}},
			err: "not_found: edit 2: The text to replace was not found in open.txt; none of the edits was made",
		},
		{
			name: "delete a line", tool: "edit_file", in: editCall("a.go", "\t\treturn 1\n", ""), want: "Edited a.go: 1 replacement, the first at line 3", effects: updated("a.go"),
			files: map[string]string{"a.go": strings.Replace(goFile, "\t\treturn 1\n", "", 1)},
		},
		{
			name: "spaces at line ends of the file", tool: "edit_file", in: editCall("spaces.txt", "one\ntwo\nthree", "1\n2\n3"),
			want: "Edited spaces.txt: 1 replacement, the first at line 1 (ignoring spaces at line ends)", effects: updated("spaces.txt"), files: map[string]string{"spaces.txt": "1\n2\n3\n"},
		},
		{
			name: "spaces at line ends of the argument", tool: "edit_file", in: editCall("open.txt", "one \ntwo  \n", "1\n2\n"),
			want: "Edited open.txt: 1 replacement, the first at line 1 (ignoring spaces at line ends)", effects: updated("open.txt"), files: map[string]string{"open.txt": "1\n2"},
		},
		{
			name: "indentation", tool: "edit_file", in: editCall("a.go", "if x {\n  return 2\n}\n", "if x {\n  if y {\n    return 3\n  }\n}\n"),
			want: "Edited a.go: 1 replacement, the first at line 8 (ignoring indentation; the new text was indented like the old)", effects: updated("a.go"),
			files: map[string]string{"a.go": strings.Replace(goFile, "\tif x {\n\t\treturn 2\n\t}\n", "\tif x {\n\t\tif y {\n\t\t\treturn 3\n\t\t}\n\t}\n", 1)},
		},
		{
			name: "indentation of one line", tool: "edit_file", in: editCall("tabs.py", "  if x:\n", "  if x:\n    if y:\n      return 2\n"),
			want: "Edited tabs.py: 1 replacement, the first at line 2 (ignoring indentation; the new text was indented like the old)", effects: updated("tabs.py"),
			files: map[string]string{"tabs.py": "def f():\n\tif x:\n\t\tif y:\n\t\t\treturn 2\n\t\treturn 1\n"},
		},
		{
			name: "unclear indentation", tool: "edit_file", in: editCall("tabs.py", "if x:\n  return 1\n", "if x:\n  if y:\n     return 2\n"),
			err: "not_found: The text to replace was not found in tabs.py",
		},
		{
			name: "own line ends", tool: "edit_file", in: editCall("mixed.txt", "one\ntwo\nthree", "1\ntwo\nthree\nfour"), want: "Edited mixed.txt: 1 replacement, the first at line 1", effects: updated("mixed.txt"),
			files: map[string]string{"mixed.txt": "1\r\ntwo\nthree\nfour\n"},
		},
		{
			name: "crlf", tool: "edit_file", in: editCall("crlf.txt", "one\ntwo\n", "1\n2\n2b\n"), want: "Edited crlf.txt: 1 replacement, the first at line 1", effects: updated("crlf.txt"),
			files: map[string]string{"crlf.txt": "1\r\n2\r\n2b\r\nthree\r\n"},
		},
		{
			name: "crlf within a line", tool: "edit_file", in: editCall("crlf.txt", "wo", "wo\nand"), want: "Edited crlf.txt: 1 replacement, the first at line 2", effects: updated("crlf.txt"),
			files: map[string]string{"crlf.txt": "one\r\ntwo\r\nand\r\nthree\r\n"},
		},
		{
			name: "crlf in the argument only", tool: "edit_file", in: editCall("a.go", "return 1\r\n\t}\r\n", "return 3\r\n\t}\r\n"), want: "Edited a.go: 1 replacement, the first at line 3", effects: updated("a.go"),
			files: map[string]string{"a.go": strings.Replace(goFile, "return 1", "return 3", 1)},
		},
		{
			name: "mixed line ends", tool: "edit_file", in: editCall("mixed.txt", "two\n", "2\n"), want: "Edited mixed.txt: 1 replacement, the first at line 2", effects: updated("mixed.txt"),
			files: map[string]string{"mixed.txt": "one\r\n2\nthree\n"},
		},
		{
			name: "the last line end is kept", tool: "edit_file", in: editCall("crlf.txt", "three\r\n", "3"), want: "Edited crlf.txt: 1 replacement, the first at line 3", effects: updated("crlf.txt"),
			files: map[string]string{"crlf.txt": "one\r\ntwo\r\n3\r\n"},
		},
		{
			name: "no last line end", tool: "edit_file", in: editCall("open.txt", "two", "2"), want: "Edited open.txt: 1 replacement, the first at line 2", effects: updated("open.txt"),
			files: map[string]string{"open.txt": "one\n2"},
		},
		{
			name: "byte order mark", tool: "edit_file", in: editCall("bom.txt", "one", "1"), want: "Edited bom.txt: 1 replacement, the first at line 1", effects: updated("bom.txt"),
			files: map[string]string{"bom.txt": "\xEF\xBB\xBF1\n"},
		},
		{
			name: "utf-16le", tool: "edit_file", in: editCall("utf16le.txt", "one", "é"), want: "Edited utf16le.txt: 1 replacement, the first at line 1", effects: updated("utf16le.txt"),
			files: map[string]string{"utf16le.txt": "\xFF\xFE\xe9\x00\n\x00"},
		},
		{
			name: "utf-16be", tool: "edit_file", in: editCall("utf16be.txt", "hi", "o"), want: "Edited utf16be.txt: 1 replacement, the first at line 1", effects: updated("utf16be.txt"),
			files: map[string]string{"utf16be.txt": "\xFE\xFF\x00o\x00\n"},
		},
		{
			name: "latin1", tool: "edit_file", in: editCall("latin1.txt", "é", "è"), want: "Edited latin1.txt: 1 replacement, the first at line 1", effects: updated("latin1.txt"),
			files: map[string]string{"latin1.txt": "caf\xe8\n"},
		},
		{
			name: "shift_jis by name", tool: "edit_file", in: sjis, want: "Edited sjis.txt: 1 replacement, the first at line 1", effects: updated("sjis.txt"),
			files: map[string]string{"sjis.txt": "\x93\xfa\x8c\xea\n"},
		},
		{
			name: "bytes that are no text stay", tool: "edit_file", in: editCall("invalid.txt", "!", "?"), want: "Edited invalid.txt: 1 replacement, the first at line 5001", effects: updated("invalid.txt"),
			files: map[string]string{"invalid.txt": strings.Repeat("a\n", 5000) + "\xff\xfe?\n"},
		},
		{name: "what latin1 lacks", tool: "edit_file", in: editCall("latin1.txt", "caf", "日"), err: failed + "it is written in windows-1252, which lacks a character of the new text"},
		{name: "half a character", tool: "edit_file", in: editCall("odd16.txt", "o", "x"), err: failed + "it is not all utf-16le text, and an edit would change more than it should"},
		{name: "half a pair", tool: "edit_file", in: editCall("lone16.txt", "o", "x"), err: failed + "it is not all utf-16le text, and an edit would change more than it should"},
		{name: "the wrong encoding", tool: "edit_file", in: wrong, err: failed + "it is not all utf-16le text, and an edit would change more than it should"},
		{name: "no text", tool: "edit_file", in: editCall("data.bin", "x", "y"), err: failed + "it is not text: 2 bytes, sha256:b413f47d13ee2fe6c845b2ee141af81de858df4ec549a58b7970bb96645bc8d2, application/octet-stream"},
		{name: "behind a link", tool: "edit_file", in: editCall("link", "two", "2"), want: "Edited open.txt: 1 replacement, the first at line 2", effects: updated("open.txt"), files: map[string]string{"open.txt": "one\n2"}},
		{
			name: "dry run", tool: "edit_file", in: dry, want: "--- a/open.txt\n+++ b/open.txt\n@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+2\n\\ No newline at end of file\n",
			facts: map[string]any{"replacements": 1},
		},
		{name: "expected hash", tool: "edit_file", in: hashed, want: "Edited open.txt: 1 replacement, the first at line 2", effects: updated("open.txt"), files: map[string]string{"open.txt": "one\n2"}},
		{name: "another hash", tool: "edit_file", in: stale, err: "conflict: open.txt has changed: its hash is " + hashed.ExpectHash},
		{name: "not there", tool: "edit_file", in: editCall("a.go", "return 7", "return 8"), err: "not_found: The text to replace was not found in a.go; similar text is at lines 3, 9"},
		{name: "blank lines", tool: "edit_file", in: editCall("repeat.txt", "\n\n", "\n"), err: "not_found: The text to replace was not found in repeat.txt"},
		{name: "nothing to replace", tool: "edit_file", in: editCall("a.go", "", "x"), err: "invalid_argument: the text to replace is empty"},
		{name: "no change", tool: "edit_file", in: editCall("a.go", "x", "x"), err: "invalid_argument: the old and the new text are the same"},
		{name: "empty file", tool: "edit_file", in: editCall("empty.txt", "x", "y"), err: "not_found: The text to replace was not found in empty.txt"},
		{name: "both forms", tool: "edit_file", in: both, err: "invalid_argument: both edits and old with new are given; expected one of the two"},
		{name: "neither form", tool: "edit_file", in: editFileArgs{Path: "a.go"}, err: "invalid_argument: old and new are both needed, or edits"},
		{name: "too many", tool: "edit_file", in: editFileArgs{Path: "a.go", Edits: make([]fileEdit, 201)}, err: "invalid_argument: edits has 201 items, expected at most 200"},
		{name: "no file", tool: "edit_file", in: editCall("none.txt", "a", "b"), err: "not_found: File not found: none.txt"},
		{name: "slash at the end", tool: "edit_file", in: editCall("open.txt/", "one", "1"), err: "invalid_argument: open.txt/ ends in /, so it names a directory, but a file is expected"},
		{
			name: "utf-32", tool: "edit_file", in: editCall("utf32le.txt", "hi", "é€😀"), want: "Edited utf32le.txt: 1 replacement, the first at line 1", effects: updated("utf32le.txt"),
			files: map[string]string{"utf32le.txt": "\xFF\xFE\x00\x00\xe9\x00\x00\x00\xac\x20\x00\x00\x00\xf6\x01\x00\n\x00\x00\x00"},
		},
		{
			name: "utf-32be", tool: "edit_file", in: editCall("utf32be.txt", "h", "i"), want: "Edited utf32be.txt: 1 replacement, the first at line 1", effects: updated("utf32be.txt"),
			files: map[string]string{"utf32be.txt": "\x00\x00\xFE\xFF\x00\x00\x00i"},
		},
		{name: "directory", tool: "edit_file", in: editCall("dir", "a", "b"), err: failed + "it is a directory, not a regular file"},
	}
}

// Calls that edit the same file at the same time wait for each other, and none of their changes
// is lost. TestLockKeepsWritersApart of package roots shows that they would collide without the
// lock.
func TestEditsAtTheSameTime(t *testing.T) {
	const calls = 20
	dir := filetest.Tree(t, map[string]string{"f": numbered(calls)})
	p := start(t, dir, 16*tool.KiB)
	results := make([]tool.Result, calls)
	var wg sync.WaitGroup
	for n := range results {
		wg.Go(func() { // ends with its call
			results[n] = p.Call(t.Context(), "edit_file", editCall("f", fmt.Sprintf("line %d\n", n+1), fmt.Sprintf("done %d\n", n+1)))
		})
	}
	wg.Wait()
	for n, got := range results {
		if got.Error != nil {
			t.Errorf("call %d: %s", n, message(got))
		}
	}
	if diff := cmp.Diff(strings.ReplaceAll(numbered(calls), "line", "done"), contents(t, dir)["f"]); diff != "" {
		t.Errorf("the file (-want +got):\n%s", diff)
	}
}

func TestMissShowsTheNearest(t *testing.T) {
	sum := "import os\n\ndef total(a, b):\n    y = compute_total(a, b)\n    return y\n"
	dir := filetest.Tree(t, map[string]string{"a.go": goFile, "sum.py": sum, "late.txt": strings.Repeat("a\n", 5000) + "caf\xe9\n"})
	p := start(t, dir, 16*tool.KiB)
	for _, tt := range []struct{ path, old, hint string }{
		{"a.go", "\tif x {\n\t\treturn 5\n\t}\n", "copy the text exactly; the nearest is at lines 2-4:\n\tif x {\n\t\treturn 1\n\t}\n"},
		{"a.go", "fun b() {", "copy the text exactly; the nearest is at lines 7-7:\nfunc b() {\n"},
		{"a.go", "\tretrn 1\n", "copy the text exactly; the nearest is at lines 3-3:\n\t\treturn 1\n"},
		{"a.go", "\t\tretrn 5\n", "copy the text exactly; the nearest is at lines 3-3:\n\t\treturn 1\n"},
		{"sum.py", "x = compute_total(a, c)\nreturn x\n", "copy the text exactly; the nearest is at lines 4-5:\n    y = compute_total(a, b)\n    return y\n"},
		{"sum.py", "# the sum\nx = compute_sum(a, b)", "copy the text exactly; the nearest is at lines 3-4:\ndef total(a, b):\n    y = compute_total(a, b)\n"},
		{"late.txt", "caf\uFFFD\n", "the file has bytes that are not UTF-8, which are shown as U+FFFD; give the encoding of the file, for this call and for read_file"},
		{"a.go", "nothing like it at all", "the file has nothing similar; read it again"},
	} {
		got := p.Call(t.Context(), "edit_file", editCall(tt.path, tt.old, "x"))
		if got.Error == nil {
			t.Fatalf("edit_file(%q) = %q", tt.old, got.Text())
		}
		if diff := cmp.Diff(tt.hint, got.Error.Hint); diff != "" {
			t.Errorf("edit_file(%q), hint (-want +got):\n%s", tt.old, diff)
		}
	}
}

// The diff of an edit turns the old text into the new one. No edit panics or changes text that
// it does not match.
func FuzzEdit(f *testing.F) {
	for _, c := range editFileCases() {
		in, ok := c.in.(editFileArgs)
		if !ok || in.Old == nil {
			continue
		}
		f.Add(editFiles()[in.Path], *in.Old, *in.New, in.ReplaceAll)
	}
	f.Add("a\r\n\r\nb", "a\n\n", "x\n", true)
	f.Add("  a\n\tb\n", "a\n b", "\tc\n\n d", false)
	f.Fuzz(func(t *testing.T, text, old, replaced string, all bool) {
		after, done, err := edit.Replacement{Old: old, New: replaced, All: all}.Apply("f", text)
		if err != nil {
			if tool.AsError(err).Code == tool.Internal {
				t.Fatal(err)
			}
			return
		}
		if done.How == edit.Exactly && strings.Contains(text, old) && textfile.LineEnds(text) != "\r\n" {
			if want := strings.ReplaceAll(text, old, replaced); after != want {
				t.Errorf("%q with %q for %q is %q, want %q", text, replaced, old, after, want)
			}
		}
		after = edit.KeepLastEnd(text, after)
		if done.Count < 1 || done.Line < 1 || !all && done.Count != 1 {
			t.Errorf("applied %+v", done)
		}
		d, ok := snapshot.Compare("a/f", "b/f", text, after)
		if !ok {
			t.Fatalf("%q and %q cannot be compared", text, after)
		}
		if added, removed := snapshot.CountLineChanges(text, after); added-removed != d.Added-d.Removed || added > d.Added || removed > d.Removed {
			t.Errorf("%d lines are added and %d removed, want %d and %d at most", added, removed, d.Added, d.Removed)
		}
		if d.Text == "" {
			if text != after {
				t.Errorf("no diff between %q and %q", text, after)
			}
			return
		}
		got, err := patched(text, d.Text)
		if err != nil || got != after {
			t.Errorf("the diff makes of %q %q, %v, want %q:\n%s", text, got, err, after, d.Text)
		}
	})
}

// patched applies a unified diff like patch(1): every context line and every removed line must
// exist.
func patched(text, diff string) (string, error) {
	var old []string
	for line := range strings.Lines(text) {
		old = append(old, line)
	}
	var out strings.Builder
	lines := strings.SplitAfter(diff, "\n")
	lines = lines[2 : len(lines)-1] // without the names and the text after the last line
	at := 0
	for i, line := range lines {
		if strings.HasPrefix(line, "@@ ") {
			var from int
			if _, err := fmt.Sscanf(line, "@@ -%d", &from); err != nil {
				return "", err
			}
			if strings.Contains(line, fmt.Sprintf("-%d,0 ", from)) {
				from++ // no line is removed: the number is that of the line before
			}
			for ; at < from-1; at++ {
				out.WriteString(old[at])
			}
			continue
		}
		if strings.HasPrefix(line, "\\") {
			continue
		}
		content := line[1:]
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "\\") {
			content = strings.TrimSuffix(content, "\n")
		}
		if line[0] == ' ' || line[0] == '-' {
			if at >= len(old) || old[at] != content {
				return "", fmt.Errorf("line %d is not %q", at+1, content)
			}
			at++
		}
		if line[0] == ' ' || line[0] == '+' {
			out.WriteString(content)
		}
	}
	for ; at < len(old); at++ {
		out.WriteString(old[at])
	}
	return out.String(), nil
}
