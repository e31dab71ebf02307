//go:build !race

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/edit"
	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/sdk/tool"
)

// One goroutine computes in these: the race detector only makes them slow.

// Edits that would take all memory or time are refused.
func TestEditBounds(t *testing.T) {
	big := strings.Repeat("a", edit.MaxBytes)
	lines := strings.Repeat("\ta\n", edit.MaxBytes/3)
	for _, tt := range []struct {
		name, text string
		in         edit.Replacement
		want       tool.Code
	}{
		{"too many", big, edit.Replacement{Old: "a", New: "b", All: true}, tool.ResourceExhausted},
		{"too many lines", lines, edit.Replacement{Old: "a ", New: "b", All: true}, tool.ResourceExhausted},
		{"too large", strings.Repeat("a\n", 1000), edit.Replacement{Old: "a", New: strings.Repeat("b", 1<<20), All: true}, tool.ResourceExhausted},
		{"too large with indentation", strings.Repeat("\ta\n\tb\n", 1000), edit.Replacement{Old: " a\n b\n", New: strings.Repeat(" b\n", 1<<19), All: true}, tool.ResourceExhausted},
		{"endless almost", lines, edit.Replacement{Old: strings.Repeat(" a\n", 100_000) + "x", New: "b"}, tool.NotFound},
		{"indented otherwise", strings.Repeat("\ta\n a\n", 500_000), edit.Replacement{Old: "  a\n  a\n", New: "b"}, tool.NotFound},
		{"not unique", big[:1000], edit.Replacement{Old: "a", New: "b"}, tool.InvalidArgument},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := tt.in.Apply("f", tt.text)
			if got := tool.AsError(err); got == nil || got.Code != tt.want {
				t.Errorf("apply = %v, want %s", err, tt.want)
			} else if len(got.ModelText()) > 4000 {
				t.Errorf("the error has %d bytes", len(got.ModelText()))
			}
		})
	}
}

// The error for a patch that is too large names the exceeded bound.
func TestApplyPatchIsTooLarge(t *testing.T) {
	line := "0123456789abcde\n"
	full := strings.Repeat(line, edit.MaxBytes/len(line))
	files := map[string]string{"large": full + line}
	var parts []string
	for i := range maxPatched/edit.MaxBytes + 1 {
		name := fmt.Sprintf("f%d", i)
		files[name] = full
		parts = append(parts, "*** Update File: "+name+"\n@@\n+x\n*** End of File\n")
	}
	p := start(t, filetest.Tree(t, files), 16*tool.KiB)
	for _, tt := range []struct{ patch, want string }{
		{begin("*** Update File: large\n@@\n+x\n*** End of File\n"), "large has 8388624 bytes; at most 8388608 can be changed"},
		{begin(parts[0]), "f0 would have 8388610 bytes or more, the maximum is 8388608"},
		{begin(parts...), "The files up to f4 have 41943040 bytes together; the maximum is 33554432"},
	} {
		if got := p.Call(t.Context(), "apply_patch", applyPatchArgs{Patch: tt.patch}); got.Error == nil || got.Error.Code != tool.ResourceExhausted || got.Error.Message != tt.want {
			t.Errorf("apply_patch = %s, want %q", message(got), tt.want)
		}
	}
}

