package main

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// changeCase is a call of a changing tool, with its result.
type changeCase struct {
	name string
	tool string
	in   any
	want string
	// facts is some of the metadata.
	facts   map[string]any
	effects []tool.Effect
	err     string // code and message
	// files lists new and changed files; gone lists removed ones.
	files map[string]string
	gone  []string
	// summary and shown are the preview's: shown is its texts, joined.
	summary, shown string
}

// runChanges makes each call in its own workspace: first the preview, which must change nothing
// and fail like the call, and then the call with its digest.
func runChanges(t *testing.T, files map[string]string, cases []changeCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			dir := filetest.Tree(t, files)
			p := start(t, dir, 16*tool.KiB)
			want := contents(t, dir)

			preview, err := p.Preview(t.Context(), tt.tool, tt.in)
			if diff := cmp.Diff(tt.err, errorText(err)); diff != "" {
				t.Fatalf("error of the preview (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
				t.Fatalf("the preview has changed something (-want +got):\n%s", diff)
			}
			got := callWith(t, p, preview.Digest, tt.tool, tt.in)
			if diff := cmp.Diff(tt.err, message(got)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, got.Text()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			for fact, value := range tt.facts {
				if diff := cmp.Diff(asJSON(t, value), asJSON(t, got.Metadata[fact])); diff != "" {
					t.Errorf("metadata %q (-want +got):\n%s", fact, diff)
				}
			}
			if diff := cmp.Diff(tt.effects, got.Effects); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
			maps.Copy(want, tt.files)
			for _, name := range tt.gone {
				delete(want, name)
			}
			if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
				t.Errorf("the files (-want +got):\n%s", diff)
			}
			if tt.summary != "" && (preview.Summary != tt.summary || textOf(preview) != tt.shown) {
				t.Errorf("preview = %q\n%s\nwant %q\n%s", preview.Summary, textOf(preview), tt.summary, tt.shown)
			}
		})
	}
}

