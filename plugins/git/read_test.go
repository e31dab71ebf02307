package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestStatus(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	if got := w.must("git_status", args{"path": "r"}); !strings.HasSuffix(got, "\nNothing to commit, clean\n") {
		t.Errorf("git_status = %q", got)
	}
	w.write(map[string]string{"r/a.txt": "x\n", "r/new/n.txt": "x", "r/new/m.txt": "x", "r/dir/c.txt": "x"})
	w.git("r", "mv", "dir/b.txt", "moved.txt")
	contains(t, w.must("git_status", args{"path": "r"}), ".M r/a.txt\nR. r/moved.txt (from r/dir/b.txt)\n.? r/dir/\n.? r/new/\n")
	contains(t, w.must("git_status", args{"path": "r/dir/c.txt", "untracked": "all"}), ".? r/dir/c.txt\n")
	got := structured[Status](w, "git_status", args{"path": "r", "untracked": "all", "limit": 2})
	if len(got.Files) != 2 || got.Total != 5 || got.NextCursor != "2" || got.Repo != "r" || got.Branch != "main" || got.Clean {
		t.Errorf("the first page is %+v", got)
	}
	got = structured[Status](w, "git_status", args{"path": "r", "untracked": "all", "limit": 9, "cursor": "2"})
	if len(got.Files) != 3 || got.NextCursor != "" {
		t.Errorf("the second page is %+v", got)
	}
	if got := structured[Status](w, "git_status", args{"path": "r/new", "untracked": "no"}); got.Total != 0 || got.Clean {
		t.Errorf("without untracked files, below r/new: %+v", got)
	}
	w.git("r", "checkout", "-q", "--detach")
	contains(t, w.must("git_status", args{"path": "r"}), "HEAD is detached at ")
	for _, in := range []args{{"path": "r", "limit": 0}, {"path": "r", "limit": 10_001}, {"path": "r", "cursor": "x"}, {"path": "r/.git"}} {
		w.refused("git_status", in, tool.InvalidArgument)
	}
	w.refused("git_status", args{"path": "none"}, tool.NotFound)
	w.refused("git_status", args{"path": "."}, tool.NotFound)
	w.refused("git_status", args{"path": "../"}, tool.PermissionDenied)
	w.refused("git_status", args{"path": "/etc"}, tool.PermissionDenied)
}

// The workspace itself can be the repository, with any names in it.
func TestNames(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.git("", "init", "-q", "-b", "main")
	w.git("", "config", "user.name", "Ada")
	w.git("", "config", "user.email", "ada@example.com")
	// The tools that change something try a third of the names each day, and in the end all at once.
	day := soak.Seed(t)
	var history strings.Builder
	for i, name := range names {
		fmt.Fprintf(&history, "commit refs/heads/main\ncommitter Ada <ada@example.com> 1767323045 +0000\ndata 1\nx\n")
		if !soak.Today(day, i, 3) {
			fmt.Fprintf(&history, "M 644 inline %s\ndata 2\nx\n\n", inQuotes(name))
		}
	}
	w.fastImport(w.dir, history.String())
	w.git("", "reset", "-q", "--hard")
	for i, name := range names {
		if soak.Today(day, i, 3) {
			w.write(map[string]string{name: "x\n"})
			w.must("git_add", args{"files": []string{name}})
			w.must("git_commit", args{"message": fmt.Sprintf("commit %d", i), "files": []string{name}})
		}
		w.write(map[string]string{name: "y\n"})
		got := structured[Diff](w, "git_diff", args{"files": []string{name}})
		if got.Total != 1 || string(got.Files[0].Path) != name || !strings.Contains(got.Patch, "+y\n") {
			t.Errorf("git_diff of %q = %+v", name, got)
		}
		if log := structured[Log](w, "git_log", args{"path": name}); len(log.Commits) != 1 {
			t.Errorf("git_log of %q = %+v", name, log)
		}
		if shown := structured[Shown](w, "git_show", args{"path": name, "content": true}); shown.Content != "x\n" {
			t.Errorf("git_show of %q = %+v", name, shown)
		}
		if blamed := structured[Blamed](w, "git_blame", args{"path": name}); len(blamed.Hunks) != 1 {
			t.Errorf("git_blame of %q = %+v", name, blamed)
		}
		if !soak.Today(day, i, 3) {
			continue
		}
		w.must("git_restore", args{"files": []string{name}})
		if got := w.read(name); got != "x\n" {
			t.Errorf("%q holds %q after git_restore", name, got)
		}
	}
	w.must("git_add", args{"files": names})
	w.must("git_restore", args{"files": names, "where": "both", "source": "HEAD"})
	for _, name := range names {
		if got := w.read(name); got != "x\n" {
			t.Errorf("%q holds %q after git_restore", name, got)
		}
	}
	contains(t, w.must("git_status", nil), "clean")
}