// Only the needed part of a file that is too large is read: its first lines at once, its last
// lines from the end, never the whole file.
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
	p := start(t, dir, 1000+page.NoteRoom)
	for _, tt := range []struct {
		name    string
		in      readFileArgs
		want    string
		wantErr string
	}{
		{"binary", readFileArgs{Path: "zeros"}, "Binary file: application/octet-stream, 10737418240 bytes", ""},
		{"one line", readFileArgs{Path: "zeros", Encoding: "utf-8"}, strings.Repeat("\x00", 1000) + "\n[line 1 is too long and was cut; continue in it with offset=1 column=1001]", ""},
		{"on in one line", readFileArgs{Path: "zeros", Encoding: "utf-8", lineRange: column(1, 100<<20)}, strings.Repeat("\x00", 1000) + "\n[line 1 is too long and was cut; continue in it with offset=1 column=104858600]", ""},
		{"on in the last line", readFileArgs{Path: "log", lineRange: column(-1, 4)}, "e 3\n", ""},
		{"farther than can be read", readFileArgs{Path: "zeros", Encoding: "utf-8", lineRange: column(1, 2<<30)}, "", "invalid_argument: column is 2147483648, but of line 1 of zeros 1073741824 bytes can be read, up to the first GiB of the file"},
		{"too far", readFileArgs{Path: "log", lineRange: column(-1, 9)}, "", "invalid_argument: column is 9, but line -1 of log has 6 bytes"},
		{"first lines", readFileArgs{Path: "log", lineRange: lines(2, 1)}, "line 2\n\n[lines 2-2; continue with offset=3]", ""},
		{"last lines", readFileArgs{Path: "log", lineRange: lines(-2, 0)}, "line 2\nline 3\n", ""},
		{"beyond", readFileArgs{Path: "log", lineRange: lines(-200, 0)}, "", "invalid_argument: offset is -200, but the last 64 MiB of log have 3 lines only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := p.Call(t.Context(), "read_file", tt.in)
			if message(got) != tt.wantErr || got.Text() != tt.want {
				t.Errorf("read_file = %.60q, %q, want %.60q, %q", got.Text(), message(got), tt.want, tt.wantErr)
			}
			if hash, ok := got.Metadata["hash"]; ok {
				t.Errorf("hash = %v, want none for a file that was not read wholly", hash)
			}
		})
	}
}

// If a directory has more names than a tool reads, every tool says so.
func TestDirectoryWithTooManyNames(t *testing.T) {
	dir := manyFiles(t, 200_001)
	const note = "[Directory has more than 200000 entries, the rest is left out: big; use the path of a file that is left out]"
	p := start(t, dir, 8*tool.KiB)
	for name, in := range map[string]any{
		"search_content": searchContentArgs{Pattern: "needle", Globs: []string{"*.txt"}},
		"search_files":   searchFilesArgs{Pattern: "needle"},
		"list_directory": listDirectoryArgs{Path: "big", Args: page.Args{Limit: 3}},
	} {
		got := p.Call(t.Context(), name, in)
		if got.Error != nil || !strings.HasSuffix(got.Text(), "\n"+note) {
			t.Errorf("%s = %q, %v; want that it ends in %q", name, got.Text(), got.Error, note)
		}
		if name == "list_directory" && !strings.Contains(got.Text(), "[1-3 of more than 100000; continue with cursor=\"3\"]") {
			t.Errorf("list_directory = %q, want that it says that there are more", got.Text())
		}
	}
}

// Notes take a part of the budget only, however many there are and however long
// the paths are.
func TestNotesAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 12 {
		if err := os.MkdirAll(filepath.Join(dir, fmt.Sprint("needle", i), strings.Repeat("a-long-name/", 256)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, budget := range []tool.ByteSize{2 * tool.KiB, 64 * tool.KiB} {
		p := start(t, dir, budget)
		for name, in := range map[string]any{
			"search_content": searchContentArgs{Pattern: "needle"},
			"search_files":   searchFilesArgs{Pattern: "*"},
			"list_directory": listDirectoryArgs{Depth: 300},
		} {
			// search_files and list_directory have all notes on the last page.
			text := p.Call(t.Context(), name, in).Text()
			if len(text) > int(budget) {
				t.Errorf("%s gives %d bytes, want at most %d", name, len(text), budget)
			}
			if name == "list_directory" && !strings.HasSuffix(text, " more notes]") {
				t.Errorf("%s ends in %q, want that it says that there are more notes", name, text[max(len(text)-100, 0):])
			}
		}
	}
}
