package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestApplyPatch(t *testing.T) { runChanges(t, patchFiles(), applyPatchCases()) }

func patchFiles() map[string]string {
	return map[string]string{
		"a.go": goFile, "ten.txt": numbered(10), "open.txt": "one\ntwo", "crlf.txt": "one\r\ntwo\r\nthree\r\n", "mixed.txt": "one\r\ntwo\nthree\n",
		"spaces.txt": "one  \ntwo\t\nthree\n", "bom.txt": "\xEF\xBB\xBFone\ntwo\n", "utf16le.txt": "\xFF\xFEo\x00n\x00e\x00\n\x00", "latin1.txt": "caf\xe9\none\n",
		"data.bin": "\x00\x01", "empty.txt": "", "dir/": "", "link": "-> open.txt", "repeat.txt": "x\ny\nx\ny\nx\ny\n", "x.txt.orig": "old\n", "x.txt": "old\n",
	}
}

// git returns a diff of one file as git writes it.
func git(path, hunks string) string {
	return fmt.Sprintf("diff --git a/%s b/%s\nindex 1234567..89abcde 100644\n--- a/%s\n+++ b/%s\n%s", path, path, path, path, hunks)
}

// begin returns a patch of the other form.
func begin(parts ...string) string {
	return "*** Begin Patch\n" + strings.Join(parts, "") + "*** End Patch\n"
}

