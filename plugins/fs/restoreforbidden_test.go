package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestRestoreForbidden: a call cannot see trash items that have become forbidden since. A
// directory that contains one is not restored to any path.
func TestRestoreForbidden(t *testing.T) {
	t.Parallel()
	files := map[string]string{"key.bin": "KEY=1\n", "private/k": "KEY=2\n", "dir/sub/hidden": "KEY=3\n", "a.txt": "a\n"}
	_, dir, user, ids := withTrash(t, files, nil, "key.bin", "private", "dir", "a.txt")
	start := func(patterns ...string) *sdktest.Plugin {
		return sdktest.Start(t, newPlugin(), sdktest.Options{Context: tool.Context{
			Roots: []string{dir}, UserDir: user, MaxOutput: 16 * tool.KiB, Files: &tool.FilePolicy{Forbidden: patterns},
		}})
	}
	p := start("**/*.bin", dir+"/private", dir+"/dir/sub/hidden")
	silent := func(what, text string) {
		t.Helper()
		for _, word := range []string{"KEY=", "key.bin", "private", ids[0], ids[1]} {
			if strings.Contains(text, word) {
				t.Errorf("%s tells of %s:\n%s", what, word, text)
			}
		}
	}
	list := p.Call(t.Context(), "restore_file", restoreFileArgs{List: true})
	if silent("the list", list.Text()); !strings.Contains(list.Text(), "a.txt") || !strings.Contains(list.Text(), ids[2]) {
		t.Errorf("the list lacks what is not forbidden:\n%s", list.Text())
	}
	for _, tt := range []struct {
		in   restoreFileArgs
		code tool.Code
	}{
		{restoreFileArgs{ID: ids[0]}, tool.NotFound},
		{restoreFileArgs{ID: ids[0], Dest: "plain.txt"}, tool.NotFound},
		{restoreFileArgs{ID: ids[1], Dest: "other"}, tool.NotFound},
		{restoreFileArgs{Path: "key.bin", Dest: "plain.txt"}, tool.PermissionDenied},
		{restoreFileArgs{ID: ids[2]}, tool.PermissionDenied},
		{restoreFileArgs{ID: ids[2], Dest: "other"}, tool.PermissionDenied},
		{restoreFileArgs{Path: "dir", Dest: "other"}, tool.PermissionDenied},
		{restoreFileArgs{Path: "none"}, tool.NotFound},
	} {
		got := p.Call(t.Context(), "restore_file", tt.in)
		if got.Error == nil || got.Error.Code != tt.code {
			t.Errorf("restore_file(%+v) = %q, %v, want the code %s", tt.in, got.Text(), got.Error, tt.code)
			continue
		}
		text := got.Error.ModelText()
		for _, given := range []string{tt.in.ID, tt.in.Path} {
			if given != "" {
				text = strings.ReplaceAll(text, given, "")
			}
		}
		silent("restore_file", text)
	}
	for _, name := range []string{"key.bin", "plain.txt", "other", "dir", "private"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s has come back", name)
		}
	}
	if got := p.Call(t.Context(), "restore_file", restoreFileArgs{ID: ids[3]}); got.Error != nil {
		t.Errorf("what is not forbidden does not come back: %v", got.Error)
	}
	p = start()
	for _, id := range ids[:3] {
		if got := p.Call(t.Context(), "restore_file", restoreFileArgs{ID: id}); got.Error != nil {
			t.Errorf("what is not forbidden any more does not come back: %v", got.Error)
		}
	}
}

// TestRestoreForbiddenThroughALink: a pattern that spells the workspace with a link in it
// holds for the trash.
func TestRestoreForbiddenThroughALink(t *testing.T) {
	t.Parallel()
	way := filepath.Join(t.TempDir(), "way")
	if err := os.Symlink(filetest.Tree(t, map[string]string{"private": "KEY=1\n"}), way); err != nil {
		t.Fatal(err)
	}
	options := sdktest.Options{Context: tool.Context{Roots: []string{way}, UserDir: t.TempDir(), MaxOutput: 16 * tool.KiB}}
	id := deleteFile(t, sdktest.Start(t, newPlugin(), options), "private")
	options.Context.Files = &tool.FilePolicy{Forbidden: []string{way + "/private"}}
	got := sdktest.Start(t, newPlugin(), options).Call(t.Context(), "restore_file", restoreFileArgs{ID: id, Dest: "plain"})
	if got.Error == nil || got.Error.Code != tool.NotFound {
		t.Errorf("restore_file = %q, %v, want %s", got.Text(), got.Error, tool.NotFound)
	}
}
