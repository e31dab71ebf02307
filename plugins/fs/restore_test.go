package main

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/trash"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// withTrash starts the plugin with a workspace, in which it has deleted the
// named files one after the other, and returns their ids.
func withTrash(t *testing.T, files map[string]string, settings map[string]any, names ...string) (p *sdktest.Plugin, dir, user string, ids []string) {
	t.Helper()
	dir, user = filetest.Tree(t, files), t.TempDir()
	p = sdktest.Start(t, newPlugin(), sdktest.Options{Context: tool.Context{Roots: []string{dir}, UserDir: user, MaxOutput: 16 * tool.KiB}, Settings: settings})
	for _, name := range names {
		ids = append(ids, deleteFile(t, p, name))
	}
	return p, dir, user, ids
}

func deleteFile(t *testing.T, p *sdktest.Plugin, name string) (id string) {
	t.Helper()
	got := p.Call(t.Context(), "delete_file", deleteFileArgs{Path: name, Recursive: true})
	if got.Error != nil {
		t.Fatal(message(got))
	}
	id, _ = got.Metadata["trash_id"].(string)
	return id
}

// age makes a thing in the trash older.
func age(t *testing.T, user, id string, by time.Duration) {
	t.Helper()
	path := filepath.Join(user, "trash", id, "info.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var info trash.Info
	if err := json.Unmarshal(data, &info); err != nil {
		t.Fatal(err)
	}
	info.Deleted = info.Deleted.Add(-by)
	if err := os.WriteFile(path, []byte(asJSON(t, info)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// restoreFileCalls is calls that set every argument.
func restoreFileCalls(id string) []restoreFileArgs {
	return []restoreFileArgs{{ID: id}, {Path: "a.txt", Overwrite: true}, {Path: "dir", Dest: "new/dir"}, {List: true}}
}

// A deleted file is restored as it was, and is then no longer in the trash.
func TestRestoreFile(t *testing.T) {
	files := map[string]string{"a.txt": "a\n", "dir/c.txt": "ccc\n", "dir/link": "-> c.txt", "link": "-> a.txt", "b.txt": "b\n"}
	p, dir, user, ids := withTrash(t, files, nil, "b.txt", "a.txt", "dir", "link")
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a.txt": "other\n"}
	for i, tt := range []struct {
		in             restoreFileArgs
		text           string
		summary, shown string // the time of deletion is TIME
		effects        []tool.Effect
		restored       map[string]string
	}{
		{
			in: restoreFileCalls(ids[0])[0], text: "Restored b.txt (1 file, 2 bytes)", effects: []tool.Effect{effect("b.txt", "create")}, restored: map[string]string{"b.txt": "b\n"},
			summary: "Restores ID to b.txt, deleted TIME: 1 file, 2 bytes",
			shown:   "Nothing is replaced.\nRestores: 2 bytes, sha256:0263829989b6fd954f72baaf2fc64bc2e2f01d692d4de72986ea808f6e99813f, text/plain; charset=utf-8",
		},
		{
			in: restoreFileCalls("")[1], text: "Restored a.txt (1 file, 2 bytes)", effects: []tool.Effect{effect("a.txt", "update")}, restored: map[string]string{"a.txt": "a\n"},
			summary: "Restores ID to a.txt, deleted TIME: 1 file, 2 bytes, replacing the existing file",
			shown: "a.txt is replaced, and cannot be restored.\nold: 6 bytes, sha256:7e4fa2eb8c7ac089739d5defc4489fad68a100d92082ca35c6b40a4524821f87, text/plain; charset=utf-8\n" +
				"Restores: 2 bytes, sha256:87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7, text/plain; charset=utf-8",
		},
		{
			in: restoreFileCalls("")[2], text: "Restored new/dir (1 directory, 1 file, 4 bytes, 1 links or special files)", effects: []tool.Effect{effect("new/dir", "create")},
			restored: map[string]string{"new/": "", "new/dir/": "", "new/dir/c.txt": "ccc\n", "new/dir/link": "-> c.txt"},
			summary:  "Restores ID to new/dir, deleted TIME: 1 directory, 1 file, 4 bytes, 1 links or special files", shown: "Nothing is replaced.\nc.txt  4\nlink  symlink",
		},
		{
			in: restoreFileArgs{Path: "link"}, text: "Restored link (0 files, 0 bytes, 1 links or special files)", effects: []tool.Effect{effect("link", "create")}, restored: map[string]string{"link": "-> a.txt"},
			summary: "Restores ID to link, deleted TIME: 0 files, 0 bytes, 1 links or special files", shown: "Nothing is replaced.\nRestores: a symbolic link",
		},
	} {
		preview, err := p.Preview(t.Context(), "restore_file", tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
			t.Fatalf("the preview has changed something (-want +got):\n%s", diff)
		}
		summary := regexp.MustCompile(`[-0-9]{10}T[0-9:]{8}Z`).ReplaceAllString(strings.ReplaceAll(preview.Summary, ids[i], "ID"), "TIME")
		if diff := cmp.Diff(tt.summary+"\n"+tt.shown, summary+"\n"+textOf(preview)); diff != "" {
			t.Errorf("preview (-want +got):\n%s", diff)
		}
		got := callWith(t, p, preview.Digest, "restore_file", tt.in)
		if got.Text() != tt.text {
			t.Errorf("restore_file = %q, %q, want %q", got.Text(), message(got), tt.text)
		}
		if diff := cmp.Diff(tt.effects, got.Effects); diff != "" {
			t.Errorf("effects (-want +got):\n%s", diff)
		}
		maps.Copy(want, tt.restored)
		if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
			t.Errorf("the files (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(map[string]string{"trash/": ""}, contents(t, user)); diff != "" {
		t.Errorf("the trash (-want +got):\n%s", diff)
	}
	if got := p.Call(t.Context(), "restore_file", restoreFileArgs{List: true}); got.Text() != "[the trash is empty]" {
		t.Errorf("the list is %q", got.Text())
	}
}

// Among items deleted at one path, the last one is restored first.
func TestRestoreFileTheLast(t *testing.T) {
	p, dir, user, ids := withTrash(t, map[string]string{"a.txt": "first\n"}, nil, "a.txt")
	age(t, user, ids[0], time.Hour)
	path := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(path, []byte("second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	deleteFile(t, p, "a.txt")
	for _, want := range []string{"second\n", "first\n"} {
		got := p.Call(t.Context(), "restore_file", restoreFileArgs{Path: path})
		if data, err := os.ReadFile(path); err != nil || string(data) != want {
			t.Errorf("restore_file = %q, %q, and there is %q, %v, want %q", got.Text(), message(got), data, err, want)
		}
		if more := strings.HasSuffix(got.Text(), "; 1 earlier items from this path are still in the trash"); more != (want == "second\n") {
			t.Errorf("restore_file = %q", got.Text())
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// An empty slot of a killed process hides nothing, and a later deletion removes it.
func TestEmptyPlacesInTheTrash(t *testing.T) {
	p, dir, user, ids := withTrash(t, map[string]string{"a.txt": "first\n", "b.txt": "b\n"}, nil, "a.txt")
	age(t, user, ids[0], 3*time.Hour)
	path := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(path, []byte("second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := deleteFile(t, p, "a.txt")
	place := filepath.Join(user, "trash", empty)
	if err := os.Rename(filepath.Join(place, "content"), filepath.Join(place, ".toolhost-AAAAAAAAAAAAAAAAAAAAAAAAAA.tmp")); err != nil {
		t.Fatal(err)
	}
	if got := p.Call(t.Context(), "restore_file", restoreFileArgs{List: true}); strings.Contains(got.Text(), empty) {
		t.Errorf("the list has what did not come there: %q", got.Text())
	}
	if got := p.Call(t.Context(), "restore_file", restoreFileArgs{Path: path}); got.Error != nil {
		t.Errorf("restore_file = %s", message(got))
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "first\n" {
		t.Errorf("what came back is %q, %v", data, err)
	}
	age(t, user, empty, 2*time.Hour)
	deleteFile(t, p, "b.txt")
	if _, err := os.Stat(place); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the empty place is still there: %v", err)
	}
}

// The preview shows the item that is restored, and what it replaces.
func TestRestoreFileChangedSincePreview(t *testing.T) {
	for _, meddle := range []func(dir, user, id string) error{
		func(dir, _, _ string) error {
			return os.WriteFile(filepath.Join(dir, "a.txt"), []byte("theirs"), 0o600)
		},
		func(_, user, id string) error {
			return os.WriteFile(filepath.Join(user, "trash", id, "content"), []byte("b\n"), 0o600)
		},
	} {
		p, dir, user, ids := withTrash(t, map[string]string{"a.txt": "a\n"}, nil, "a.txt")
		in := restoreFileArgs{ID: ids[0], Overwrite: true}
		preview, err := p.Preview(t.Context(), "restore_file", in)
		if err != nil {
			t.Fatal(err)
		}
		if err := meddle(dir, user, ids[0]); err != nil {
			t.Fatal(err)
		}
		if got := callWith(t, p, preview.Digest, "restore_file", in); got.Error == nil || got.Error.Code != tool.Conflict {
			t.Errorf("restore_file = %q, %q, want a conflict", got.Text(), message(got))
		}
		if got := callWith(t, p, nil, "restore_file", in); got.Error != nil {
			t.Errorf("without the digest: %s, so the test shows nothing", message(got))
		}
	}
}

func TestRestoreFileRefused(t *testing.T) {
	p, dir, _, ids := withTrash(t, map[string]string{"a.txt": "a\n", "dir/c.txt": "c\n", "there": "x\n", ".git/hooks/": ""}, nil, "a.txt", "dir")
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := contents(t, dir)
	for _, tt := range []struct {
		name string
		in   restoreFileArgs
		err  string
		hint string // how it begins
	}{
		{"nothing said", restoreFileArgs{}, "invalid_argument: neither id nor path is given, expected one of the two", "in the trash, the last first:\n" + ids[1] + "  dir  (directory, 1 file, 2 bytes, deleted "},
		{"both said", restoreFileArgs{ID: ids[0], Path: "a.txt"}, "invalid_argument: id and path are both given; expected one of the two", ""},
		{"never deleted", restoreFileArgs{Path: "none"}, "not_found: The trash has nothing from none", "in the trash, the last first:\n" + ids[1] + "  dir"},
		{"no such id", restoreFileArgs{ID: "../x"}, "not_found: The trash has no item with the id ../x", "in the trash, the last first:\n" + ids[1] + "  dir"},
		{"taken", restoreFileArgs{Path: "a.txt"}, "failed: Failed to write file: file exists", "set overwrite to replace it"},
		{"directory over a file", restoreFileArgs{Path: "dir", Dest: "there", Overwrite: true}, "failed: Failed to write file: file exists", "a directory does not replace a file"},
		{"into a directory", restoreFileArgs{Path: "a.txt", Dest: "new/"}, "invalid_argument: new/ ends in /, so it names a directory, but a file is expected", "use the path of the file"},
		{"outside", restoreFileArgs{Path: "dir", Dest: "../x"}, "permission_denied: Path not allowed by security policy: ../x", "use a path relative"},
		{"hook", restoreFileArgs{Path: "a.txt", Dest: ".git/hooks/x"}, "permission_denied: Path not allowed by security policy: .git/hooks/x", "it is protected"},
		{"was outside", restoreFileArgs{Path: "../x"}, "permission_denied: Path not allowed by security policy: ../x", "use a path relative"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := p.Preview(t.Context(), "restore_file", tt.in)
			got := p.Call(t.Context(), "restore_file", tt.in)
			if message(got) != tt.err || errorText(err) != tt.err {
				t.Fatalf("restore_file = %q, %q; the preview says %v; want %q", got.Text(), message(got), err, tt.err)
			}
			if !strings.HasPrefix(got.Error.Hint, tt.hint) {
				t.Errorf("hint = %q, want %q", got.Error.Hint, tt.hint)
			}
			if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
				t.Errorf("the files (-want +got):\n%s", diff)
			}
		})
	}
	list := p.Call(t.Context(), "restore_file", restoreFileArgs{List: true})
	if lines := strings.Split(list.Text(), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[1], ids[0]+"  a.txt  (file, 2 bytes, deleted ") {
		t.Errorf("the list is %q", list.Text())
	}
}

// An item from another workspace can be restored into this one, without revealing the other
// folder.
func TestRestoreFileOfAnotherWorkspace(t *testing.T) {
	_, dir, user, ids := withTrash(t, map[string]string{"a.txt": "a\n"}, nil, "a.txt")
	here := filetest.Tree(t, nil)
	p := sdktest.Start(t, newPlugin(), sdktest.Options{Context: tool.Context{Roots: []string{here}, UserDir: user}})
	got := p.Call(t.Context(), "restore_file", restoreFileArgs{ID: ids[0]})
	if got.Error == nil || got.Error.Code != tool.PermissionDenied || strings.Contains(got.Error.ModelText(), dir) {
		t.Errorf("restore_file = %q, %v", got.Text(), got.Error)
	}
	got = p.Call(t.Context(), "restore_file", restoreFileArgs{ID: ids[0], Dest: "b.txt"})
	if diff := cmp.Diff(map[string]string{"b.txt": "a\n"}, contents(t, here)); diff != "" {
		t.Errorf("restore_file = %q, %q (-want +got):\n%s", got.Text(), message(got), diff)
	}
}

// The trash is bounded by age, size and number; the last deleted item stays whatever its size.
// Without the bounds, all items stay.
func TestTrashBounds(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings map[string]any
		want     string // the remainder of three deletions
	}{
		{"no bound", nil, "abc"},
		{"items", map[string]any{"trash_items": 2}, "bc"},
		{"size", map[string]any{"trash_size": "20B"}, "bc"},
		{"less than one", map[string]any{"trash_size": "1B"}, "c"},
		{"age", map[string]any{"trash_age": "90m"}, "bc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, dir, user, _ := withTrash(t, map[string]string{"a": "aaaaaaaaaa", "b": "bbbbbbbbbb", "c": "cccccccccc"}, tt.settings)
			for i, name := range []string{"a", "b", "c"} {
				if id := deleteFile(t, p, name); i < 2 {
					age(t, user, id, time.Duration(2-i)*time.Hour)
				}
			}
			var left []string
			for name, content := range contents(t, user) {
				if strings.HasSuffix(name, "/content") {
					left = append(left, content[:1])
				}
			}
			slices.Sort(left)
			if got := strings.Join(left, ""); got != tt.want {
				t.Errorf("in the trash is %q, want %q", got, tt.want)
			}
			if len(contents(t, dir)) > 0 {
				t.Errorf("the workspace holds %v", contents(t, dir))
			}
		})
	}
}

// Items that no one can restore are removed as well, by the age in their id.
func TestTrashOfNobody(t *testing.T) {
	p, _, user, _ := withTrash(t, map[string]string{"a": "a"}, nil)
	for _, id := range []string{"20010203-040506-abc", "stray"} {
		if err := os.MkdirAll(filepath.Join(user, "trash", id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	id := deleteFile(t, p, "a")
	for name := range contents(t, user) {
		if name != "trash/" && !strings.HasPrefix(name, "trash/"+id) {
			t.Errorf("there is still %s", name)
		}
	}
}
