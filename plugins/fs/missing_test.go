package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestSimilarNames checks the names that an error about a missing file tells.
func TestSimilarNames(t *testing.T) {
	tree := map[string]string{
		"src/handler.go": "", "src/handler_test.go": "", "src/router.go": "", "docs/Handler.go": "", "ignored/handler.go": "", ".gitignore": "ignored\n",
		"deep/er/unique.txt": "",
	}
	dir := filetest.Tree(t, tree)
	p := start(t, dir, 16*tool.KiB)
	const list = "list the directory that it should be in; paths are relative to the workspace"
	for _, tt := range []struct {
		tool string
		in   any
		hint string
	}{
		{"read_file", readFileArgs{Path: "src/handlr.go"}, "did you mean src/handler.go or docs/Handler.go? Otherwise " + list},
		{"read_file", readFileArgs{Path: filepath.Join(dir, "src/handlr.go")}, "did you mean src/handler.go or docs/Handler.go? Otherwise " + list},
		{"read_file", readFileArgs{Path: "unique.txt"}, "did you mean deep/er/unique.txt? Otherwise " + list},
		{"read_file", readFileArgs{Path: "ignored/Handler.go"}, "did you mean docs/Handler.go or src/handler.go? Otherwise " + list},
		{"file_info", fileInfoArgs{Path: "src/routes.go"}, "did you mean src/router.go? Otherwise " + list},
		{"list_directory", listDirectoryArgs{Path: "srcs"}, "did you mean src? Otherwise " + list},
		{"edit_file", editCall("src/Router.go", "a", "b"), "did you mean src/router.go? Otherwise use write_file to create it"},
		{"read_file", readFileArgs{Path: "nothing/like/it"}, list},
		{"read_file", readFileArgs{Path: strings.Repeat("long", 20)}, list},
	} {
		if got := p.Call(t.Context(), tt.tool, tt.in); got.Error == nil || got.Error.Code != tool.NotFound || got.Error.Hint != tt.hint {
			t.Errorf("%s %v: %s, want the hint %q", tt.tool, tt.in, message(got), tt.hint)
		}
	}
}

// TestSimilarNamesAreBounded has more names than are compared, and the similar one last.
func TestSimilarNamesAreBounded(t *testing.T) {
	tree := map[string]string{"zzz.txt": ""}
	for n := range maxSimilar {
		tree[fmt.Sprintf("a/%d", n)] = ""
	}
	p := start(t, filetest.Tree(t, tree), 16*tool.KiB)
	if got := p.Call(t.Context(), "read_file", readFileArgs{Path: "zzzz.txt"}); strings.Contains(got.Error.Hint, "zzz.txt") {
		t.Errorf("the hint %q names a file beyond the bound", got.Error.Hint)
	}
}