func applyPatchCases() []changeCase {
	const tab = "\t\t"
	three := "@@ -2,3 +2,3 @@\n line 2\n-line 3\n+LINE 3\n line 4\n"
	ten := func(replacements ...string) map[string]string {
		return map[string]string{"ten.txt": strings.NewReplacer(replacements...).Replace(numbered(10))}
	}
	one := func(name, patch, path, note string, files map[string]string) changeCase {
		return changeCase{
			name: name, tool: "apply_patch", in: applyPatchArgs{Patch: patch}, want: "Applied the patch to 1 file:\nupdates " + path + " " + note,
			effects: []tool.Effect{effect(path, "update")}, files: files,
		}
	}
	refused := func(name, patch, err string) changeCase {
		return changeCase{name: name, tool: "apply_patch", in: applyPatchArgs{Patch: patch}, err: err}
	}
	return []changeCase{
		{
			name: "git", tool: "apply_patch", in: applyPatchArgs{Patch: git("ten.txt", three)}, want: "Applied the patch to 1 file:\nupdates ten.txt (+1 -1)",
			effects: []tool.Effect{effect("ten.txt", "update")}, files: ten("line 3\n", "LINE 3\n"), summary: "Applies a patch: updates ten.txt",
			shown: "--- a/ten.txt\n+++ b/ten.txt\n@@ -1,6 +1,6 @@\n line 1\n line 2\n-line 3\n+LINE 3\n line 4\n line 5\n line 6\n",
			facts: map[string]any{"files": []map[string]any{{
				"path": "ten.txt", "operation": "update", "bytes": 71, "added": 1, "removed": 1,
				"hash": "sha256:8ed47c334774ee8f4ad0f2e42f214335d19981f663eaa402c824336034768ded",
			}}},
		},
		{
			name: "several files", tool: "apply_patch", in: applyPatchArgs{Patch: "Subject: much\n\n a | 1 +\n\n" + git("ten.txt", three) +
				"diff --git a/new/n.txt b/new/n.txt\nnew file mode 100755\nindex 0000000..1\n--- /dev/null\n+++ b/new/n.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n" +
				"diff --git a/x.txt b/y.txt\nsimilarity index 50%\nrename from x.txt\nrename to y.txt\nindex 1..2 100644\n--- a/x.txt\n+++ b/y.txt\n@@ -1 +1,2 @@\n old\n+new\n-- \n2.39.0\n\n"},
			want:    "Applied the patch to 3 files:\nupdates ten.txt (+1 -1)\ncreates new/n.txt, executable (+2 -0)\nmoves x.txt to y.txt (+1 -0)",
			effects: []tool.Effect{effect("ten.txt", "update"), effect("new/n.txt", "create"), effect("x.txt", "move"), effect("y.txt", "create")},
			files:   map[string]string{"ten.txt": strings.Replace(numbered(10), "line 3", "LINE 3", 1), "new/": "", "new/n.txt": "a\nb", "y.txt": "old\nnew\n"}, gone: []string{"x.txt"},
			summary: "Applies a patch to 3 files",
			shown: "updates ten.txt\ncreates new/n.txt, executable\nmoves x.txt to y.txt\n\n" +
				"--- a/ten.txt\n+++ b/ten.txt\n@@ -1,6 +1,6 @@\n line 1\n line 2\n-line 3\n+LINE 3\n line 4\n line 5\n line 6\n" +
				"--- /dev/null\n+++ b/new/n.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n--- a/y.txt\n+++ b/y.txt\n@@ -1 +1,2 @@\n old\n+new\n",
		},
		{
			name: "dry run", tool: "apply_patch", in: applyPatchArgs{Patch: git("ten.txt", three), DryRun: true},
			want: "[nothing was changed; the patch applies to 1 file:]\nupdates ten.txt (+1 -1)\n--- a/ten.txt\n+++ b/ten.txt\n@@ -1,6 +1,6 @@\n line 1\n line 2\n-line 3\n+LINE 3\n line 4\n line 5\n line 6\n",
		},
		{
			name: "begin patch", tool: "apply_patch", in: applyPatchArgs{Patch: begin(
				"*** Update File: a.go\n@@ func b() {\n \tif x {\n-\t\treturn 2\n+\t\treturn 3\n \t}\n",
				"*** Add File: new/n.txt\n+a\n+\n+b\n", "*** Update File: x.txt\n*** Move to: y.txt\n@@\n-old\n+new\n",
			)},
			want:    "Applied the patch to 3 files:\nupdates a.go (+1 -1)\ncreates new/n.txt (+3 -0)\nmoves x.txt to y.txt (+1 -1)",
			effects: []tool.Effect{effect("a.go", "update"), effect("new/n.txt", "create"), effect("x.txt", "move"), effect("y.txt", "create")},
			files:   map[string]string{"a.go": strings.Replace(goFile, "return 2", "return 3", 1), "new/": "", "new/n.txt": "a\n\nb\n", "y.txt": "new\n"}, gone: []string{"x.txt"},
		},
		one("wrong line numbers", git("ten.txt", strings.Replace(three, "-2,3", "-7,3", 1)), "ten.txt", "(+1 -1): hunk 1 at line 2, not 7", ten("line 3\n", "LINE 3\n")),
		one("wrong counts", git("ten.txt", strings.Replace(three, "-2,3 +2,3", "-2,9 +2,1", 1)), "ten.txt", "(+1 -1)", ten("line 3\n", "LINE 3\n")),
		one("no numbers", "--- a/ten.txt\n+++ b/ten.txt\n@@ @@\n line 2\n-line 3\n+LINE 3\n", "ten.txt", "(+1 -1)", ten("line 3\n", "LINE 3\n")),
		one("in a code block", "```diff\n"+git("ten.txt", three)+"```\nThat is it.\n", "ten.txt", "(+1 -1)", ten("line 3\n", "LINE 3\n")),
		one("several hunks, shifted", "--- ten.txt\n+++ ten.txt\n@@ -3,2 +3,1 @@\n line 2\n-line 3\n@@ -7,2 +6,3 @@\n line 6\n+more\n line 7\n", "ten.txt",
			"(+1 -1): hunk 1 at line 2, not 3; hunk 2 at line 6, not 7", ten("line 3\n", "", "line 6\n", "line 6\nmore\n")),
		one("where it says, though elsewhere too", "--- repeat.txt\n+++ repeat.txt\n@@ -3,2 +3,2 @@\n x\n-y\n+z\n", "repeat.txt", "(+1 -1)", map[string]string{"repeat.txt": "x\ny\nx\nz\nx\ny\n"}),
		one("at the end", begin("*** Update File: repeat.txt\n@@\n x\n-y\n+z\n*** End of File\n"), "repeat.txt", "(+1 -1)", map[string]string{"repeat.txt": "x\ny\nx\ny\nx\nz\n"}),
		one("added at the end", begin("*** Update File: open.txt\n@@\n+three\n*** End of File\n"), "open.txt", "(+2 -1)", map[string]string{"open.txt": "one\ntwo\nthree"}),
		one("to a file that is empty", "--- a/empty.txt\n+++ b/empty.txt\n@@ -0,0 +1 @@\n+a\n", "empty.txt", "(+1 -0)", map[string]string{"empty.txt": "a\n"}),
		one("no last line end stays", begin("*** Update File: open.txt\n one\n-two\n+2\n"), "open.txt", "(+1 -1)", map[string]string{"open.txt": "one\n2"}),
		one("last line end comes", "--- open.txt\n+++ open.txt\n@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+two\n", "open.txt", "(+1 -1)", map[string]string{"open.txt": "one\ntwo\n"}),
		one("last line end goes", "--- x.txt\n+++ x.txt\n@@ -1 +1 @@\n-old\n+old\n\\ No newline at end of file\n", "x.txt", "(+1 -1)", map[string]string{"x.txt": "old"}),
		one("crlf file, lf patch", begin("*** Update File: crlf.txt\n one\n-two\n+2\n+2b\n three\n"), "crlf.txt", "(+2 -1)", map[string]string{"crlf.txt": "one\r\n2\r\n2b\r\nthree\r\n"}),
		one("crlf file, git's patch", git("crlf.txt", "@@ -1,3 +1,3 @@\n one\r\n-two\r\n+2\r\n three\r\n"), "crlf.txt", "(+1 -1)", map[string]string{"crlf.txt": "one\r\n2\r\nthree\r\n"}),
		one("crlf becomes lf", git("crlf.txt", "@@ -1,3 +1,3 @@\n one\r\n-two\r\n+two\n three\r\n"), "crlf.txt", "(+1 -1)", map[string]string{"crlf.txt": "one\r\ntwo\nthree\r\n"}),
		one("lf file, crlf patch", strings.ReplaceAll(git("ten.txt", three), "\n", "\r\n"), "ten.txt", "(+1 -1)", ten("line 3\n", "LINE 3\n")),
		one("mixed line ends", git("mixed.txt", "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"), "mixed.txt", "(+1 -1)", map[string]string{"mixed.txt": "one\r\n2\nthree\n"}),
		one("spaces at line ends", git("spaces.txt", "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"), "spaces.txt", "(+1 -1): hunk 1 ignoring spaces at line ends", map[string]string{"spaces.txt": "one  \n2\nthree\n"}),
		one("byte order mark", git("bom.txt", "@@ -1,2 +1,2 @@\n-one\n+1\n two\n"), "bom.txt", "(+1 -1)", map[string]string{"bom.txt": "\xEF\xBB\xBF1\ntwo\n"}),
		one("utf-16", begin("*** Update File: utf16le.txt\n-one\n+é\n"), "utf16le.txt", "(+1 -1)", map[string]string{"utf16le.txt": "\xFF\xFE\xe9\x00\n\x00"}),
		one("latin1", begin("*** Update File: latin1.txt\n café\n-one\n+é\n"), "latin1.txt", "(+1 -1)", map[string]string{"latin1.txt": "caf\xe9\n\xe9\n"}),
		{
			name: "behind a link", tool: "apply_patch", in: applyPatchArgs{Patch: begin("*** Update File: link\n-one\n+1\n")}, want: "Applied the patch to 1 file:\nupdates open.txt (+1 -1)",
			effects: []tool.Effect{effect("open.txt", "update")}, files: map[string]string{"open.txt": "1\ntwo"},
		},
		one("two parts about a file", begin("*** Update File: ten.txt\n-line 1\n+1\n", "*** Update File: ten.txt\n-1\n+one\n"), "ten.txt", "(+1 -1)", ten("line 1\n", "one\n")),
		one("the old name is another's", "--- x.txt.orig\t2024-01-01\n+++ x.txt\t2024-01-01\n@@ -1 +1 @@\n-old\n+new\n", "x.txt", "(+1 -1)", map[string]string{"x.txt": "new\n"}),
		one("what diff_files shows", "--- a/ten.txt\n+++ b/open.txt\n@@ -1,2 +1 @@\n-line 1\n line 2\n", "ten.txt", "(+0 -1)", ten("line 1\n", "")),

		refused("not there", git("none.txt", three), "not_found: File not found: none.txt, which line 1 of the patch names"),
		refused("there already", begin("*** Add File: ten.txt\n+x\n"), "failed: Failed to write file: file exists: ten.txt, which line 2 of the patch makes"),
		refused("no directory for it", begin("*** Add File: ten.txt/x\n+x\n"), "failed: Failed to write file: not a directory"),
		refused("one of two does not apply", git("ten.txt", three)+git("open.txt", "@@ -1,2 +1,2 @@\n one\n-too\n+2\n"),
			`not_found: Hunk 1 of open.txt (line 14 of the patch) does not apply: expected "too" at line 2, found "two"`),
		refused("nothing like it", begin("*** Update File: ten.txt\n-€€€€\n+x\n"), `not_found: Hunk 1 of ten.txt (line 3 of the patch) does not apply: expected "€€€€", and the file has nothing similar`),
		refused("in two places", begin("*** Update File: repeat.txt\n x\n-y\n+z\n"),
			"invalid_argument: Hunk 1 of repeat.txt (line 3 of the patch) is ambiguous: the file has its lines 3 times, at lines 1, 3, 5"),
		refused("within two", begin("*** Update File: repeat.txt\n@@ x\n-y\n+z\n"),
			"invalid_argument: Hunk 1 of repeat.txt (line 3 of the patch) is ambiguous: the file has its lines 3 times, at lines 2, 4, 6"),
		refused("within nothing", begin("*** Update File: a.go\n@@ func c() {\n-\t\treturn 2\n+"+tab+"return 3\n"),
			`not_found: Hunk 1 of a.go (line 3 of the patch) does not apply: expected a line "func c() {" from after @@, found none`),
		refused("out of order", begin("*** Update File: ten.txt\n@@\n-line 5\n+5\n@@\n-line 2\n+2\n"),
			"not_found: Hunk 2 of ten.txt (line 6 of the patch) does not apply: its lines are at line 2, which is before the end of the hunk before it"),
		refused("only new lines", begin("*** Update File: ten.txt\n@@\n+x\n"),
			"invalid_argument: Hunk 1 of ten.txt (line 3 of the patch) only adds lines, and the file is not empty, so their place is ambiguous"),
		refused("nothing changes", begin("*** Update File: ten.txt\n@@\n line 1\n"), "invalid_argument: The patch changes nothing in ten.txt (line 2 of the patch)"),
		refused("deletes more than it shows", "--- a/ten.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-line 1\n", "failed: The patch deletes ten.txt (line 1 of the patch), but not all of its lines: 64 bytes would be left"),
		refused("not text", begin("*** Update File: data.bin\n-a\n+b\n"), "failed: data.bin: Failed to write file: it is not text: 2 bytes, application/octet-stream; nothing was done"),
		refused("a character too many", begin("*** Update File: latin1.txt\n-one\n+語\n"), "failed: latin1.txt: Failed to write file: it is written in windows-1252, which lacks a character of the new text; nothing was done"),
		refused("directory", begin("*** Update File: dir\n-a\n+b\n"), "failed: dir: Failed to write file: it is a directory, not a regular file; nothing was done"),
		refused("link is deleted", begin("*** Delete File: link\n"), "failed: link: Failed to write file: it is a symlink, not a regular file; nothing was done"),
		refused("name of a directory", begin("*** Add File: new/\n+x\n"), "invalid_argument: new/ ends in /, so it names a directory, but a file is expected"),
		refused("outside", begin("*** Add File: ../x\n+x\n"), "permission_denied: Path not allowed by security policy: ../x"),
		refused("hook", begin("*** Add File: .git/hooks/pre-commit\n+x\n"), "permission_denied: Path not allowed by security policy: .git/hooks/pre-commit"),
		refused("two files change places", "diff --git a/x.txt b/empty.txt\nrename from x.txt\nrename to empty.txt\ndiff --git a/empty.txt b/x.txt\nrename from empty.txt\nrename to x.txt\n",
			"failed: Failed to write file: file exists: empty.txt, which line 1 of the patch makes"),
		refused("copy", "diff --git a/data.bin b/copy.bin\nsimilarity index 100%\ncopy from data.bin\ncopy to copy.bin\n",
			"invalid_argument: Line 3 of the patch: found copy from data.bin, a copy, which a patch cannot make; use copy_file, or a diff without copies (no -C)"),
		refused("no patch", "hello\n", "invalid_argument: Line 1 of the patch: found hello, and nowhere the names of a file"),
	}
}

