package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// limited starts the plugin in a separate process, with this memory for it and for each git.
func (w *workspace) limited(memory tool.ByteSize) {
	w.Helper()
	options := sdktest.Options{
		Env: []string{"GIT_AS_PLUGIN=1"}, Config: sdk.Config{ScratchDir: w.scratch},
		Context: tool.Context{Roots: []string{w.dir}, MaxOutput: 64 * tool.KiB},
	}
	if !raced {
		options.Limits.Memory = memory
	}
	w.plugin = sdktest.StartBinary(w.TB, os.Args[0], options)
}

// A blob that is larger than the memory is listed, compared and shown in it.
func TestLargeBlob(t *testing.T) {
	t.Parallel()
	size := int64(soak.Rounds(320, 1024)) << 20
	w := newWorkspace(t, started{})
	w.repo("r")
	w.limited(256 * tool.MiB)
	large := filepath.Join(w.dir, "r", "large")
	if err := os.WriteFile(large, []byte("text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, size); err != nil {
		t.Fatal(err)
	}
	w.git("r", "-c", "core.bigFileThreshold=1m", "-c", "core.compression=1", "add", "large")
	contains(t, w.must("git_diff", args{"path": "r", "staged": true}), "Binary files /dev/null and b/r/large differ")
	w.must("git_commit", args{"path": "r", "message": "large"})
	if got := structured[Shown](w, "git_show", args{"path": "r/large", "content": true}); got.Bytes != size || !got.Binary {
		t.Errorf("git_show = %+v", got)
	}
	contains(t, w.must("git_show", args{"path": "r"}), "Binary files")
	contains(t, w.must("git_status", args{"path": "r"}), "clean")
}

// 100,000 files are listed in pages, and staged by their directory.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	files := soak.Rounds(10_000, 100_000)
	w := newWorkspace(t, started{})
	w.repo("r")
	w.limited(512 * tool.MiB) // as config.hcl gives it
	// Their names alone, in the index: nothing is written to the disk.
	blob := w.git("r", "rev-parse", "HEAD:a.txt")
	var index bytes.Buffer
	for i := range files {
		fmt.Fprintf(&index, "100644 %s\td%d/file number %d\x00", blob, i%100, i)
	}
	fill := exec.Command("git", "update-index", "-z", "--index-info")
	fill.Dir, fill.Env, fill.Stdin = filepath.Join(w.dir, "r"), environment(w.scratch), &index
	if out, err := fill.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := structured[Status](w, "git_status", args{"path": "r", "limit": 10_000})
	if got.Total != files || len(got.Files) < 100 || got.NextCursor == "" {
		t.Errorf("%d of %d files are listed, then %q", len(got.Files), got.Total, got.NextCursor)
	}
	last := structured[Status](w, "git_status", args{"path": "r", "cursor": fmt.Sprint(files - 3)})
	if len(last.Files) != 3 || last.NextCursor != "" {
		t.Errorf("the last page is %+v", last)
	}
	d := structured[Diff](w, "git_diff", args{"path": "r", "staged": true, "stat": true})
	if d.Total != files || d.NextCursor == "" {
		t.Errorf("%d files of the diff, then %q", d.Total, d.NextCursor)
	}
	contains(t, w.must("git_add", args{"files": []string{"r"}}), fmt.Sprintf("Staged %d files: ", files)) // none of them exists
}

// A diff of 5 MB is sent to the host as a whole, and its beginning is the result.
func TestDiffIsStreamed(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	var b strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&b, "this is line number %d of the file, %d\n", i, i*i)
	}
	w.write(map[string]string{"r/a.txt": b.String()})
	w.limited(256 * tool.MiB)
	var streamed, most int
	got := w.plugin.Run(t.Context(), tool.Call{ID: "tc_1", Tool: "git_diff", Arguments: encode(t, args{"path": "r"})}, tool.Sink{
		Chunk: func(c tool.Chunk) { streamed, most = streamed+len(c.Data), max(most, len(c.Data)) },
	})
	whole := len(w.git("r", "diff", "--src-prefix=a/r/", "--dst-prefix=b/r/")) + 1
	if got.Error != nil || streamed != whole || most > 1<<20 || len(got.Structured) > 64<<10 {
		t.Errorf("%v: %d bytes of %d are streamed, at most %d at once; the result has %d", got.Error, streamed, whole, most, len(got.Structured))
	}
}