// callWith makes a call with the digest of an approved preview; an empty digest means a call
// that needed no approval.
func callWith(tb testing.TB, p *sdktest.Plugin, digest []byte, name string, in any) tool.Result {
	tb.Helper()
	call := tool.Call{Tool: name, Arguments: []byte(asJSON(tb, in)), Context: tool.Context{PreviewDigest: digest}}
	return p.Run(tb.Context(), call, tool.Sink{})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func textOf(p tool.Preview) string { return tool.Result{Content: p.Content}.Text() }

func effect(target, operation string) tool.Effect {
	return tool.Effect{Kind: "file.changed", Target: target, Operation: operation}
}

// contents returns every file below dir with its content; directories end in a
// slash, links begin with "-> ".
func contents(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		switch {
		case d.IsDir():
			all[name+"/"] = ""
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			all[name] = "-> " + target
			return err
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			all[name] = string(data)
			return err
		default:
			all[name] = d.Type().String()
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// A call runs on the state that its preview has shown and on no other. The
// control, the same call without the digest, runs.
func TestChangedSincePreview(t *testing.T) {
	write := func(name, content string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644) }
	}
	remove := func(name string) func(dir string) error {
		return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
	}
	link := func(name, target string) func(dir string) error {
		return func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, name)), os.Symlink(target, filepath.Join(dir, name)))
		}
	}
	for _, tt := range []struct {
		name, tool string
		in         any
		meddle     func(dir string) error
		refused    bool // also without a preview
	}{
		{name: "content", tool: "write_file", in: writeFileArgs{Path: "a.txt", Content: "new\n"}, meddle: write("a.txt", "uno\n")},
		{name: "created", tool: "write_file", in: writeFileArgs{Path: "new.txt", Content: "new\n"}, meddle: write("new.txt", "theirs\n")},
		{name: "removed", tool: "write_file", in: writeFileArgs{Path: "a.txt", Content: "new\n"}, meddle: remove("a.txt")},
		{name: "appended", tool: "write_file", in: writeFileArgs{Path: "a.txt", Content: "new\n", Mode: "append"}, meddle: write("a.txt", "uno\n")},
		{name: "another place", tool: "write_file", in: writeFileArgs{Path: "link", Content: "new\n"}, meddle: link("link", "b.txt")},
		{name: "another place of the same content", tool: "write_file", in: writeFileArgs{Path: "link", Content: "new\n"}, meddle: link("link", "same.txt")},
		{name: "edit elsewhere in the file", tool: "edit_file", in: map[string]any{"path": "a.txt", "old": "one", "new": "1"}, meddle: write("a.txt", "one\ntwo\nmore\n")},
		{name: "edit of what is gone", tool: "edit_file", in: map[string]any{"path": "a.txt", "old": "one", "new": "1"}, meddle: write("a.txt", "uno\n"), refused: true},
		{name: "edit of a file that is gone", tool: "edit_file", in: map[string]any{"path": "a.txt", "old": "one", "new": "1"}, meddle: remove("a.txt"), refused: true},
		{name: "patched elsewhere in the file", tool: "apply_patch", in: applyPatchArgs{Patch: begin("*** Update File: a.txt\n-one\n+1\n")}, meddle: write("a.txt", "one\ntwo\nmore\n")},
		{name: "second file of a patch", tool: "apply_patch", in: applyPatchArgs{Patch: begin("*** Update File: a.txt\n-one\n+1\n", "*** Update File: b.txt\n-b\n+c\n")}, meddle: write("b.txt", "b\nmore\n")},
		{name: "file that a patch deletes", tool: "apply_patch", in: applyPatchArgs{Patch: begin("*** Delete File: b.txt\n")}, meddle: write("b.txt", "more\n")},
		{name: "file that a patch makes", tool: "apply_patch", in: applyPatchArgs{Patch: begin("*** Add File: new.txt\n+c\n")}, meddle: write("new.txt", "theirs\n"), refused: true},
		{name: "directory", tool: "create_directory", in: createDirectoryArgs{Path: "new"}, meddle: func(dir string) error { return os.Mkdir(filepath.Join(dir, "new"), 0o755) }},
		{name: "source of a copy", tool: "copy_file", in: moveArgs{Source: "a.txt", Dest: "c.txt"}, meddle: write("a.txt", "uno\n")},
		{name: "dest of a copy", tool: "copy_file", in: moveArgs{Source: "a.txt", Dest: "b.txt", Overwrite: true}, meddle: write("b.txt", "uno\n")},
		{name: "tree of a copy", tool: "copy_file", in: moveArgs{Source: "dir", Dest: "new"}, meddle: write("dir/deep/more", "x")},
		{name: "source of a move", tool: "move_file", in: moveArgs{Source: "a.txt", Dest: "c.txt"}, meddle: write("a.txt", "uno\n")},
		{name: "dest of a move", tool: "move_file", in: moveArgs{Source: "a.txt", Dest: "b.txt", Overwrite: true}, meddle: remove("b.txt")},
		{name: "tree of a move", tool: "move_file", in: moveArgs{Source: "dir", Dest: "new"}, meddle: remove("dir/deep/f")},
		{name: "deleted file", tool: "delete_file", in: deleteFileArgs{Path: "a.txt"}, meddle: write("a.txt", "uno\n")},
		{name: "deleted tree", tool: "delete_file", in: deleteFileArgs{Path: "dir", Recursive: true}, meddle: write("dir/deep/f", "another")},
		{name: "deleted link", tool: "delete_file", in: deleteFileArgs{Path: "link"}, meddle: link("link", "b.txt")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filetest.Tree(t, map[string]string{"a.txt": "one\ntwo\n", "same.txt": "one\ntwo\n", "b.txt": "b\n", "dir/deep/f": "f", "link": "-> a.txt"})
			p := start(t, dir, tool.MiB)
			preview, err := p.Preview(t.Context(), tt.tool, tt.in)
			if err != nil {
				t.Fatal(err)
			}
			again, err := p.Preview(t.Context(), tt.tool, tt.in)
			if err != nil || !bytes.Equal(preview.Digest, again.Digest) || len(preview.Digest) == 0 {
				t.Fatalf("the digest is %x and then %x, %v", preview.Digest, again.Digest, err)
			}
			if err := tt.meddle(dir); err != nil {
				t.Fatal(err)
			}
			want := contents(t, dir)
			got := callWith(t, p, preview.Digest, tt.tool, tt.in)
			if got.Error == nil || got.Error.Code != tool.Conflict || !strings.Contains(got.Error.Message, "changed since the preview") {
				t.Errorf("the call answers %q, %q, want a conflict", got.Text(), message(got))
			}
			if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
				t.Errorf("the files (-want +got):\n%s", diff)
			}
			control := callWith(t, p, nil, tt.tool, tt.in)
			if tt.refused != (control.Error != nil) {
				t.Errorf("without the digest: %q, so the test shows nothing", message(control))
			}
		})
	}
}

