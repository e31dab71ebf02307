package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/trash"
	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestCreateDirectory(t *testing.T) { runChanges(t, moveFiles(), createDirectoryCases()) }

func createDirectoryCases() []changeCase {
	return []changeCase{
		{
			name: "new", tool: "create_directory", in: createDirectoryArgs{Path: "x/y"}, want: "Created directory x/y", effects: []tool.Effect{effect("x/y", "create")},
			facts: map[string]any{"path": "x/y", "created": true}, files: map[string]string{"x/": "", "x/y/": ""}, summary: "Creates the directory x/y and its missing parents",
		},
		{name: "there", tool: "create_directory", in: createDirectoryArgs{Path: "dir"}, want: "Directory exists: dir", facts: map[string]any{"created": false}, summary: "Nothing: there is a directory dir"},
		{name: "the workspace", tool: "create_directory", in: createDirectoryArgs{Path: "."}, want: "Directory exists: ."},
		{name: "file", tool: "create_directory", in: createDirectoryArgs{Path: "a.txt"}, err: "failed: Failed to write file: it is a file, not a directory"},
		{name: "below a file", tool: "create_directory", in: createDirectoryArgs{Path: "a.txt/x"}, err: "failed: Failed to write file: not a directory"},
		{name: "hooks", tool: "create_directory", in: createDirectoryArgs{Path: ".git/hooks"}, err: "permission_denied: Path not allowed by security policy: .git/hooks"},
	}
}

func moveFiles() map[string]string {
	return map[string]string{"a.txt": "a\n", "b.txt": "bb\n", "dir/c.txt": "ccc\n", "dir/link": "-> c.txt", "link": "-> a.txt", "empty/": "", ".env": "X=1\n"}
}

func TestMoveAndCopyFile(t *testing.T) { runChanges(t, moveFiles(), moveCases()) }

func moveCases() []changeCase {
	const failed = "failed: Failed to write file: "
	return []changeCase{
		{
			name: "move", tool: "move_file", in: moveArgs{Source: "a.txt", Dest: "x/y.txt"}, want: "Moved a.txt to x/y.txt",
			effects: []tool.Effect{effect("a.txt", "move"), effect("x/y.txt", "create")}, facts: map[string]any{"source": "a.txt", "dest": "x/y.txt", "replaced": false},
			files: map[string]string{"x/": "", "x/y.txt": "a\n"}, gone: []string{"a.txt"}, summary: "Moves a.txt to x/y.txt: 1 file, 2 bytes", shown: "Nothing is replaced.",
		},
		{
			name: "move over a file", tool: "move_file", in: moveArgs{Source: "a.txt", Dest: "b.txt", Overwrite: true}, want: "Moved a.txt to b.txt",
			effects: []tool.Effect{effect("a.txt", "move"), effect("b.txt", "update")}, facts: map[string]any{"replaced": true},
			files: map[string]string{"b.txt": "a\n"}, gone: []string{"a.txt"}, summary: "Moves a.txt to b.txt: 1 file, 2 bytes, replacing the existing file",
			shown: "b.txt is replaced, and cannot be restored.\n" +
				"old: 3 bytes, sha256:a81c31ac62620b9215a14ff00544cb07a55b765594f3ab3be77e70923ae27cf1, text/plain; charset=utf-8\nnew: 2 bytes, sha256:87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7, text/plain; charset=utf-8",
		},
		{name: "move over a file unasked", tool: "move_file", in: moveArgs{Source: "a.txt", Dest: "b.txt"}, err: failed + "file exists"},
		{
			name: "move a directory", tool: "move_file", in: moveArgs{Source: "dir", Dest: "new"}, want: "Moved dir to new", effects: []tool.Effect{effect("dir", "move"), effect("new", "create")},
			files: map[string]string{"new/": "", "new/c.txt": "ccc\n", "new/link": "-> c.txt"}, gone: []string{"dir/", "dir/c.txt", "dir/link"},
			summary: "Moves dir to new: 1 directory, 1 file, 4 bytes, 1 links or special files", shown: "Nothing is replaced.",
		},
		{name: "move a secret", tool: "move_file", in: moveArgs{Source: ".env", Dest: "plain"}, err: "permission_denied: Path not allowed by security policy: .env"},
		{name: "move nothing", tool: "move_file", in: moveArgs{Source: "none", Dest: "x"}, err: "not_found: File not found: none"},
		{name: "move onto a directory", tool: "move_file", in: moveArgs{Source: "a.txt", Dest: "empty", Overwrite: true}, err: failed + "empty is a directory, which is never replaced"},
		{name: "move into a directory", tool: "move_file", in: moveArgs{Source: "a.txt", Dest: "new/"}, err: "invalid_argument: new/ ends in /, so it names a directory, but a file is expected"},
		{name: "copy a link into a directory", tool: "copy_file", in: moveArgs{Source: "link", Dest: "new/."}, err: "invalid_argument: new/. ends in /., so it names a directory, but a file is expected"},
		{
			name: "move a directory to one with a slash", tool: "move_file", in: moveArgs{Source: "empty/", Dest: "new/"}, want: "Moved empty to new", effects: []tool.Effect{effect("empty", "move"), effect("new", "create")},
			files: map[string]string{"new/": ""}, gone: []string{"empty/"},
		},
		{
			name: "copy", tool: "copy_file", in: moveArgs{Source: "a.txt", Dest: "x.txt"}, want: "Copied a.txt to x.txt", effects: []tool.Effect{effect("x.txt", "create")},
			files: map[string]string{"x.txt": "a\n"}, summary: "Copies a.txt to x.txt: 1 file, 2 bytes", shown: "Nothing is replaced.",
		},
		{
			name: "copy over a file", tool: "copy_file", in: moveArgs{Source: "link", Dest: "b.txt", Overwrite: true}, want: "Copied a.txt to b.txt", effects: []tool.Effect{effect("b.txt", "update")},
			files: map[string]string{"b.txt": "a\n"},
		},
		{
			name: "copy a directory", tool: "copy_file", in: moveArgs{Source: "dir", Dest: "x/new"}, want: "Copied dir to x/new", effects: []tool.Effect{effect("x/new", "create")},
			files: map[string]string{"x/": "", "x/new/": "", "x/new/c.txt": "ccc\n", "x/new/link": "-> c.txt"},
		},
		{name: "copy out", tool: "copy_file", in: moveArgs{Source: "a.txt", Dest: "/tmp/x"}, err: "permission_denied: Path not allowed by security policy: /tmp/x"},
		{name: "copy a secret", tool: "copy_file", in: moveArgs{Source: ".env", Dest: "plain"}, err: "permission_denied: Path not allowed by security policy: .env"},
	}
}