// A deleted file goes to the trash with its mode; a rename keeps the mode.
func TestApplyPatchDeletes(t *testing.T) {
	dir, user := filetest.Tree(t, patchFiles()), t.TempDir()
	for _, name := range []string{"ten.txt", "x.txt"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o751); err != nil {
			t.Fatal(err)
		}
	}
	p := sdktest.Start(t, newPlugin(), sdktest.Options{Context: tool.Context{Roots: []string{dir}, UserDir: user}})
	want := contents(t, dir)
	in := applyPatchArgs{Patch: begin("*** Delete File: ten.txt\n", "*** Update File: x.txt\n*** Move to: z/x.txt\n", "*** Delete File: open.txt\n", "*** Add File: open.txt\n+new\n")}
	preview, err := p.Preview(t.Context(), "apply_patch", in)
	if err != nil {
		t.Fatal(err)
	}
	if shown := textOf(preview); !strings.Contains(shown, "deletes ten.txt, to the trash\nmoves x.txt to z/x.txt\n") || !strings.Contains(shown, "Deletes: ten.txt, 71 bytes, sha256:") {
		t.Errorf("preview = %s", shown)
	}
	if left := contents(t, user); len(left) > 0 {
		t.Errorf("the preview has made %v", left)
	}
	got := callWith(t, p, preview.Digest, "apply_patch", in)
	if got.Error != nil {
		t.Fatal(message(got))
	}
	delete(want, "ten.txt")
	delete(want, "x.txt")
	want["z/"], want["z/x.txt"], want["open.txt"] = "", "old\n", "new\n"
	if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
		t.Errorf("the files (-want +got):\n%s", diff)
	}
	facts, _ := got.Metadata["files"].([]any)
	id, _ := facts[0].(map[string]any)["trash_id"].(string)
	slot := filepath.Join(user, "trash", id)
	if data, err := os.ReadFile(filepath.Join(slot, "content")); err != nil || string(data) != numbered(10) {
		t.Errorf("the trash holds %q, %v", data, err)
	}
	for _, path := range []string{filepath.Join(slot, "content"), filepath.Join(dir, "z/x.txt")} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o751 {
			t.Errorf("%s has the mode %v, %v", path, info.Mode(), err)
		}
	}
}

