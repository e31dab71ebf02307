package main

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// A list that ends too early is an error, not a shorter list.
func TestListsThatEndTooEarly(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("r", "branch", "other")
	w.git("r", "branch", "third", "HEAD~1")
	w.write(map[string]string{"r/a.txt": "changed\n"})
	w.git("r", "stash", "-q")
	w.pretend(`case " $* " in *" for-each-ref "* | *" --walk-reflogs "* | *" --name-only "*) git "$@" | head -c -3; exit ;; esac`)
	for _, call := range []struct {
		tool string
		in   args
	}{
		{"git_branch", args{"path": "r"}},
		{"git_stash", args{"path": "r"}},
		{"git_switch", args{"path": "r", "branch": "third"}},
	} {
		contains(t, w.refused(call.tool, call.in, tool.Failed), "The output of git is incomplete")
	}
}

// A failed lookup of a branch does not mean that no remote has the branch.
func TestSwitchWithoutAnAnswer(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("r", "remote", "add", "origin", "/nowhere")
	w.git("r", "update-ref", "refs/remotes/origin/theirs", "HEAD")
	w.pretend(`case " $* " in *" cat-file "*) asked=$(cat); case $asked in refs/remotes/*) kill -9 $$ ;; esac; echo "$asked" | git "$@"; exit ;; esac`)
	w.refused("git_switch", args{"path": "r", "branch": "theirs"}, tool.ResourceExhausted)
}
