package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// A name that results show by escapes is not found, and the hint says why.
func TestNamesThatCannotBeGiven(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a.txt": "a\n", "a \"b\"": "b\n"})
	if err := os.WriteFile(filepath.Join(dir, "bad\xff.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, 16*tool.KiB)
	if got := p.Call(t.Context(), "search_files", searchFilesArgs{Pattern: "bad*"}); got.Text() != `"bad\xff.txt"` {
		t.Fatalf("search_files = %s, %s", got.Text(), message(got))
	}
	const (
		bytes   = "the real name is not UTF-8, which is shown by escapes and which no tool can name; ask the user to rename the file"
		escapes = "names of special characters are shown in quotes with escapes; give the name itself, without them"
	)
	for _, tt := range []struct {
		tool string
		in   any
		hint string
	}{
		{"read_file", readFileArgs{Path: `"bad\xff.txt"`}, bytes},
		{"read_file", readFileArgs{Path: `bad\xff.txt`}, bytes},
		{"file_info", fileInfoArgs{Path: `"bad\xff.txt"`}, bytes},
		{"edit_file", editCall(`"bad\xff.txt"`, "a", "b"), bytes},
		{"move_file", moveArgs{Source: `"bad\xff.txt"`, Dest: "good.txt"}, bytes},
		{"delete_file", deleteFileArgs{Path: `"bad\xff.txt"`}, bytes},
		{"apply_patch", applyPatchArgs{Patch: begin("*** Delete File: \"bad\\xff.txt\"\n")}, bytes},
		{"edit_file", editCall(`"sub/bad\xff.txt"`, "a", "b"), bytes},
		{"list_directory", listDirectoryArgs{Path: `"bad\xff"`}, bytes},
		{"read_file", readFileArgs{Path: `"a \"b\""`}, escapes},
	} {
		got := p.Call(t.Context(), tt.tool, tt.in)
		_, err := p.Preview(t.Context(), tt.tool, tt.in)
		if told := tool.AsError(err); strings.Contains("edit_file move_file delete_file", tt.tool) && told.Hint != tt.hint {
			t.Errorf("%s: the preview says %v, want the hint %q", tt.tool, err, tt.hint)
		}
		if got.Error == nil || got.Error.Code != tool.NotFound || got.Error.Hint != tt.hint {
			t.Errorf("%s: %s, want the hint %q", tt.tool, message(got), tt.hint)
		}
	}
	if got := p.Call(t.Context(), "read_file", readFileArgs{Path: `a "b"`}); got.Error != nil {
		t.Errorf("read_file of the real name: %s", message(got))
	}
	if got := p.Call(t.Context(), "read_file", readFileArgs{Path: `none\`}); got.Error == nil || strings.Contains(got.Error.Hint, "escapes") {
		t.Errorf("read_file of a name with a backslash: %s", message(got))
	}
}
