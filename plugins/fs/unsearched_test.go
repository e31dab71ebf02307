package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/search"
	"github.com/toolhost/toolhost/sdk/tool"
)

// A search says what it has not searched, and what to do, whether it has found
// something elsewhere or not.
func TestSearchContentTellsWhatItDidNotSearch(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{
		"long/a.txt":  strings.Repeat("x", search.MaxLine) + "needle\nb\n",
		"turned/a.c":  strings.Repeat("x\n", headSize) + "\x00\nneedle\n",
		"large/a.txt": "needle\n",
		"plain/a.txt": "needle\n",
	})
	deep := filepath.Join(dir, "deep", strings.Repeat("d/", 256))
	err := errors.Join(os.Truncate(filepath.Join(dir, "large/a.txt"), search.MaxWhole+1), os.MkdirAll(deep, 0o755), os.WriteFile(deep+"/a.txt", []byte("needle\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	const line = "[not searched: what is beyond the first 16 MiB of 1 line in long/a.txt; read_file with column reads it]"
	runCases(t, dir, 8*tool.KiB, []toolCase{
		{tool: "search_content", name: "a long line", in: searchContentArgs{Pattern: "needle", Path: "long"}, want: "[nothing found]\n" + line, facts: map[string]any{"incomplete": true}},
		{tool: "search_content", name: "the cut is no end", in: searchContentArgs{Pattern: `x{3}$|x\b`, Path: "long"}, want: "[nothing found]\n" + line},
		{tool: "search_content", name: "another line", in: searchContentArgs{Pattern: "needle|b", Path: "long"}, want: "long/a.txt\n2: b\n" + line},
		{tool: "search_content", name: "in the part that is searched", in: searchContentArgs{Pattern: "x", Path: "long", Mode: "count"}, want: "long/a.txt: 1", facts: map[string]any{"incomplete": nil}},
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
			want: "[nothing found]\n[Directory is nested deeper than 256 levels: deep" + strings.Repeat("/d", 12) + "/…" + strings.Repeat("d/", 36) + "d; use a path further down to reach it]",
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

// What is told does not depend on the order in which it was found.
func TestUnsearchedIsInOrder(t *testing.T) {
	leftOut := map[string]string{"": "50 sensitive files left out", "d0/03": "2 sensitive files left out", "d1": "at least 4 sensitive files left out"}
	for until, want := range map[string]string{
		"": "[d0/00]\n[d0/03]\n[d0/06]\n[and 47 more like it; search below a narrower path]\n[not searched, since it cannot be read: d0/00, d0/03, d0/06 and 47 more]\n" +
			"[not searched: what is beyond the first 16 MiB of 1225 lines in d0/00, d0/03, d0/06 and 47 more; read_file with column reads it]",
		"d0/03": "[d0/00]\n[d0/03]\n[not searched, since it cannot be read: d0/00, d0/03]\n" +
			"[not searched: what is beyond the first 16 MiB of 3 lines in d0/00, d0/03; read_file with column reads it]",
		"d1": "[d0/00]\n[d0/03]\n[d0/06]\n[and more like it; search below a narrower path]\n[not searched, since it cannot be read: d0/00, d0/03, d0/06 and more]\n" +
			"[not searched: what is beyond the first 16 MiB of 18 lines in d0/00, d0/03, d0/06 and more; read_file with column reads it]",
	} {
		for seed := range uint64(20) {
			u := &unsearched{}
			for _, i := range rand.New(rand.NewPCG(seed, 1)).Perm(50) {
				name := fmt.Sprintf("d%d/%02d", i%3, i)
				u.add(unread, gap{rel: name, name: name})
				u.add(longLine, gap{rel: name, name: name, lines: i})
				u.add(failed, gap{rel: name, note: name})
				u.add(secret, gap{rel: name})
			}
			if until != "" {
				u.until(until)
			}
			if diff := cmp.Diff(want, u.notes().text(10_000)); diff != "" {
				t.Fatalf("until %q, seed %d (-want +got):\n%s", until, seed, diff)
			}
			if got := u.leftOut(); got != leftOut[until] {
				t.Fatalf("until %q, seed %d: %q, want %q", until, seed, got, leftOut[until])
			}
		}
	}
}

// broken is a file that cannot be read to its end.
type broken struct{ io.ReadSeeker }

func (broken) Read([]byte) (int, error) { return 0, unix.EIO }

func TestSearchContentTellsWhatCannotBeRead(t *testing.T) {
	in := searchContentArgs{Pattern: "needle", Mode: "content", MaxResults: 1}
	pattern, err := in.compile()
	if err != nil {
		t.Fatal(err)
	}
	report := newReport(in, 4<<10)
	s := &contentSearch{args: in, pattern: pattern, report: report}
	s.file(s.searcher(t.Context()), broken{}, 10, gap{rel: "a.txt", name: "a.txt"})
	s.found.into(report)
	if got, want := report.result().Text(), "[nothing found]\n[not searched, since it cannot be read: a.txt]"; got != want {
		t.Errorf("the result is %q, want %q", got, want)
	}
}

func TestShortened(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"short", 5, "short"},
		{"abcdefghij", 9, "abc…hij"},
		{"ééééé", 9, "é…é"},
	} {
		if got := shortened(tt.text, tt.most); got != tt.want {
			t.Errorf("shortened(%q, %d) = %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}
