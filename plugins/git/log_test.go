package main

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestLog(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("r", "checkout", "-qb", "side", "HEAD~1")
	w.write(map[string]string{"r/side.txt": "x"})
	w.git("r", "add", "-A")
	w.git("r", "-c", "user.name=Bea", "-c", "user.email=bea@example.com", "commit", "-qm", "on the side", "--author=Bea <bea@example.com>", "--date=2020-01-01T00:00:00Z")
	w.git("r", "checkout", "-q", "main")
	subjects := func(in args) string {
		in["path"] = "r"
		var all []string
		for _, c := range structured[Log](w, "git_log", in).Commits {
			all = append(all, string(c.Subject))
		}
		return strings.Join(all, ", ")
	}
	for _, tt := range []struct {
		in   args
		want string
	}{
		{args{}, "second, first"},
		{args{"rev": "side"}, "on the side, first"},
		{args{"rev": "main..side"}, "on the side"},
		{args{"rev": "side..."}, "on the side, second"},
		{args{"rev": "..side"}, "on the side"},
		{args{"rev": ":/sec"}, "second, first"},
		{args{"rev": "@{-1}"}, "on the side, first"},
		{args{"rev": "HEAD^{/first}"}, "first"},
		{args{"rev": "side", "author": "BEA"}, "on the side"},
		{args{"grep": "WITH A BODY"}, "second"},
		{args{"since": "2026-01-03"}, ""},
		{args{"until": "2025-01-01"}, ""},
		{args{"limit": 1}, "second"},
	} {
		if got := subjects(tt.in); got != tt.want {
			t.Errorf("git_log(%v) = %q, want %q", tt.in, got, tt.want)
		}
	}
	first := structured[Log](w, "git_log", args{"path": "r", "limit": 1})
	w.git("r", "commit", "-q", "--allow-empty", "-m", "third")
	if got := structured[Log](w, "git_log", args{"path": "r", "limit": 1, "cursor": first.NextCursor}); len(got.Commits) != 1 || got.Commits[0].Subject != "first" || got.NextCursor != "" {
		t.Errorf("the second page is %+v", got)
	}
	if c := first.Commits[0]; c.Author != "Ada" || c.Email != "ada@example.com" || c.Date != "2026-01-02T03:04:05Z" && c.Date != "2026-01-02T03:04:05+00:00" || c.Body != "with a body" || len(c.Parents) != 0 {
		t.Errorf("the commit is %+v", c)
	}
	w.git("r", "merge", "-q", "--no-ff", "-m", "merge", "side")
	if got := structured[Log](w, "git_log", args{"path": "r", "limit": 1}); len(got.Commits) != 1 || len(got.Commits[0].Parents) != 2 {
		t.Errorf("a merge is %+v", got)
	}
	if got := structured[Shown](w, "git_show", args{"path": "r", "rev": "side"}); len(got.Commit.Parents) != 1 {
		t.Errorf("git_show = %+v", got.Commit)
	}
	if got := structured[Log](w, "git_log", args{"path": "r/dir"}); len(got.Commits) != 1 {
		t.Errorf("the log of a directory is %+v", got)
	}
	w.refused("git_log", args{"path": "r", "limit": 1001}, tool.InvalidArgument)
	for _, rev := range []string{"-1", "--all", "a\nb", "", strings.Repeat("x", 2000)} {
		if rev != "" {
			w.refused("git_log", args{"path": "r", "rev": rev}, tool.InvalidArgument)
		}
		w.refused("git_show", args{"path": "r", "rev": rev}, tool.InvalidArgument)
	}
	for _, cursor := range []string{"x", "0-abc", "1---all", "1-", "1-HEAD", "1:abc", "1"} {
		w.refused("git_log", args{"path": "r", "cursor": cursor}, tool.InvalidArgument)
	}
	w.refused("git_log", args{"path": "r", "rev": "none"}, tool.NotFound)
	w.git("", "init", "-q", "empty")
	contains(t, w.must("git_log", args{"path": "empty"}), "No commits")
	w.refused("git_show", args{"path": "empty"}, tool.NotFound)
}