func deleteCases() []changeCase {
	return []changeCase{
		{name: "not empty", tool: "delete_file", in: deleteFileArgs{Path: "dir"}, err: "failed: Failed to delete: dir is a directory that is not empty, it contains 1 file, 4 bytes, 1 links or special files"},
		{name: "secret", tool: "delete_file", in: deleteFileArgs{Path: ".env"}, err: "permission_denied: Path not allowed by security policy: .env"},
		{name: "nothing", tool: "delete_file", in: deleteFileArgs{Path: "none"}, err: "not_found: File not found: none"},
		{name: "the workspace", tool: "delete_file", in: deleteFileArgs{Path: ".", Recursive: true}, err: "permission_denied: Path not allowed by security policy: ."},
	}
}

func TestDeleteFileRefused(t *testing.T) { runChanges(t, moveFiles(), deleteCases()) }

// A deleted file is in the trash, with the data needed to restore it.
func TestDeleteFile(t *testing.T) {
	for _, tt := range []struct {
		in             deleteFileArgs
		text           string // without the id
		summary, shown string
		gone           []string
		trash          map[string]string // without the id
		info           trash.Info
	}{
		{
			in: deleteFileArgs{Path: "a.txt"}, text: "Deleted a.txt (1 file, 2 bytes). It is in the trash as ", gone: []string{"a.txt"},
			summary: "Deletes the file a.txt, to the trash", shown: "Deletes: 2 bytes, sha256:87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7, text/plain; charset=utf-8",
			trash: map[string]string{"content": "a\n"}, info: trash.Info{Shown: "a.txt", Kind: "file", Files: 1, Bytes: 2},
		},
		{
			in: deleteFileArgs{Path: "dir", Recursive: true}, text: "Deleted dir (1 directory, 1 file, 4 bytes, 1 links or special files). It is in the trash as ", gone: []string{"dir/", "dir/c.txt", "dir/link"},
			summary: "Deletes the directory dir with everything in it, to the trash: 1 directory, 1 file, 4 bytes, 1 links or special files", shown: "c.txt  4\nlink  symlink",
			trash: map[string]string{"content/": "", "content/c.txt": "ccc\n", "content/link": "-> c.txt"}, info: trash.Info{Shown: "dir", Kind: "directory", Files: 1, Bytes: 4},
		},
		{
			in: deleteFileArgs{Path: "empty"}, text: "Deleted empty (1 directory, 0 files, 0 bytes). It is in the trash as ", gone: []string{"empty/"},
			summary: "Deletes the directory empty with everything in it, to the trash: 1 directory, 0 files, 0 bytes", trash: map[string]string{"content/": ""}, info: trash.Info{Shown: "empty", Kind: "directory"},
		},
		{
			in: deleteFileArgs{Path: "link"}, text: "Deleted link (0 files, 0 bytes, 1 links or special files). It is in the trash as ", gone: []string{"link"},
			summary: "Deletes the symlink link, to the trash", shown: "Deletes only the link, not its target", trash: map[string]string{"content": "-> a.txt"}, info: trash.Info{Shown: "link", Kind: "symlink"},
		},
	} {
		t.Run(tt.in.Path, func(t *testing.T) {
			dir, user := filetest.Tree(t, moveFiles()), t.TempDir()
			p := sdktest.Start(t, newPlugin(), sdktest.Options{Context: tool.Context{Roots: []string{dir}, UserDir: user}})
			preview, err := p.Preview(t.Context(), "delete_file", tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if preview.Summary != tt.summary || textOf(preview) != tt.shown {
				t.Errorf("preview = %q, %q, want %q, %q", preview.Summary, textOf(preview), tt.summary, tt.shown)
			}
			if left := contents(t, user); len(left) > 0 {
				t.Errorf("the preview has made %v", left)
			}
			want := contents(t, dir)
			for _, name := range tt.gone {
				delete(want, name)
			}
			got := callWith(t, p, preview.Digest, "delete_file", tt.in)
			id, _ := got.Metadata["trash_id"].(string)
			if got.Text() != tt.text+id || id == "" {
				t.Fatalf("delete_file = %q, %v, want %q", got.Text(), got.Error, tt.text)
			}
			if diff := cmp.Diff([]tool.Effect{effect(tt.in.Path, "delete")}, got.Effects); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
				t.Errorf("the files (-want +got):\n%s", diff)
			}
			slot := filepath.Join(user, "trash", id)
			var info trash.Info
			data, err := os.ReadFile(filepath.Join(slot, "info.json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &info); err != nil {
				t.Fatal(err)
			}
			if age := time.Since(info.Deleted); age < 0 || age > time.Hour {
				t.Errorf("it was deleted %v ago", age)
			}
			tt.info.Deleted, tt.info.Path = info.Deleted, filepath.Join(dir, tt.in.Path)
			if diff := cmp.Diff(tt.info, info); diff != "" {
				t.Errorf("info.json (-want +got):\n%s", diff)
			}
			held := contents(t, slot)
			delete(held, "info.json")
			if diff := cmp.Diff(tt.trash, held); diff != "" {
				t.Errorf("the trash (-want +got):\n%s", diff)
			}
		})
	}
}

// A delete that cannot be finished leaves nothing in the trash, and no error reveals the path of
// the trash.
func TestTrashOutOfOrder(t *testing.T) {
	dir, user := filetest.Tree(t, moveFiles()), t.TempDir()
	if err := os.WriteFile(filepath.Join(user, "trash"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, userDir := range []string{user, filepath.Join(user, "none")} {
		p := sdktest.Start(t, newPlugin(), sdktest.Options{Context: tool.Context{Roots: []string{dir}, UserDir: userDir}})
		want := contents(t, dir)
		got := p.Call(t.Context(), "delete_file", deleteFileArgs{Path: "a.txt"})
		if got.Error == nil || strings.Contains(got.Error.ModelText(), user) {
			t.Errorf("delete_file = %q, %v", got.Text(), got.Error)
		}
		if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
			t.Errorf("the files (-want +got):\n%s", diff)
		}
	}
}

// The host's lists of protected paths and names arrive.
func TestProtectedPaths(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"conf/host.hcl": "x\n", "a.txt": "a\n", ".git/config": "c\n", ".claude/a": "c\n"})
	p := sdktest.Start(t, newPlugin(), sdktest.Options{
		Context: tool.Context{
			Roots: []string{dir}, Protected: []string{dir + "/conf/host.hcl"}, Files: &tool.FilePolicy{Protect: []string{protect.Editor}},
		},
	})
	for _, tt := range []struct {
		tool, path string
		in         any
	}{
		{"write_file", "conf/host.hcl", writeFileArgs{Path: "conf/../conf/host.hcl", Content: "y"}},
		{"edit_file", "conf/host.hcl", editCall("conf/host.hcl", "x", "y")},
		{"delete_file", "conf", deleteFileArgs{Path: "conf", Recursive: true}},
		{"move_file", "conf", moveArgs{Source: "conf", Dest: "c"}},
		{"copy_file", "conf/host.hcl", moveArgs{Source: "a.txt", Dest: "conf/host.hcl", Overwrite: true}},
		{"create_directory", ".vscode/new", createDirectoryArgs{Path: ".vscode/new"}},
		{"write_file", "sub/.envrc", writeFileArgs{Path: "sub/.envrc", Content: "y"}},
	} {
		got := p.Call(t.Context(), tt.tool, tt.in)
		if want := "permission_denied: Path not allowed by security policy: " + tt.path; message(got) != want {
			t.Errorf("%s(%+v) = %q, %q, want %q", tt.tool, tt.in, got.Text(), message(got), want)
		}
		if _, err := p.Preview(t.Context(), tt.tool, tt.in); errorText(err) != message(got) {
			t.Errorf("the preview of %s(%+v) = %v, want %q", tt.tool, tt.in, err, message(got))
		}
	}
	for _, name := range []string{".git/config", ".claude/a"} {
		if got := p.Call(t.Context(), "edit_file", editCall(name, "c", "d")); got.Error != nil {
			t.Errorf("edit_file of %s, which the host does not protect: %s", name, message(got))
		}
	}
}
