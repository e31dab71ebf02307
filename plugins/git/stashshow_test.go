package main

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestStashShow shows a stash in parts, without sensitive and forbidden files.
func TestStashShow(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/.env": "KEY=old\n", "r/private": "old\n"})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "third")
	w.write(map[string]string{"r/a.txt": strings.Repeat("a line of some length\n", 500), "r/.env": "KEY=new\n", "r/private": "secret\n", "r/new.txt": "untracked content\n"})
	w.git("r", "stash", "push", "-q", "--include-untracked")
	w.must("git_stash", args{"path": "r", "action": "show"})
	w.start(started{budget: 8 * tool.KiB})
	patch, cursor, parts := "", "", 0
	for ; parts == 0 || cursor != ""; parts++ {
		got := structured[ShownStash](w, "git_stash", args{"path": "r", "action": "show", "cursor": cursor})
		patch, cursor = patch+got.Patch, string(got.NextCursor)
		if parts == 0 && got.LeftOut != 1 {
			t.Errorf("the first part leaves out %d files, want 1", got.LeftOut)
		}
		if cursor == "" && (got.Untracked == nil || len(got.Untracked.Files) != 1 || got.Untracked.Files[0].Path != "r/new.txt" || got.Untracked.Patch != "") {
			t.Errorf("the untracked files are %+v", got.Untracked)
		}
	}
	if strings.Count(patch, "+a line of some length\n") != 500 || strings.Contains(patch, "KEY=") || parts < 2 {
		t.Errorf("%d parts are\n%s", parts, patch)
	}
	w.forbidding(started{}, w.dir+"/r/private")
	text := w.must("git_stash", args{"path": "r", "action": "show"})
	silent(t, "git_stash", strings.ReplaceAll(text, "KEY=", ""))
	contains(t, text, "1 forbidden file", "A +1 -0 r/new.txt")
	contains(t, w.refused("git_stash", args{"path": "r", "action": "show", "stash": 1}, tool.NotFound), "no stash 1")
}