// A path that history or the index alone has is not misspelt, even if nothing is found
// of it.
func TestPathsOfHistory(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/new.txt": "x"})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "third")
	w.remove("r/dir")
	for _, in := range []args{
		{"base": "HEAD~2", "head": "HEAD~1"},
		{"staged": true},
		{"staged": true, "base": "HEAD~1"},
	} {
		for _, stat := range []bool{false, true} {
			in["path"], in["stat"], in["files"] = "r", stat, []string{"r/dir/b.txt", "r/dir"}
			contains(t, w.must("git_diff", in), "No differences")
			in["files"] = []string{"r/dir/b.txt", "r/dir/none", "r/dir"}
			contains(t, w.refused("git_diff", in, tool.NotFound), "There is no r/dir/none")
			in["files"] = []string{"r/none"}
			contains(t, w.refused("git_diff", in, tool.NotFound), "There is no r/none")
		}
	}
	w.git("r", "commit", "-qam", "fourth")
	w.write(map[string]string{"r/new.txt": "y"})
	w.git("r", "commit", "-qam", "fifth")
	contains(t, w.must("git_log", args{"path": "r/dir/b.txt"}), "fourth", "first")
	for _, in := range []args{{"author": "Bea"}, {"grep": "none"}, {"since": "2027-01-01"}, {"until": "2020-01-01"}, {"rev": "HEAD~1..HEAD"}} {
		in["path"] = "r/dir/b.txt"
		contains(t, w.must("git_log", in), "No commits")
	}
	w.refused("git_log", args{"path": "r/none"}, tool.NotFound)
}

// A log does not continue after a missing commit.
func TestCursorOfALostCommit(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.refused("git_log", args{"path": "r", "cursor": "1-" + strings.Repeat("1", 40)}, tool.NotFound)
}

// A log reads only the part of the history that it shows, not a possible million commits.
func TestLogReadsWhatItShows(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	for range 8 {
		w.git("r", "commit", "-q", "--allow-empty", "-m", "another")
	}
	root := strings.TrimSpace(w.git("r", "rev-parse", "HEAD~9"))
	w.remove("r/.git/objects/" + root[:2] + "/" + root[2:])
	if got := structured[Log](w, "git_log", args{"path": "r", "limit": 5}); len(got.Commits) != 5 || got.NextCursor == "" {
		t.Errorf("the log without its oldest commit is %+v", got)
	}
}

// A branch that is damaged is not one without commits.
func TestLogOfADamagedBranch(t *testing.T) {
	w := newWorkspace(t, started{})
	for _, branch := range []string{"fix-SSL", "TLS", "certificate"} { // which other complaints of git have in them
		w.git("", "init", "-q", "-b", branch, "of-"+branch)
		contains(t, w.must("git_log", args{"path": "of-" + branch}), "No commits")
	}
	for name, branch := range map[string]string{"garbage": "xyz\n", "empty": "", "missing": strings.Repeat("1", 40) + "\n"} {
		w.git("", "init", "-q", "-b", "main", name)
		contains(t, w.must("git_log", args{"path": name}), "No commits")
		w.write(map[string]string{name + "/.git/refs/heads/main": branch})
		contains(t, w.refused("git_log", args{"path": name}, tool.Failed), "is damaged")
	}
}

// A call can name several files, with git_log, git_status and git_show as with git_diff.
func TestSeveralFiles(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	for _, name := range []string{"a", "b", "c"} {
		w.write(map[string]string{"r/" + name: name + "\n"})
		w.git("r", "add", name)
		w.git("r", "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "-qm", "add "+name)
		w.write(map[string]string{"r/" + name: name + name + "\n"})
	}
	files := []string{"r/a", "r/c"}
	logged := structured[Log](w, "git_log", args{"path": "r", "files": files})
	if len(logged.Commits) != 2 || logged.Commits[0].Subject != "add c" || logged.Commits[1].Subject != "add a" {
		t.Errorf("git_log of two files = %v", logged.Commits)
	}
	if got := structured[Status](w, "git_status", args{"path": "r", "files": files}); len(got.Files) != 2 || got.Files[1].Path != "r/c" {
		t.Errorf("git_status of two files = %v", got.Files)
	}
	if got := structured[Shown](w, "git_show", args{"path": "r", "files": files}); len(got.Files) != 1 || got.Files[0].Path != "r/c" {
		t.Errorf("git_show of two files = %v", got.Files)
	}
}
