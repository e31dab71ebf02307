package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestPickAndRevert compares the tools with git itself: the same trees, authors and
// messages.
func TestPickAndRevert(t *testing.T) {
	for _, tt := range []struct {
		name string
		tool string
		in   args
		git  []string
		said []string
	}{
		{"several", "git_cherry_pick", args{"revs": []string{"beside~1", "ahead", "beside"}}, []string{"cherry-pick", "beside~1", "ahead", "beside"}, []string{"Applies 3 commits to branch main", " Bob: beside: more\n"}},
		{"a range", "git_cherry_pick", args{"revs": []string{"main..beside"}}, []string{"cherry-pick", "main..beside"}, []string{"Applies 2 commits"}},
		{"another root", "git_cherry_pick", args{"revs": []string{"root"}}, []string{"cherry-pick", "root"}, []string{"Applies 1 commit"}},
		{"revert", "git_revert", args{"revs": []string{"HEAD"}}, []string{"revert", "--no-edit", "HEAD"}, []string{"Reverts 1 commit on branch main", "r/a.txt"}},
		{"revert a range", "git_revert", args{"revs": []string{"main~1..beside"}}, []string{"revert", "--no-edit", "main~1..beside"}, []string{"Reverts 2 commits"}},
		{"revert a merge", "git_revert", args{"revs": []string{"merged"}, "mainline": 2}, []string{"revert", "--no-edit", "-m2", "merged"}, []string{"Reverts 1 commit"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{})
			w.branches()
			switch tt.name {
			case "revert a range":
				w.git("r", "merge", "-q", "beside")
			case "revert a merge":
				w.git("r", "merge", "-q", "-m", "merged", "beside~1")
				w.git("r", "tag", "merged")
			case "another root":
				w.git("r", "checkout", "-q", "--orphan", "root")
				w.git("r", "rm", "-qrf", ".")
				w.write(map[string]string{"r/root.txt": "root\n"})
				w.git("r", "add", "-A")
				w.git("r", "commit", "-qm", "root")
				w.git("r", "checkout", "-q", "main")
			}
			tt.in["path"] = "r"
			head := w.git("r", "rev-parse", "HEAD")
			p, text := w.preview(tt.tool, tt.in)
			contains(t, text, tt.said...)
			if got := w.approved(tt.tool, tt.in, p); got.Error != nil {
				t.Fatal(got.Error)
			}
			const format = "--format=%T %an %ae %ad %B"
			ours := w.git("r", "log", format, head+"..HEAD")
			if got := w.git("r", "status", "--porcelain"); got != "" {
				t.Errorf("afterwards, git status says %q", got)
			}
			w.git("r", "reset", "-q", "--hard", head)
			w.git("r", tt.git...)
			theirs := w.git("r", "log", format, head+"..HEAD")
			if tt.tool == "git_revert" { // git's own dates are those of the tests
				ours, theirs = withoutDates(ours), withoutDates(theirs)
			}
			if ours != theirs {
				t.Errorf("the tool makes\n%s\ngit makes\n%s", ours, theirs)
			}
		})
	}
}

