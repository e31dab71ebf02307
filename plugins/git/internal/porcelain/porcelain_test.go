package porcelain_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
)

// nul writes texts as records.
func nul(records ...string) string { return strings.Join(records, "\x00") + "\x00" }

const id = "8d8a3b4bffbd02d97b521cee233f92ccdf8bac48"

// readStatus reads a status in pieces of the given size.
func readStatus(text string, piece int) ([]porcelain.Entry, porcelain.Branch, error) {
	var entries []porcelain.Entry
	s := porcelain.NewStatus(func(e porcelain.Entry) { entries = append(entries, e) })
	for text != "" {
		n := min(piece, len(text))
		_, _ = s.Write([]byte(text[:n]))
		text = text[n:]
	}
	return entries, s.Branch, s.Close()
}

func TestStatus(t *testing.T) {
	text := nul(
		"# branch.oid "+id, "# branch.head ma in", "# branch.upstream origin/main", "# branch.ab +3 -2", "# stash 4", "# later words",
		"1 .M N... 100644 100644 100644 "+id+" "+id+" a b\nc", "2 R. N... 100644 100644 100644 "+id+" "+id+" R100 to", "from here",
		"2 C. N... 100644 100644 100644 "+id+" "+id+" C75 copy", "of", "u UU SCMU 100644 100644 100644 100644 "+id+" "+id+" "+id+" both", "? new/",
	)
	want := []porcelain.Entry{
		{Kind: porcelain.Changed, Index: ".", Worktree: "M", Submodule: "N...", Path: "a b\nc"},
		{Kind: porcelain.Renamed, Index: "R", Worktree: ".", Submodule: "N...", Path: "to", From: "from here"},
		{Kind: porcelain.Renamed, Index: "C", Worktree: ".", Submodule: "N...", Path: "copy", From: "of"},
		{Kind: porcelain.Unmerged, Index: "U", Worktree: "U", Submodule: "SCMU", Path: "both"},
		{Kind: porcelain.Untracked, Index: ".", Worktree: "?", Submodule: "N...", Path: "new/"},
	}
	for _, piece := range []int{1, 7, len(text)} {
		got, branch, err := readStatus(text, piece)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("in pieces of %d: %v (-want +got):\n%s", piece, err, diff)
		}
		wantBranch := porcelain.Branch{Commit: id, Name: "ma in", Upstream: "origin/main", Tracked: true, Ahead: 3, Behind: 2, Stashes: 4}
		if diff := cmp.Diff(wantBranch, branch); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	_, branch, err := readStatus(nul("# branch.oid (initial)", "# branch.head (detached)"), 10)
	if diff := cmp.Diff(porcelain.Branch{}, branch); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestStatusMistakes(t *testing.T) {
	for name, text := range map[string]string{
		"no end":         "? a",
		"unknown":        nul("x a"),
		"short":          nul("1"),
		"few words":      nul("1 .M N..."),
		"half a rename":  nul("2 R. N... 100644 100644 100644 " + id + " " + id + " R100 to"),
		"one letter":     nul("1 M N... 100644 100644 100644 " + id + " " + id + " a"),
		"no number":      nul("# branch.ab +x -1"),
		"no stash":       nul("# stash x"),
		"few of three":   nul("u UU N... 100644"),
		"letters of u":   nul("u U N... 1 2 3 4 " + id + " " + id + " " + id + " a"),
		"endless record": strings.Repeat("x", porcelain.MaxRecord+1),
	} {
		if got, _, err := readStatus(text, 100_000); err == nil {
			t.Errorf("%s: %+v, want an error", name, got)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, tt := range []struct {
		record string
		want   porcelain.Setting
		ok     bool
	}{
		{"core.bare\nfalse", porcelain.Setting{Section: "core", Name: "bare", Value: "false"}, true},
		{"filter.A.b=c.Clean\nx\ny", porcelain.Setting{Section: "filter", Subsection: "A.b=c", Name: "clean", Value: "x\ny"}, true},
		{"a.b", porcelain.Setting{Section: "a", Name: "b", Value: "true"}, true},
		{"a", porcelain.Setting{}, false},
		{".a", porcelain.Setting{}, false},
		{"a.", porcelain.Setting{}, false},
	} {
		got, ok := porcelain.ParseConfig(tt.record)
		if diff := cmp.Diff(tt.want, got); diff != "" || ok != tt.ok {
			t.Errorf("%q: %t (-want +got):\n%s", tt.record, ok, diff)
		}
	}
	if got := (porcelain.Setting{Section: "a", Subsection: "B.c", Name: "d"}).Key(); got != "a.B.c.d" {
		t.Errorf("the key is %s", got)
	}
}

func TestCommits(t *testing.T) {
	text := nul(id, id+" "+id, "Ada", "ada@x", "2026-01-02T03:04:05Z", "Bea", "one\nmore\n\nbody\n\nend\n", "",
		id, "", "", "", "", "", "", "")
	var got []porcelain.Commit
	r := porcelain.NewCommits(func(c porcelain.Commit) error {
		got = append(got, c)
		return nil
	})
	_, _ = r.Write([]byte(text))
	want := []porcelain.Commit{
		{ID: id, Parents: []string{id, id}, Author: "Ada", Email: "ada@x", Date: "2026-01-02T03:04:05Z", Committer: "Bea", Subject: "one more", MessageBody: "body\n\nend"},
		{ID: id, Parents: []string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" || r.Close() != nil {
		t.Errorf("%v (-want +got):\n%s", r.Close(), diff)
	}
}

func TestChanges(t *testing.T) {
	text := nul(
		":100644 100644 1 2 R100", "from", "to", ":100644 100644 1 2 M", "a", ":000000 100644 0 2 A", "bin", ":000000 000000 0 0 U", "both",
		"1\t2\t", "from", "to", "3\t4\ta", "-\t-\tbin",
	)
	c := porcelain.NewChanges(0)
	_, _ = c.Write([]byte(text))
	want := []porcelain.Change{
		{Status: "R", Mode: "100644", ID: "2", Path: "to", From: "from", Added: 1, Deleted: 2},
		{Status: "M", Mode: "100644", ID: "2", Path: "a", Added: 3, Deleted: 4},
		{Status: "A", Mode: "100644", ID: "2", Path: "bin", Binary: true},
		{Status: "U", Mode: "000000", ID: "0", Path: "both"},
	}
	if diff := cmp.Diff(want, c.Files); diff != "" || c.Close() != nil || c.Total != 4 || c.Added != 4 || c.Deleted != 6 {
		t.Errorf("%v, %d, +%d -%d (-want +got):\n%s", c.Close(), c.Total, c.Added, c.Deleted, diff)
	}
	var patch strings.Builder
	whole := porcelain.NewChanges(0)
	whole.Patch = func(part []byte) error {
		if len(whole.Files) != 4 {
			t.Errorf("the patch comes after %d files", len(whole.Files))
		}
		patch.Write(part)
		return nil
	}
	for _, part := range strings.SplitAfter(text+"\x00diff --git\n\x00+x\n", "t") {
		_, _ = whole.Write([]byte(part))
	}
	if diff := cmp.Diff(want, whole.Files); diff != "" || whole.Close() != nil || patch.String() != "diff --git\n\x00+x\n" {
		t.Errorf("%v, the patch %q (-want +got):\n%s", whole.Close(), patch.String(), diff)
	}
	few := porcelain.NewChanges(1)
	_, _ = few.Write([]byte(text))
	if len(few.Files) != 1 || few.Total != 4 || few.Added != 4 {
		t.Errorf("%d kept of %d, +%d; want 1 of 4, +4", len(few.Files), few.Total, few.Added)
	}
	for _, text := range []string{nul(":1 2 3"), nul("x"), nul("1\t2"), nul("a\tb\tc"), nul(":1 2 3 4 M"), nul(":1 2 3 4 ", "x"), "x"} {
		c := porcelain.NewChanges(0)
		_, _ = c.Write([]byte(text))
		if c.Close() == nil {
			t.Errorf("%q: %+v, want an error", text, c.Files)
		}
	}
}

func TestBlame(t *testing.T) {
	text := id + " 1 1 2\nauthor Ada\nauthor-mail <ada@x>\nauthor-time 0\nsummary one two\nfilename a\n\tfirst\ttab\n" + id + " 2 2\n\t\n"
	commit := &porcelain.BlamedCommit{ID: id, Author: "Ada", Summary: "one two", Date: time.Unix(0, 0).UTC()}
	for _, piece := range []int{1, 5, len(text)} {
		var got []porcelain.Line
		b := porcelain.NewBlame(func(l porcelain.Line) { got = append(got, l) })
		for rest := text; rest != ""; {
			n := min(piece, len(rest))
			_, _ = b.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		want := []porcelain.Line{{Number: 1, Commit: commit, Text: "first\ttab"}, {Number: 2, Commit: commit}}
		if diff := cmp.Diff(want, got); diff != "" || b.Close() != nil {
			t.Errorf("in pieces of %d: %v (-want +got):\n%s", piece, b.Close(), diff)
		}
	}
	for _, text := range []string{"x\n", "x y z\n", id + " 1 1 1\n", id + " 1 1 1\nauthor-time x\n", "x", strings.Repeat("x", porcelain.MaxRecord+1)} {
		b := porcelain.NewBlame(func(porcelain.Line) {})
		_, _ = b.Write([]byte(text))
		if b.Close() == nil {
			t.Errorf("%.40q: no error", text)
		}
	}
}

// Of a change from several states nothing is read, and no patch.
func TestCombinedChanges(t *testing.T) {
	c := porcelain.NewChanges(0)
	c.Patch = func(part []byte) error { return fmt.Errorf("the patch %q", part) }
	_, err := c.Write([]byte(nul("::100644 100644 100644 1 2 0 MM", "f", ":100644 100644 1 0 M", "g", "1\t1\tg", "") + "diff --git a/g b/g\n"))
	if closed := c.Close(); err != nil || !errors.Is(closed, porcelain.ErrCombined) || len(c.Files) != 0 {
		t.Errorf("%+v, %v, %v, want %v", c.Files, err, closed, porcelain.ErrCombined)
	}
}

// An error of the function ends the reading.
func TestRecordsEnd(t *testing.T) {
	n := 0
	r := porcelain.NewRecords(func([]byte) error {
		n++
		return fmt.Errorf("no %d", n)
	})
	_, _ = r.Write([]byte("a\x00b\x00"))
	_, _ = r.Write([]byte("c\x00"))
	if err := r.Close(); n != 1 || err == nil || err.Error() != "no 1" {
		t.Errorf("called %d times, %v", n, err)
	}
}