// An approver reads a complete text, or the text begins with a note that it is not complete.
func TestPreviewIsWholeOrSaysSo(t *testing.T) {
	long := strings.Repeat("a line of some length\n", 20_000)
	dir := filetest.Tree(t, map[string]string{
		"long.txt": long, "data.bin": "\x00\x01\x02", "many.txt": strings.Repeat("\n", snapshot.MaxDiffLines), "big.txt": strings.Repeat("x", snapshot.MaxDiff+1),
		"utf16.txt": "\xFF\xFEh\x00i\x00", "few/x": "x",
	})
	for i := range snapshot.MaxListed + 10 {
		if err := os.WriteFile(filepath.Join(dir, "few", "f"+strings.Repeat("i", i%100)+string(rune('a'+i/100))), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, dir, 16*tool.KiB)
	for _, tt := range []struct {
		name, tool string
		in         any
		want       string // how the text begins
	}{
		{"fits", "write_file", writeFileArgs{Path: "n", Content: strings.Repeat("x", snapshot.MaxPreview-100)}, "--- /dev/null\n"},
		{"too large", "write_file", writeFileArgs{Path: "n", Content: long}, "NOT ALL IS SHOWN: the diff has 460042 bytes in 20003 lines; "},
		{"one long line", "write_file", writeFileArgs{Path: "n", Content: strings.Repeat("é", snapshot.MaxPreview)}, "NOT ALL IS SHOWN: the diff has "},
		{"binary", "write_file", writeFileArgs{Path: "data.bin", Content: "text\n"}, "This is not text, so there is no diff.\nold: 3 bytes, sha256:ae4b3280e56e2faf83f414a6e3dabe9d5fbe18976544c05fed121accb85b53fc, application/octet-stream, not shown\n" +
			"new: 5 bytes, sha256:b9e68e1bea3e5b19ca6b2f98b73a54b73daafaa250484902e09982e07a12e733, as follows:\ntext\n"},
		{"binary afterwards", "write_file", writeFileArgs{Path: "n", Content: "a\x00b"}, "This is not text, so there is no diff.\nold: nothing, not shown\nnew: 3 bytes, sha256:"},
		{"too large before", "write_file", writeFileArgs{Path: "big.txt", Content: "text\n"}, "There is too much for a diff.\nold: 4194305 bytes, sha256:"},
		{"too many lines", "write_file", writeFileArgs{Path: "many.txt", Content: "text\n"}, "There is too much for a diff.\nold: 200000 bytes, sha256:"},
		{"all else", "write_file", writeFileArgs{Path: "long.txt", Content: "text\n"}, "There is too much for a diff.\nold: 440000 bytes, sha256:"},
		{"appended to what is too large", "write_file", writeFileArgs{Path: "big.txt", Content: "text\n", Mode: "append"}, "The file is too large for a diff; its content stays, and this is added at the end:\ntext\n"},
		{"another encoding", "write_file", writeFileArgs{Path: "utf16.txt", Content: "ho"}, "The encoding changes from utf-16le with a byte order mark to utf-8 without a byte order mark.\n--- a/utf16.txt\n+++ b/utf16.txt\n@@ -1 +1 @@\n-hi\n"},
		{"the same", "write_file", writeFileArgs{Path: "data.txt", Content: ""}, ""},
		{"patch of one file", "apply_patch", applyPatchArgs{Patch: "*** Begin Patch\n*** Add File: n\n" + strings.Repeat("+a line of some length\n", 20_000) + "*** End Patch\n"}, "NOT ALL IS SHOWN: the diff has 460042 bytes in 20003 lines; "},
		{"patch of two files", "apply_patch", applyPatchArgs{Patch: "*** Begin Patch\n*** Add File: m\n+m\n*** Add File: n\n" + strings.Repeat("+a line of some length\n", 20_000) + "*** End Patch\n"}, "NOT ALL IS SHOWN: what changes in the last 1 of 2 files is left out.\ncreates m\ncreates n\n"},
		{"many files", "delete_file", deleteFileArgs{Path: "few", Recursive: true}, "NOT ALL IS SHOWN: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			preview, err := p.Preview(t.Context(), tt.tool, tt.in)
			if err != nil {
				t.Fatal(err)
			}
			got := textOf(preview)
			if !strings.HasPrefix(got, tt.want) || strings.HasPrefix(got, "NOT ALL") != strings.HasPrefix(tt.want, "NOT ALL") {
				t.Errorf("preview = %.300q, want %q", got, tt.want)
			}
			if len(got) > snapshot.MaxPreview+1000 {
				t.Errorf("the preview has %d bytes", len(got))
			}
		})
	}
}
