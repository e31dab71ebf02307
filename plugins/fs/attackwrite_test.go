package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Every tool that changes files refuses every path that leads outside or to something other than
// a regular file. It changes nothing, blocks on nothing, and reveals nothing about files
// outside. The control joins such paths and writes.
func TestAttacksOnWrites(t *testing.T) {
	outside := filetest.Tree(t, map[string]string{"secret.txt": "do not tell\n", "dir/x": "x"})
	dir := filetest.Tree(t, map[string]string{
		"a.txt": "a\n", "link": "-> " + outside + "/secret.txt", "new": "-> " + outside + "/new", "directory": "-> " + outside, "up": "-> ../..",
		"null": "-> /dev/null", "full": "-> /dev/full", ".env": "do not tell\n", "harmless.txt": "-> .env", ".git/hooks/pre-push": "#!", "hooks": "-> .git/hooks",
		"two": "hard\n", "loop": "-> loop",
	})
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(outside, "secret.txt"), filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	paths := []string{
		"../secret.txt", "a.txt/../../x", "/etc/passwd", dir + "/../x", outside + "/secret.txt", outside + "/new", "/proc/self/cwd/a.txt", "/dev/full",
		"directory/secret.txt", "directory/new", "directory/dir", "up/x", "a\x00.txt", ".env", ".env/x", "id_rsa", ".git/hooks/new",
		".git/config", strings.Repeat("n", 4096), strings.Repeat("n", 300), strings.Repeat("d/", 2047) + strings.Repeat("n", 300), "",
	}
	// These are refused where the file itself is written; a link can be moved
	// and deleted, a FIFO too.
	written := []string{"link", "new", "null", "full", "harmless.txt", "fifo", "hard", "loop", "directory", "a.txt/new", "fifo/new", ".", ".git", "hooks/pre-push"}
	type attack struct {
		tool string
		args func(path string) any
		more []string
	}
	p := sdktest.StartBinary(t, os.Args[0], sdktest.Options{
		Env: []string{"FS_AS_PLUGIN=1"}, Context: tool.Context{Roots: []string{dir}, MaxOutput: 16 * tool.KiB},
	})
	want, wantOutside := contents(t, dir), contents(t, outside)
	for _, a := range []attack{
		{"write_file", func(path string) any { return writeFileArgs{Path: path, Content: "x"} }, written},
		{"write_file", func(path string) any { return writeFileArgs{Path: path, Content: "x", Mode: "append"} }, written},
		{"write_file", func(path string) any { return writeFileArgs{Path: path, Content: "x", Mode: "create"} }, written},
		{"edit_file", func(path string) any { return editCall(path, "o", "x") }, written},
		{"apply_patch", func(path string) any {
			return applyPatchArgs{Patch: "--- " + quotedName("a/"+path) + "\n+++ " + quotedName("b/"+path) + "\n@@ -1 +1 @@\n-a\n+x\n"}
		}, written},
		{"apply_patch", func(path string) any { return applyPatchArgs{Patch: begin("*** Add File: " + path + "\n+x\n")} }, written},
		{"apply_patch", func(path string) any { return applyPatchArgs{Patch: begin("*** Delete File: " + path + "\n")} }, written},
		{"apply_patch", func(path string) any {
			return applyPatchArgs{Patch: begin("*** Update File: " + path + "\n*** Move to: stolen\n")}
		}, written},
		{"apply_patch", func(path string) any {
			return applyPatchArgs{Patch: begin("*** Update File: a.txt\n*** Move to: " + path + "\n")}
		}, written},
		{"create_directory", func(path string) any { return createDirectoryArgs{Path: path + "/x"} }, []string{"link", "null", "fifo", "hard", "loop", "a.txt"}},
		{"copy_file", func(path string) any { return moveArgs{Source: path, Dest: "stolen"} }, []string{"link", "null", "fifo", "harmless.txt", "loop", "directory"}},
		{"copy_file", func(path string) any { return moveArgs{Source: "a.txt", Dest: path, Overwrite: true} }, written},
		{"move_file", func(path string) any { return moveArgs{Source: path, Dest: "stolen"} }, []string{".", ".git", "hooks/pre-push"}},
		{"move_file", func(path string) any { return moveArgs{Source: "a.txt", Dest: path, Overwrite: true} }, written},
		{"delete_file", func(path string) any { return deleteFileArgs{Path: path, Recursive: true} }, []string{".", ".git", "hooks/pre-push"}},
	} {
		for _, path := range append(slices.Clip(paths), a.more...) {
			got := p.Call(t.Context(), a.tool, a.args(path))
			if got.Error == nil {
				t.Errorf("%s(%.60q) = %.200q, want it to be refused", a.tool, path, got.Text())
				continue
			}
			if _, err := p.Preview(t.Context(), a.tool, a.args(path)); errorText(err) != message(got) {
				t.Errorf("%s(%.60q): the preview says %v, the call %q", a.tool, path, err, message(got))
			}
			told := strings.ReplaceAll(got.Text()+got.Error.ModelText(), path, "")
			for _, hidden := range []string{"do not tell", "root:x:", outside} {
				if path != "" && strings.Contains(told, hidden) {
					t.Errorf("%s(%.60q) tells %q: %s", a.tool, path, hidden, told)
				}
			}
		}
	}
	if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
		t.Errorf("the workspace (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantOutside, contents(t, outside)); diff != "" {
		t.Errorf("what is outside (-want +got):\n%s", diff)
	}
	for path, damaged := range map[string]string{ // all below directories of this test
		"../secret.txt": filepath.Dir(dir) + "/secret.txt", "link": outside + "/secret.txt", "new": outside + "/new",
		"directory/dir/x": outside + "/dir/x", "hard": dir + "/hard", ".env": dir + "/.env", "harmless.txt": dir + "/.env",
		".git/config": dir + "/.git/config", ".git/hooks/new": dir + "/.git/hooks/new", "hooks/pre-push": dir + "/.git/hooks/pre-push",
	} {
		err := os.WriteFile(filepath.Join(dir, path), []byte(path), 0o600)
		if got, _ := os.ReadFile(damaged); err != nil || string(got) != path {
			t.Errorf("control: writing %s = %v, and %s holds %q, so the test shows nothing", path, err, damaged, got)
		}
	}
}

// quotedName writes a name as git does.
func quotedName(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		fmt.Fprintf(&b, "\\%03o", c)
	}
	return `"` + b.String() + `"`
}