// inQuotes writes a name for git fast-import.
func inQuotes(name string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(name) + `"`
}

func TestDiff(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/a.txt": "one\nchanged\n", "r/dir/b.txt": "three\n"})
	w.git("r", "add", "dir")
	want := "diff --git a/r/a.txt b/r/a.txt\nindex 3c97d55..ad4c1c6 100644\n--- a/r/a.txt\n+++ b/r/a.txt\n@@ -1,2 +1,2 @@\n one\n-more\n+changed\n"
	got := structured[Diff](w, "git_diff", args{"path": "r"})
	if !strings.HasPrefix(got.Patch, "diff --git a/r/a.txt b/r/a.txt\nindex ") || strings.Split(got.Patch, "@@")[2] != strings.Split(want, "@@")[2] {
		t.Errorf("git_diff = %q, want %q", got.Patch, want)
	}
	if got.Total != 1 || got.Added != 1 || got.Deleted != 1 || got.Files[0] != (FileDiff{Path: "r/a.txt", Status: "M", Added: 1, Deleted: 1}) {
		t.Errorf("git_diff = %+v", got)
	}
	contains(t, w.must("git_diff", args{"path": "r", "staged": true}), "+three")
	contains(t, w.must("git_diff", args{"path": "r", "base": "HEAD", "stat": true}), "M +1 -1 r/a.txt\nM +1 -1 r/dir/b.txt\n2 files, +2 -2\n")
	contains(t, w.must("git_diff", args{"path": "r", "base": "HEAD", "files": []string{"r/dir"}, "stat": true}), "M +1 -1 r/dir/b.txt\n1 file, +1 -1\n")
	contains(t, w.must("git_diff", args{"path": "r", "base": "HEAD~1", "head": "HEAD"}), "+more")
	contains(t, w.must("git_diff", args{"path": "r", "base": "HEAD", "head": "HEAD"}), "No differences")
	w.refused("git_diff", args{"path": "r", "head": "HEAD"}, tool.InvalidArgument)
	w.refused("git_diff", args{"path": "r", "base": "HEAD", "head": "HEAD", "staged": true}, tool.InvalidArgument)
	w.refused("git_diff", args{"path": "r", "base": "HEAD:a.txt"}, tool.NotFound)
	w.refused("git_diff", args{"path": "r", "base": "none"}, tool.NotFound)
	w.refused("git_diff", args{"path": "r", "files": []string{"elsewhere"}}, tool.InvalidArgument)
	w.refused("git_diff", args{"path": "r", "files": []string{""}}, tool.InvalidArgument)
	w.refused("git_diff", args{"path": "r", "files": []string{"r/.git/config"}}, tool.InvalidArgument)
	for _, cursor := range []string{"x", "5", "-1-0123456789abcdef", "5-x"} {
		w.refused("git_diff", args{"path": "r", "cursor": cursor}, tool.InvalidArgument)
	}
	// A diff of conflict resolutions applies in the workspace, at the paths that its names lead
	// to.
	if err := os.WriteFile(filepath.Join(w.dir, "p"), []byte(got.Patch), 0o600); err != nil {
		t.Fatal(err)
	}
	w.git("", "apply", "--check", "-R", "p")
}

// A long diff is returned in parts that form the whole, of one state.
func TestDiffInParts(t *testing.T) {
	w := newWorkspace(t, started{budget: 4 * tool.KiB})
	w.repo("r")
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "line \"%d\"\t<%d>\n", i, i*i)
	}
	w.write(map[string]string{"r/a.txt": b.String(), "r/dir/b.txt": strings.Repeat("ü", 3000)})
	want := strings.ReplaceAll(strings.ReplaceAll(w.git("r", "diff", "--no-color"), "a/", "a/r/"), "b/", "b/r/")
	want = strings.ReplaceAll(strings.ReplaceAll(want, "a/r/dir/b/r/", "a/r/dir/b."), "dir/b.", "dir/b.") + "\n"
	in := args{"path": "r"}
	var whole strings.Builder
	first := ""
	for n := range 100 {
		got := w.call("git_diff", in)
		if got.Error != nil {
			t.Fatal(got.Error)
		}
		if len(got.Structured) > 4<<10 {
			t.Errorf("part %d has %d bytes, more than fit", n, len(got.Structured))
		}
		d := structured[Diff](w, "git_diff", in)
		whole.WriteString(d.Patch)
		if d.NextCursor == "" {
			break
		}
		if in["cursor"] = d.NextCursor; n == 0 {
			first = string(d.NextCursor)
		}
	}
	if added := strings.Count(whole.String(), "\n+line "); added != 1000 || !strings.Contains(whole.String(), strings.Repeat("ü", 3000)) {
		t.Errorf("the parts have %d lines of 1000, and %d bytes of %d", added, whole.Len(), len(want))
	}
	w.write(map[string]string{"r/a.txt": "other\n" + b.String()})
	w.refused("git_diff", args{"path": "r", "cursor": first}, tool.Conflict)
	w.git("r", "checkout", "-q", ".")
	w.refused("git_diff", args{"path": "r", "cursor": first}, tool.Conflict)
}

