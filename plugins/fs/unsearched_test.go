package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/search"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/tool"
)

// A search names the files that it has not searched, and a remedy, whether or not it has found
// matches elsewhere.
func TestSearchContentTellsWhatItDidNotSearch(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{
		"long/a.txt":  strings.Repeat("x", search.MaxLine) + "needle\nb\n",
		"turned/a.c":  strings.Repeat("x\n", textfile.HeadSize) + "\x00\nneedle\n",
		"large/a.txt": "needle\n",
		"plain/a.txt": "needle\n",
	})
	deep := filepath.Join(dir, "deep", strings.Repeat("d/", 256))
	err := errors.Join(os.Truncate(filepath.Join(dir, "large/a.txt"), search.MaxWhole+1), os.MkdirAll(deep, 0o755), os.WriteFile(deep+"/a.txt", []byte("needle\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	const line = "[not searched: everything beyond the first 16 MiB of 1 line in long/a.txt; read_file with column reads it]"
	runCases(t, dir, 8*tool.KiB, []toolCase{
		{tool: "search_content", name: "a long line", in: searchContentArgs{Pattern: "needle", Path: "long"}, want: "[nothing found]\n" + line, facts: map[string]any{"incomplete": true}},
		{tool: "search_content", name: "the cut is no end", in: searchContentArgs{Pattern: `x{3}$|x\b`, Path: "long"}, want: "[nothing found]\n" + line},
		{tool: "search_content", name: "another line", in: searchContentArgs{Pattern: "needle|b", Path: "long"}, want: "long/a.txt\n2: b\n" + line},
		{tool: "search_content", name: "in the part that is searched", in: searchContentArgs{Pattern: "x", Path: "long", OutputMode: "count"}, want: "long/a.txt: 1", facts: map[string]any{"incomplete": nil}},
		{
			tool: "search_content", name: "a large file", in: searchContentArgs{Pattern: "needle", Path: "large", Multiline: true},
			want: "[nothing found]\n[not searched, since multiline is for files up to 16 MiB: large/a.txt; search without it]",
		},
		{
			tool: "search_content", name: "a zero byte", in: searchContentArgs{Pattern: "needle", Path: "turned"},
			want: "[nothing found; binary files, which are not searched: 1]\n[not searched from the line on that has a zero byte: turned/a.c; it is not all text]",
		},
		{
			tool: "search_content", name: "a deep directory", in: searchContentArgs{Pattern: "needle", Path: "deep"},
			want: "[nothing found]\n[Directory is nested deeper than 256 levels: deep" + strings.Repeat("/d", 12) + "/…" + strings.Repeat("d/", 36) + "d; use the path of a directory below it]",
		},
		{tool: "search_content", name: "all", in: searchContentArgs{Pattern: "needle", Path: "plain"}, want: "plain/a.txt\n1: needle", facts: map[string]any{"incomplete": nil}},
	})
}

// manyFiles makes a directory of so many empty files in another, in memory where
// that is possible: a disk takes its time.
func manyFiles(t *testing.T, n int) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "toolhost-test-") //nolint:usetesting // that one is on a disk
	if err != nil {
		dir = t.TempDir()
	} else {
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	big := filepath.Join(dir, "big")
	if err := os.Mkdir(big, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := unix.Mknod(fmt.Sprintf("%s/f%06d", big, i), unix.S_IFREG|0o644, 0); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
