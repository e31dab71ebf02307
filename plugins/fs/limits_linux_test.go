package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/patch"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// A patch with the maximum number of files needs no more descriptors than the default limit.
func TestApplyPatchOfManyFiles(t *testing.T) {
	files := map[string]string{}
	var parts []string
	for i := range patch.MaxFiles {
		name := fmt.Sprintf("d%d/f%d", i%10, i)
		files[name] = "old\n"
		switch i % 3 {
		case 0:
			parts = append(parts, "*** Delete File: "+name+"\n")
		case 1:
			parts = append(parts, "*** Add File: new/"+name+"\n+new\n")
		default:
			parts = append(parts, "*** Update File: "+name+"\n-old\n+new\n")
		}
	}
	dir := filetest.Tree(t, files)
	p := sdktest.StartBinary(t, os.Args[0], sdktest.Options{
		Env: []string{"FS_AS_PLUGIN=1"}, Limits: sdktest.Limits{OpenFiles: 256}, Context: tool.Context{Roots: []string{dir}, UserDir: t.TempDir(), MaxOutput: 16 * tool.KiB},
	})
	in := applyPatchArgs{Patch: begin(parts...)}
	preview, err := p.Preview(t.Context(), "apply_patch", in)
	if err != nil {
		t.Fatal(err)
	}
	if got := callWith(t, p, preview.Digest, "apply_patch", in); got.Error != nil || len(got.Effects) != patch.MaxFiles {
		t.Fatalf("apply_patch = %q, %d effects", message(got), len(got.Effects))
	}
	if left := temporaries(t, dir); len(left) > 0 {
		t.Errorf("there is still %q", left)
	}
}

// A file that cannot grow further is unchanged, and no other file is left next to it.
func TestFileSizeLimit(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a.txt": "old\n"})
	p := sdktest.StartBinary(t, os.Args[0], sdktest.Options{
		Env: []string{"FS_AS_PLUGIN=1"}, Limits: sdktest.Limits{FileSize: 64 * tool.KiB}, Context: tool.Context{Roots: []string{dir}},
	})
	want := contents(t, dir)
	large := strings.Repeat("0123456789abcde\n", 8192)
	for name, in := range map[string]any{
		"write_file":  writeFileArgs{Path: "a.txt", Content: large},
		"edit_file":   editCall("a.txt", "old", large),
		"apply_patch": applyPatchArgs{Patch: begin("*** Add File: x/new\n+x\n", "*** Update File: a.txt\n-old\n+"+strings.ReplaceAll(strings.TrimSuffix(large, "\n"), "\n", "\n+")+"\n")},
	} {
		got := p.Call(t.Context(), name, in)
		if message(got) != "failed: Failed to write file: file too large" && message(got) != "failed: a.txt: Failed to write file: file too large; nothing was done" {
			t.Errorf("%s = %q, %q", name, got.Text(), message(got))
		}
	}
	got := p.Call(t.Context(), "write_file", writeFileArgs{Path: "x/y/new", Content: large})
	if message(got) != "failed: Failed to write file: file too large" {
		t.Errorf("write_file of a new file = %q, %q", got.Text(), message(got))
	}
	if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
		t.Errorf("the files (-want +got):\n%s", diff)
	}
}