func TestShow(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	contains(t, w.must("git_show", args{"path": "r"}), "Author: Ada <ada@example.com>", "    second\n", "    with a body\n", "+more\n")
	contains(t, w.must("git_show", args{"path": "r", "rev": "HEAD~1"}), "    first\n", "new file mode 100644", "+two\n")
	if got := structured[Shown](w, "git_show", args{"path": "r/dir", "rev": "HEAD~1"}); got.Total != 1 || got.Files[0].Path != "r/dir/b.txt" {
		t.Errorf("git_show of a directory = %+v", got)
	}
	if got := w.must("git_show", args{"path": "r/a.txt", "rev": "HEAD~1", "content": true}); got != "one\n" {
		t.Errorf("the file held %q", got)
	}
	w.git("r", "tag", "-a", "-m", "a tag", "v1")
	contains(t, w.must("git_show", args{"path": "r", "rev": "v1"}), "second")
	w.write(map[string]string{"r/bin": "a\x00b"})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "binary")
	if got := structured[Shown](w, "git_show", args{"path": "r/bin", "content": true}); !got.Binary || got.Bytes != 3 || got.Content != "" {
		t.Errorf("a binary file is %+v", got)
	}
	w.refused("git_show", args{"path": "r", "content": true}, tool.InvalidArgument)
	w.refused("git_show", args{"path": "r/dir", "content": true}, tool.InvalidArgument)
	w.refused("git_show", args{"path": "r/none", "content": true}, tool.NotFound)
	long := strings.Repeat("a line of text\n", 10_000)
	w.write(map[string]string{"r/long": long})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "long")
	in, whole := args{"path": "r/long", "content": true}, ""
	for range 10 {
		got := structured[Shown](w, "git_show", in)
		whole += got.Content
		if in["cursor"] = got.NextCursor; got.NextCursor == "" {
			break
		}
	}
	if whole != long {
		t.Errorf("the parts have %d bytes of %d", len(whole), len(long))
	}
}

func TestBlame(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/a.txt": "one\nmore\nnot committed\n"})
	got := structured[Blamed](w, "git_blame", args{"path": "r/a.txt"})
	if len(got.Hunks) != 3 || got.Hunks[0].Summary != "first" || got.Hunks[1].Summary != "second" || strings.Trim(got.Hunks[2].Commit, "0") != "" || got.Hunks[2].Lines[0] != "not committed" {
		t.Errorf("git_blame = %+v", got)
	}
	contains(t, w.must("git_blame", args{"path": "r/a.txt", "lines": "2", "rev": "HEAD"}), "     2  more\n")
	for lines, want := range map[string]int{"1-2": 2, "2-": 2, "3": 1} {
		if got := structured[Blamed](w, "git_blame", args{"path": "r/a.txt", "lines": lines}); len(got.Hunks) != want {
			t.Errorf("git_blame of %s = %+v", lines, got)
		}
	}
	for _, lines := range []string{"0", "x", "3-2", "-1", "1-x", "9-"} {
		w.refused("git_blame", args{"path": "r/a.txt", "lines": lines}, tool.InvalidArgument)
	}
	w.refused("git_blame", args{"path": "r"}, tool.InvalidArgument)
	contains(t, w.refused("git_blame", args{"path": "r/none"}, tool.NotFound), "There is no r/none in that commit")
	w.refused("git_blame", args{"path": "r/a.txt", "rev": "-x"}, tool.InvalidArgument)
	w.refused("git_blame", args{"path": "r/a.txt", "cursor": "1"}, tool.InvalidArgument)
	w.write(map[string]string{"r/minified": strings.Repeat("x", 3<<20) + "\nsecond\n"})
	w.git("r", "add", "minified")
	w.git("r", "commit", "-qm", "minified")
	if got := structured[Blamed](w, "git_blame", args{"path": "r/minified", "lines": "1-2"}); len(got.Hunks) != 1 || len(got.Hunks[0].Lines) != 2 || got.Hunks[0].Lines[1] != "second" {
		t.Errorf("a line of 3 MiB is in %d hunks", len(got.Hunks))
	}
	var long strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&long, "this is line %d\n", i)
	}
	w.write(map[string]string{"r/long": long.String()})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "long")
	in, lines := args{"path": "r/long"}, 0
	for range 10 {
		got := structured[Blamed](w, "git_blame", in)
		for _, h := range got.Hunks {
			if h.First != lines+1 {
				t.Fatalf("line %d follows line %d", h.First, lines)
			}
			lines += len(h.Lines)
		}
		if in["cursor"] = got.NextCursor; got.NextCursor == "" {
			break
		}
	}
	if lines != 5000 {
		t.Errorf("the parts have %d lines of 5000", lines)
	}
}