// A patch that sets modes.
func TestApplyPatchModes(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a": "a\n", "b": "b\n"})
	if err := os.Chmod(filepath.Join(dir, "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, 16*tool.KiB)
	got := p.Call(t.Context(), "apply_patch", applyPatchArgs{Patch: "diff --git a/a b/a\nold mode 100644\nnew mode 100755\ndiff --git a/b b/b\nold mode 100755\nnew mode 100644\n"})
	if got.Text() != "Applied the patch to 2 files:\nupdates a, executable (+0 -0)\nupdates b, not executable (+0 -0)" {
		t.Errorf("apply_patch = %q, %s", got.Text(), message(got))
	}
	for name, want := range map[string]os.FileMode{"a": 0o755, "b": 0o644} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}

// The error for a hunk that does not apply shows the file's lines at that place.
func TestPatchMissShowsTheNearest(t *testing.T) {
	p := start(t, filetest.Tree(t, patchFiles()), 16*tool.KiB)
	got := p.Call(t.Context(), "apply_patch", applyPatchArgs{Patch: begin("*** Update File: a.go\n func b() {\n \tif y {\n-\t\treturn 2\n+\t\treturn 3\n")})
	const want = "Tool execution failed: Hunk 1 of a.go (line 3 of the patch) does not apply: expected \"\\tif y {\" at line 8, found \"\\tif x {\"\n" +
		"Hint: nothing was changed; the nearest is at lines 7-9:\nfunc b() {\n\tif x {\n\t\treturn 2\n"
	if got.Error == nil || got.Error.ModelText() != want {
		t.Errorf("a model reads %v, want %q", got.Error, want)
	}
}
