package main

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestBranchAndSwitch(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	contains(t, w.must("git_branch", args{"path": "r", "name": "feature", "create": true, "base": "HEAD~1"}), "Created the branch feature at ")
	contains(t, w.must("git_branch", args{"path": "r"}), "  feature ", "* main ")
	if got := structured[Branches](w, "git_branch", args{"path": "r", "limit": 1}); len(got.Branches) != 1 || got.Total != 2 || got.NextCursor != "1" {
		t.Errorf("the first page is %+v", got)
	}
	if got := structured[Branches](w, "git_branch", args{"path": "r", "cursor": "1"}); len(got.Branches) != 1 || got.Branches[0].Name != "main" || !got.Branches[0].Current {
		t.Errorf("the second page is %+v", got)
	}
	if got := structured[Branches](w, "git_branch", args{"path": "r", "name": "feature"}); got.Total != 1 {
		t.Errorf("one branch is %+v", got)
	}
	w.git("r", "update-ref", "refs/remotes/origin/theirs", "HEAD")
	w.git("r", "config", "remote.origin.url", "https://127.0.0.1:1/x")
	w.git("r", "config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
	contains(t, w.must("git_branch", args{"path": "r", "remotes": true}), "origin/theirs")
	w.refused("git_branch", args{"path": "r", "name": "feature", "create": true}, tool.Conflict)
	w.refused("git_branch", args{"path": "r", "create": true}, tool.InvalidArgument)
	w.refused("git_branch", args{"path": "r", "base": "main"}, tool.InvalidArgument)
	for _, name := range []string{"-x", "a..b", "a b", "HEAD", "refs/heads/x", "x.lock", "@{-1}", ""} {
		w.refused("git_branch", args{"path": "r", "name": name, "create": true}, tool.InvalidArgument)
		w.refused("git_switch", args{"path": "r", "branch": name, "create": true}, tool.InvalidArgument)
	}
	contains(t, w.must("git_switch", args{"path": "r", "branch": "feature"}), "Switched to the branch feature at ", ": 1 file changed")
	contains(t, w.must("git_switch", args{"path": "r", "branch": "new", "create": true, "base": "main"}), "the new branch new")
	contains(t, w.must("git_switch", args{"path": "r", "branch": "HEAD~1", "detach": true}), "(detached HEAD)")
	w.git("r", "config", "remote.\x1b[31m.url", "x") // no revision can have this name
	contains(t, w.must("git_switch", args{"path": "r", "branch": "theirs"}), "the new branch theirs, which tracks origin/theirs")
	if got := w.git("r", "rev-parse", "--abbrev-ref", "theirs@{upstream}"); got != "origin/theirs" {
		t.Errorf("theirs tracks %s", got)
	}
	w.write(map[string]string{"r/a.txt": "mine\n"})
	contains(t, w.refused("git_switch", args{"path": "r", "branch": "feature"}, tool.Conflict), "would be overwritten")
	w.refused("git_switch", args{"path": "r", "branch": "none"}, tool.NotFound)
	w.refused("git_switch", args{"path": "r", "branch": "x", "create": true, "detach": true}, tool.InvalidArgument)
	w.refused("git_switch", args{"path": "r", "branch": "x", "base": "main"}, tool.InvalidArgument)
}

// Git does what the preview shows, regardless of how a repository names its remotes and
// branches.
func TestSwitchToABranchOfAnOddRemote(t *testing.T) {
	for _, remote := range []string{"--create=other", "-Cother", "--detach", "-x", "origin"} {
		w := newWorkspace(t, started{})
		w.repo("r")
		w.git("r", "update-ref", "refs/remotes/"+remote+"/theirs", "HEAD~1")
		w.git("r", "update-ref", "refs/heads/"+remote+"/theirs", "HEAD") // which may be meant, too
		w.git("r", "config", "remote."+remote+".url", "https://127.0.0.1:1/x")
		w.git("r", "config", "remote.other.url", "https://127.0.0.1:2/x")
		w.git("r", "config", "remote.other.fetch", "+refs/heads/*:refs/remotes/"+remote+"/*")
		want := w.git("r", "rev-parse", "HEAD~1")
		contains(t, w.must("git_switch", args{"path": "r", "branch": "theirs"}), "the new branch theirs, which tracks "+remote+"/theirs at "+want[:10])
		if got := w.git("r", "rev-parse", "HEAD", "--symbolic-full-name", "HEAD"); got != want+"\nrefs/heads/theirs" {
			t.Errorf("with the remote %s, HEAD is %s, want %s", remote, got, want)
		}
		if got := w.git("r", "config", "branch.theirs.remote") + " " + w.git("r", "config", "branch.theirs.merge"); got != remote+" refs/heads/theirs" {
			t.Errorf("with the remote %s, the branch tracks %s", remote, got)
		}
	}
}