// A path that is misspelt is not one without changes.
func TestMisspelt(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("r", "rm", "-q", "dir/b.txt")
	w.git("r", "commit", "-qm", "gone")
	for name, in := range map[string]args{
		"git_status": {"path": "r/none.txt"}, "git_log": {"path": "r/none.txt"}, "git_diff": {"path": "r", "files": []string{"r/none.txt"}},
		"git_blame": {"path": "r/none.txt"},
	} {
		w.refused(name, in, tool.NotFound)
	}
	contains(t, w.refused("git_diff", args{"path": "r", "files": []string{"r/a.txt", "r/none.txt"}, "stat": true}, tool.NotFound), "There is no r/none.txt")
	// A deleted file has a history.
	contains(t, w.must("git_log", args{"path": "r/dir/b.txt"}), "gone")
	contains(t, w.must("git_diff", args{"path": "r", "base": "HEAD~1", "files": []string{"r/dir/b.txt"}}), "-two")
	for _, property := range []string{"author", "grep", "since", "until"} {
		for _, text := range []string{"a\x00b", strings.Repeat("x", 200_000)} {
			contains(t, w.refused("git_log", args{"path": "r", property: text}, tool.InvalidArgument), property+" is longer than 4096 bytes or contains control characters")
		}
	}
	w.write(map[string]string{"r/a.txt": "x\n"})
	w.refused("git_stash", args{"path": "r", "action": "push", "message": "a\x00b"}, tool.InvalidArgument)
}

// A repository without a branch has an empty list, in JSON too.
func TestEmptyLists(t *testing.T) {
	w := newWorkspace(t, started{})
	w.git("", "init", "-q", "r")
	for _, name := range []string{"git_branch", "git_stash"} {
		if got := w.call(name, args{"path": "r"}); strings.Contains(string(got.Structured), "null") || !strings.Contains(string(got.Structured), "[]") {
			t.Errorf("%s = %s", name, got.Structured)
		}
	}
}

// The patch for files in conflict is git's own: alone and next to another change, whole and in
// parts.
func TestDiffOfConflicts(t *testing.T) {
	w := newWorkspace(t, started{})
	w.git("", "init", "-q", "-b", "main") // names are then those of git
	w.git("", "config", "user.name", "Ada")
	w.git("", "config", "user.email", "ada@example.com")
	lines := func(of string) string { return strings.Repeat(of+" \"<line>\"\n", 100) }
	commit := func(text string) {
		w.write(map[string]string{"f": text})
		w.git("", "add", "-A")
		w.git("", "commit", "-qm", "commit")
	}
	w.write(map[string]string{"a": "a\n", "z": "z\n"})
	commit("base\n")
	w.git("", "checkout", "-qb", "other")
	commit(lines("other"))
	w.git("", "checkout", "-q", "main")
	commit(lines("main"))
	if _, err := w.tryGit("", "merge", "-q", "other"); err == nil {
		t.Fatal("the merge has no conflicts")
	}
	check := func(want ...FileDiff) {
		t.Helper()
		patch := w.git("", "diff") + "\n"
		contains(t, patch, "diff --cc f\n", "++<<<<<<<", "\n +main ", "\n+ other ")
		for _, budget := range []tool.ByteSize{64 * tool.KiB, 4 * tool.KiB} {
			w.start(started{budget: budget})
			got := structured[Diff](w, "git_diff", nil)
			if fmt.Sprint(got.Files) != fmt.Sprint(want) || got.Total != len(want) {
				t.Errorf("the files are %+v, want %+v", got.Files, want)
			}
			var whole strings.Builder
			whole.WriteString(got.Patch)
			for n := 0; got.NextCursor != "" && n < 100; n++ {
				got = structured[Diff](w, "git_diff", args{"cursor": got.NextCursor})
				whole.WriteString(got.Patch)
			}
			if whole.String() != patch {
				t.Errorf("with %d bytes the patch is\n%s\nwant\n%s", budget, whole.String(), patch)
			}
		}
	}
	conflict := FileDiff{Path: "f", Status: "U", Added: 103}
	check(conflict)
	contains(t, w.must("git_diff", args{"stat": true}), "U +103 -0 f\n1 file, ")
	w.write(map[string]string{"a": "changed\n", "z": "changed\n"})
	check(FileDiff{Path: "a", Status: "M", Added: 1, Deleted: 1}, conflict, FileDiff{Path: "z", Status: "M", Added: 1, Deleted: 1})
}