// withoutDates removes the words of a date from the first line of each commit.
func withoutDates(log string) string {
	var lines []string
	for line := range strings.Lines(log) {
		if tree, rest, ok := strings.Cut(line, "ada@example.com "); ok {
			_, rest, _ = strings.Cut(rest, "+0000 ")
			line = tree + rest
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

// TestPickRefused: a call that cannot succeed does nothing.
func TestPickRefused(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.branches()
	w.git("r", "checkout", "-qb", "merged", "beside")
	w.git("r", "merge", "-q", "-m", "merged", "ahead")
	w.git("r", "checkout", "-q", "main")
	before := w.git("r", "rev-parse", "HEAD")
	for _, tt := range []struct {
		tool string
		in   args
		code tool.Code
		said string
	}{
		{"git_cherry_pick", args{}, tool.InvalidArgument, "revs is empty"},
		{"git_cherry_pick", args{"revs": []string{"beside", "none"}}, tool.NotFound, "There is no commit none"},
		{"git_cherry_pick", args{"revs": []string{"--abort"}}, tool.InvalidArgument, `begins with "-"`},
		{"git_cherry_pick", args{"revs": []string{"merged"}}, tool.InvalidArgument, "is a merge"},
		{"git_revert", args{"revs": []string{"merged"}, "mainline": 3}, tool.InvalidArgument, "has no parent 3"},
		{"git_cherry_pick", args{"revs": []string{"beside"}, "mainline": 2}, tool.InvalidArgument, "has no parent 2"},
		{"git_cherry_pick", args{"revs": []string{"main...beside"}}, tool.InvalidArgument, "is not a range of commits"},
		{"git_cherry_pick", args{"revs": []string{"beside..beside"}}, tool.NotFound, "There are no commits in beside..beside"},
		{"git_cherry_pick", args{"revs": []string{"main"}}, tool.Conflict, "would change nothing: second"},
		{"git_revert", args{"abort": true}, tool.NotFound, "No revert is in progress"},
	} {
		tt.in["path"] = "r"
		contains(t, w.refused(tt.tool, tt.in, tt.code), tt.said)
	}
	w.write(map[string]string{"r/a.txt": "changed\n"})
	contains(t, w.refused("git_revert", args{"path": "r", "revs": []string{"HEAD"}}, tool.Conflict), "would be overwritten: r/a.txt")
	w.git("r", "config", "--unset", "user.email")
	contains(t, w.refused("git_revert", args{"path": "r", "revs": []string{"HEAD"}}, tool.Failed), "no identity")
	w.commits("r", make([]string, maxPicked+1)...)
	w.git("r", "config", "user.email", "ada@example.com")
	contains(t, w.refused("git_revert", args{"path": "r", "revs": []string{before + "..main"}}, tool.InvalidArgument), "more than 100 commits")
}

// TestPickConflicts: the commits before the conflict are made. git_commit concludes the
// one in conflict, with its author, and abort undoes only this one.
func TestPickConflicts(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.branches()
	in := args{"path": "r", "revs": []string{"beside~1", "against", "ahead"}}
	p, text := w.preview("git_cherry_pick", in)
	contains(t, text, "stops at "+w.git("r", "rev-parse", "against")[:10]+" with conflicts in 1 file", "against [conflict: the call stops here]", "ahead [not applied]", "  UU r/a.txt")
	got := w.approved("git_cherry_pick", in, p)
	if got.Error == nil || got.Error.Code != tool.Conflict {
		t.Fatalf("git_cherry_pick = %v", got.Error)
	}
	contains(t, got.Error.ModelText(), "1 file: r/a.txt", "1 of 3 commits are done", "call it again with the revs "+w.git("r", "rev-parse", "ahead")[:10])
	contains(t, w.must("git_status", args{"path": "r"}), "In progress: cherry-pick", "UU r/a.txt (conflict)")
	done := w.git("r", "rev-parse", "HEAD")
	if got := w.git("r", "log", "-1", "--format=%an %s"); got != "Bob beside: more" {
		t.Errorf("the first commit is %q", got)
	}
	w.must("git_cherry_pick", args{"path": "r", "abort": true})
	if got := w.git("r", "status", "--porcelain") + w.git("r", "rev-parse", "HEAD"); got != done {
		t.Errorf("after the abort: %s, want %s", got, done)
	}
	in["revs"] = []string{"against", "ahead"}
	w.refused("git_cherry_pick", in, tool.Conflict)
	w.write(map[string]string{"r/a.txt": "resolved\n"})
	w.must("git_add", args{"files": []string{"r/a.txt"}})
	w.refused("git_commit", args{"files": []string{"r/a.txt"}, "message": "x"}, tool.Conflict)
	w.git("r", "config", "user.name", "Eve")
	_, text = w.preview("git_commit", args{"path": "r", "message": "against"})
	contains(t, text, "Author: Ada <", "Finishes a cherry-pick of "+w.git("r", "rev-parse", "against")[:10]+": against")
	w.must("git_commit", args{"path": "r", "message": "against"})
	if got := w.git("r", "log", "-1", "--format=%an %ad %cn %P"); got != "Ada "+w.git("r", "log", "-1", "--format=%ad", "against")+" Eve "+done {
		t.Errorf("the commit is %q", got)
	}
	contains(t, w.must("git_status", args{"path": "r"}), "clean")
	w.must("git_cherry_pick", args{"path": "r", "revs": []string{"ahead"}})

	// git itself finishes what the tool began.
	w.git("r", "reset", "-q", "--hard", done)
	w.refused("git_revert", args{"path": "r", "revs": []string{"main~2", "HEAD"}}, tool.Conflict)
	contains(t, w.must("git_status", args{"path": "r"}), "In progress: revert")
	w.git("r", "checkout", "--ours", ".")
	w.write(map[string]string{"r/a.txt": "reverted\n"})
	w.git("r", "add", "-A")
	w.git("r", "revert", "--continue")
	contains(t, w.git("r", "log", "-1", "--format=%B"), "Revert \"", "This reverts commit ")
	// The tool does not undo what git itself began over several commits.
	if _, err := w.tryGit("r", "cherry-pick", "against", "ahead"); err == nil {
		t.Fatal("git picks without conflicts")
	}
	contains(t, w.refused("git_cherry_pick", args{"path": "r", "abort": true}, tool.Conflict), "outside of this tool", "git cherry-pick --abort")
	// A link in the place of a file that the tool writes leads nowhere.
	w.git("r", "cherry-pick", "--abort")
	w.git("r", "reset", "-q", "--hard", done)
	for _, name := range []string{"CHERRY_PICK_HEAD", "MERGE_MSG"} {
		w.link(filepath.Join(w.dir, "target"), "r/.git/"+name)
	}
	w.write(map[string]string{"target": "kept\n"})
	w.call("git_cherry_pick", args{"path": "r", "revs": []string{"against"}})
	if got := w.read("target"); got != "kept\n" {
		t.Errorf("the target of the link is %q", got)
	}
}