// A patch of files in conflict names them relative to the workspace, as every other,
// also where git knows no prefix: in the headings of combined and of unmerged files.
func TestDiffOfConflictsBelow(t *testing.T) {
	for _, repo := range []string{"r", "r/ä \"q\""} {
		w := newWorkspace(t, started{})
		w.write(map[string]string{repo + "/d/f": "base\n", repo + "/ö": "base\n"})
		w.git(repo, "init", "-q", "-b", "main")
		w.git(repo, "config", "user.name", "Ada")
		w.git(repo, "config", "user.email", "ada@example.com")
		commit := func(text string) {
			w.write(map[string]string{repo + "/d/f": text, repo + "/ö": text})
			w.git(repo, "add", "-A")
			w.git(repo, "commit", "-qm", "commit")
		}
		commit("base\ndiff --cc x\n")
		w.git(repo, "checkout", "-qb", "other")
		commit("other\ndiff --cc x\n")
		w.git(repo, "checkout", "-q", "main")
		commit("main\ndiff --cc x\n")
		if _, err := w.tryGit(repo, "merge", "-q", "other"); err == nil {
			t.Fatal("the merge has no conflicts")
		}
		patch := structured[Diff](w, "git_diff", args{"path": repo}).Patch
		staged := structured[Diff](w, "git_diff", args{"path": repo, "staged": true}).Patch
		for _, name := range []string{repo + "/d/f", repo + "/ö"} {
			contains(t, "\n"+patch, "\ndiff --cc "+quotedPath(name)+"\n")
			contains(t, "\n"+staged, "\n* Unmerged path "+name+" (both modified)\n")
		}
		contains(t, patch, "  diff --cc x\n")
	}
}

// TestDiffOfOneSide: if one side deleted the file, the patch tells which one, and shows the
// changes of the other. Other conflicts without a combined diff are named.
func TestDiffOfOneSide(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.kindsOfConflicts()
	if _, err := w.tryGit("r", "merge", "-q", "other"); err == nil {
		t.Fatal("git merges without conflicts")
	}
	for _, budget := range []tool.ByteSize{64 * tool.KiB, 2 * tool.KiB} {
		w.start(started{budget: budget})
		var patch strings.Builder
		for cursor := sdk.Cursor(""); ; {
			got := structured[Diff](w, "git_diff", args{"path": "r", "cursor": cursor})
			patch.WriteString(got.Patch)
			if cursor = got.NextCursor; cursor == "" {
				break
			}
		}
		contains(t, patch.String(), "* Unmerged path r/ours (deleted by them)\ndiff --git a/r/ours b/r/ours\n", "\n-2\n+mine\n",
			"* Unmerged path r/theirs (deleted by us)\ndiff --git a/r/theirs b/r/theirs\n", "\n-2\n+other\n",
			"* Unmerged path r/moved (both deleted)\n", "* Unmerged path r/here (added by us)\n", "* Unmerged path r/elsewhere (added by them)\n", "diff --cc r/both\n")
		for _, name := range []string{"ours", "theirs", "moved", "here"} {
			if n := strings.Count(patch.String(), "* Unmerged path r/"+name+" "); n != 1 {
				t.Errorf("%s is named %d times", name, n)
			}
		}
	}
	contains(t, w.must("git_diff", args{"path": "r", "files": []string{"r/ours"}}), "(deleted by them)", "+mine")
	contains(t, w.must("git_diff", args{"path": "r", "staged": true}), "* Unmerged path r/ours (deleted by them)\n", "* Unmerged path r/both (both modified)\n")
}

// quotedPath is a path as git quotes it.
func quotedPath(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		switch {
		case c == '"':
			b.WriteString(`\"`)
		case c >= 0x80:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	if b.String() == path {
		return path
	}
	return `"` + b.String() + `"`
}
