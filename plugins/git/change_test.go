package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// preview asks for the preview of a call.
func (w *workspace) preview(name string, in args) (p tool.Preview, text string) {
	w.Helper()
	p, err := w.plugin.Preview(w.Context(), name, in)
	if err != nil {
		w.Fatalf("the preview of %s(%v) = %v", name, in, err)
	}
	text = p.Summary + "\n"
	for _, c := range p.Content {
		text += string(c.Data)
	}
	return p, text
}

// approved makes a call as it was approved.
func (w *workspace) approved(name string, in args, p tool.Preview) tool.Result {
	w.Helper()
	note(name, encode(w, in))
	return w.plugin.Run(w.Context(), tool.Call{
		ID: "tc_1", Tool: name, Arguments: encode(w, in), Context: tool.Context{PreviewDigest: p.Digest},
	}, tool.Sink{})
}

func TestAdd(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/a.txt": "x\n", "r/new.txt": "x\n", "r/ignored": "x", "r/.gitignore": "ignored\n"})
	if err := os.Remove(filepath.Join(w.dir, "r/dir/b.txt")); err != nil {
		t.Fatal(err)
	}
	_, text := w.preview("git_add", args{"files": []string{"r"}})
	contains(t, text, "Stages 4 files in r", "D r/dir/b.txt", "? r/new.txt")
	contains(t, w.must("git_add", args{"path": "r", "files": []string{"r/a.txt", "r/dir"}}), "Staged 2 files: r/a.txt, r/dir/b.txt")
	if got := w.git("r", "diff", "--cached", "--name-status"); got != "M\ta.txt\nD\tdir/b.txt" {
		t.Errorf("staged is\n%s", got)
	}
	w.refused("git_add", args{"files": []string{"r/a.txt"}}, tool.NotFound)
	w.refused("git_add", args{"files": []string{"r/ignored"}}, tool.NotFound)
	// One that is misspelt is not passed over.
	contains(t, w.refused("git_add", args{"files": []string{"r/new.txt", "r/nwe.txt"}}, tool.NotFound), "There is no r/nwe.txt")
	contains(t, w.refused("git_commit", args{"message": "x", "files": []string{"r/new.txt", "r/nwe.txt"}}, tool.NotFound), "There is no r/nwe.txt")
	if got := w.git("r", "diff", "--cached", "--name-status"); got != "M\ta.txt\nD\tdir/b.txt" {
		t.Errorf("staged is\n%s", got)
	}
	w.refused("git_add", args{"files": []string{}}, tool.InvalidArgument)
	w.git("r", "init", "-q", "inner")
	w.git("r/inner", "commit", "-q", "--allow-empty", "-m", "x")
	w.write(map[string]string{"r/.gitattributes": "*.bin filter=lfs\n", "r/x.bin": "large"})
	contains(t, w.must("git_add", args{"files": []string{"r"}}), "without the filter that .gitattributes sets, such as git-lfs: r/x.bin", "nested repositories left out: r/inner/")
	contains(t, w.git("r", "status", "--porcelain"), "?? inner/")
}

// Of a file that was renamed, the old name is staged as well: git shows one change if
// the new one was announced (git add --intent-to-add).
func TestAddRenamed(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("r", "mv", "a.txt", "moved.txt")
	w.git("r", "reset", "-q")
	w.git("r", "add", "--intent-to-add", "moved.txt")
	contains(t, w.must("git_add", args{"files": []string{"r"}}), "Staged 2 files")
	if got := w.git("r", "status", "--porcelain"); got != "R  a.txt -> moved.txt" {
		t.Errorf("the status is\n%s", got)
	}
	_, text := w.preview("git_stash", args{"path": "r", "action": "push"})
	contains(t, text, "changes to 2 files", "D. r/a.txt", "A. r/moved.txt")
}

// A path with a colon is one, and no list.
func TestCommitInAFolderWithAColon(t *testing.T) {
	for _, name := range []string{"a:b", `a:\"b`} {
		w := newWorkspace(t, started{})
		w.repo(name)
		w.write(map[string]string{name + "/a.txt": "changed\n"})
		p, _ := w.preview("git_commit", args{"message": "x", "files": []string{name + "/a.txt"}})
		if got := w.approved("git_commit", args{"message": "x", "files": []string{name + "/a.txt"}}, p); got.Error != nil {
			t.Error(got.Error)
		}
	}
}

func TestCommit(t *testing.T) {
	w := newWorkspace(t, started{})
	w.git("", "init", "-q", "-b", "main", "r")
	w.write(map[string]string{"r/a.txt": "one\n", "r/b.txt": "two\n"})
	w.must("git_add", args{"files": []string{"r/a.txt"}})
	contains(t, w.refused("git_commit", args{"path": "r", "message": "x"}, tool.Failed), "There is no identity for commits")
	w.git("r", "config", "user.name", "Ada")
	w.git("r", "config", "user.email", "ada@example.com")
	p, text := w.preview("git_commit", args{"path": "r", "message": "first\n\nmore"})
	contains(t, text, "Commits 1 file (+1 -0) on the new branch main: first", "Author: Ada <ada@example.com>", "    more\n", "+one\n", "b/r/a.txt")
	if got := w.git("r", "count-objects"); got != "1 objects, 4 kilobytes" {
		t.Errorf("the preview has left objects: %s", got)
	}
	if got := w.approved("git_commit", args{"path": "r", "message": "first\n\nmore"}, p); got.Error != nil {
		t.Fatal(got.Error)
	}
	if got := w.git("r", "log", "-1", "--format=%an %ae %cn %B", "--name-only"); got != "Ada ada@example.com Ada first\n\nmore\n\n\na.txt" {
		t.Errorf("the commit is %q", got)
	}
	// Other staged changes stay staged.
	w.write(map[string]string{"r/a.txt": "staged\n", "r/c/new.txt": "new\n"})
	w.git("r", "add", "a.txt")
	type committed struct {
		Commit string
		Files  int
	}
	made := structured[committed](w, "git_commit", args{"message": "  others \n\n\n", "files": []string{"r/b.txt", "r/c"}})
	if made.Commit != w.git("r", "rev-parse", "HEAD") || made.Files != 2 {
		t.Fatalf("%+v", made)
	}
	if got := w.git("r", "status", "--porcelain"); got != "M  a.txt" {
		t.Errorf("the status afterwards is %q", got)
	}
	if got := w.git("r", "show", "--format=%B", "--name-only"); got != "others\n\n\nb.txt\nc/new.txt" {
		t.Errorf("the commit is %q", got)
	}
	w.git("r", "mv", "c/new.txt", "moved.txt")
	w.must("git_commit", args{"message": "moved", "files": []string{"r/c", "r/moved.txt"}})
	if got := w.git("r", "status", "--porcelain"); got != "M  a.txt" {
		t.Errorf("the status afterwards is %q", got)
	}
	w.must("git_commit", args{"path": "r", "message": "staged"})
	contains(t, w.refused("git_commit", args{"path": "r", "message": "x"}, tool.Failed), "There is nothing to commit")
	contains(t, w.refused("git_commit", args{"message": "x", "files": []string{"r/a.txt"}}, tool.Failed), "There is nothing to commit")
	for _, message := range []string{"", " \n\t", "a\x00b", strings.Repeat("x", 70_000)} {
		w.refused("git_commit", args{"path": "r", "message": message}, tool.InvalidArgument)
	}
	w.git("r", "checkout", "-q", "--detach")
	w.write(map[string]string{"r/a.txt": "detached\n"})
	contains(t, w.must("git_commit", args{"path": "r", "message": "detached", "files": []string{"r/a.txt"}}), "the detached HEAD")
	w.start(started{settings: map[string]any{"author_name": "Robot", "author_email": "robot@example.com"}})
	w.write(map[string]string{"r/a.txt": "again\n"})
	w.must("git_commit", args{"message": "x", "files": []string{"r/a.txt"}})
	if got := w.git("r", "log", "-1", "--format=%an %ce"); got != "Robot robot@example.com" {
		t.Errorf("the commit is by %s", got)
	}
}

// Either the previewed change happens, or nothing does.
func TestPreviewsBind(t *testing.T) {
	for _, tt := range []struct {
		tool    string
		in      args
		changes func(w *workspace)
	}{
		{"git_commit", args{"path": "r", "message": "x"}, func(w *workspace) {
			w.write(map[string]string{"r/a.txt": "other\n"})
			w.git("r", "add", "a.txt")
		}},
		{"git_commit", args{"files": []string{"r/a.txt"}, "message": "x"}, func(w *workspace) { w.write(map[string]string{"r/a.txt": "other\n"}) }},
		{"git_commit", args{"path": "r", "message": "x"}, func(w *workspace) { w.git("r", "checkout", "-qb", "elsewhere") }},
		{"git_commit", args{"path": "r", "message": "x"}, func(w *workspace) { w.git("r", "config", "user.name", "Eve") }},
		{"git_commit", args{"path": "r", "message": "x"}, func(w *workspace) { w.git("r", "commit", "-qm", "another") }},
		{"git_restore", args{"files": []string{"r/dir/b.txt"}}, func(w *workspace) { w.write(map[string]string{"r/dir/b.txt": "much work\n"}) }},
		{"git_reset", args{"path": "r", "mode": "hard"}, func(w *workspace) { w.write(map[string]string{"r/dir/b.txt": "much work\n"}) }},
		{"git_reset", args{"path": "r", "rev": "HEAD~1"}, func(w *workspace) { w.git("r", "commit", "-qm", "another") }},
		{"git_stash", args{"path": "r", "action": "push"}, func(w *workspace) { w.write(map[string]string{"r/dir/b.txt": "much work\n"}) }},
		{"git_stash", args{"path": "r", "action": "pop"}, func(w *workspace) { w.git("r", "stash", "-q") }},
		{"git_stash", args{"path": "r", "action": "drop"}, func(w *workspace) { w.git("r", "stash", "-q") }},
		{"git_switch", args{"path": "r", "branch": "side"}, func(w *workspace) { w.git("r", "branch", "-qf", "side", "HEAD") }},
		{"git_branch", args{"path": "r", "name": "b", "create": true, "base": "side"}, func(w *workspace) { w.git("r", "branch", "-qf", "side", "HEAD") }},
		{"git_add", args{"files": []string{"r"}}, func(w *workspace) { w.write(map[string]string{"r/more.txt": "x"}) }},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{})
			w.repo("r")
			w.git("r", "branch", "side", "HEAD~1")
			w.write(map[string]string{"r/a.txt": "staged\n"})
			if action := tt.in["action"]; action == "pop" || action == "drop" {
				w.git("r", "stash", "-q")
				w.write(map[string]string{"r/a.txt": "staged\n"})
			}
			w.git("r", "add", "a.txt")
			if strings.Contains(string(encode(t, tt.in)), "files") {
				w.write(map[string]string{"r/a.txt": "changed\n"})
			}
			w.write(map[string]string{"r/dir/b.txt": "changed\n"})
			p, _ := w.preview(tt.tool, tt.in)
			before := w.git("r", "rev-parse", "HEAD", "main")
			tt.changes(w)
			after := w.git("r", "rev-parse", "HEAD", "main")
			got := w.approved(tt.tool, tt.in, p)
			if got.Error == nil || got.Error.Code != tool.Conflict {
				t.Errorf("%s = %+v, %v, want a conflict", tt.tool, got, got.Error)
			}
			if now := w.git("r", "rev-parse", "HEAD", "main"); now != after {
				t.Errorf("HEAD and main are %s, want %s (before %s)", now, after, before)
			}
			// The control: as it is now, it runs.
			again, err := w.plugin.Preview(t.Context(), tt.tool, tt.in)
			if err != nil {
				contains(t, err.Error(), "nothing to commit") // another writer has committed it
				return
			}
			if got := w.approved(tt.tool, tt.in, again); got.Error != nil {
				t.Errorf("%s after a new preview: %v", tt.tool, got.Error)
			}
		})
	}
}

func TestStash(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	contains(t, w.must("git_stash", args{"path": "r"}), "No stashes")
	contains(t, w.refused("git_stash", args{"path": "r", "action": "push"}, tool.Failed), "nothing to stash")
	w.write(map[string]string{"r/a.txt": "older\n"})
	w.must("git_stash", args{"path": "r", "action": "push", "message": "older"})
	w.write(map[string]string{"r/a.txt": "newer\n", "r/new.txt": "x\n"})
	_, text := w.preview("git_stash", args{"path": "r", "action": "push", "untracked": true})
	contains(t, text, "Stashes changes to 2 files in r", ".? r/new.txt", "+newer")
	w.must("git_stash", args{"path": "r", "action": "push", "message": "newer", "untracked": true})
	if got := structured[Stashes](w, "git_stash", args{"path": "r"}); got.Total != 2 || got.Stashes[1].Number != 1 || !strings.HasSuffix(string(got.Stashes[1].Message), "older") {
		t.Errorf("the stashes are %+v", got)
	}
	contains(t, w.must("git_status", args{"path": "r"}), "Stashes: 2", "clean")
	_, text = w.preview("git_stash", args{"path": "r", "action": "drop", "stash": 1})
	contains(t, text, "Deletes stash 1", "+older")
	contains(t, w.must("git_stash", args{"path": "r", "action": "pop"}), "Restored and removed stash 0")
	if w.read("r/a.txt") != "newer\n" || w.read("r/new.txt") != "x\n" {
		t.Error("pop has not brought all back")
	}
	w.git("r", "commit", "-qam", "newer")
	contains(t, w.refused("git_stash", args{"path": "r", "action": "apply"}, tool.Conflict), "restored with conflicts in r/a.txt")
	contains(t, w.refused("git_stash", args{"path": "r", "action": "push"}, tool.Conflict), "unresolved conflicts: r/a.txt")
	w.git("r", "checkout", "-q", "-f")
	w.must("git_stash", args{"path": "r", "action": "drop"})
	w.refused("git_stash", args{"path": "r", "action": "drop", "stash": 5}, tool.NotFound)

	w.write(map[string]string{"r/dir/unknown.txt": "precious\n"})
	w.must("git_stash", args{"path": "r", "action": "push", "untracked": true})
	_, text = w.preview("git_stash", args{"path": "r", "action": "drop"})
	contains(t, text, "with changes to 2 files: ", "b/r/dir/unknown.txt", "+precious", "b/r/new.txt")
	w.start(started{options: func(o *sdktest.Options) {
		o.Context.Protected = []string{filepath.Join(w.dir, "r/dir/unknown.txt")}
	}})
	w.refused("git_stash", args{"path": "r", "action": "apply"}, tool.PermissionDenied)
	w.must("git_stash", args{"path": "r", "action": "drop"})
}

func TestRestoreAndReset(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	change := func() {
		w.write(map[string]string{"r/a.txt": "changed\n"})
		w.git("r", "add", "a.txt")
		w.write(map[string]string{"r/a.txt": "again\n"})
	}
	change()
	_, text := w.preview("git_restore", args{"files": []string{"r/a.txt"}})
	contains(t, text, "Discards changes to 1 file in r", "-again\n+changed\n")
	w.must("git_restore", args{"files": []string{"r/a.txt"}})
	if got := w.read("r/a.txt"); got != "changed\n" {
		t.Errorf("the file holds %q", got)
	}
	w.must("git_restore", args{"path": "r", "files": []string{"r"}, "where": "index"})
	if got := w.git("r", "status", "--porcelain"); got != " M a.txt" {
		t.Errorf("the status is %q", got)
	}
	w.must("git_restore", args{"files": []string{"r/a.txt"}, "where": "both", "source": "HEAD~1"})
	if w.read("r/a.txt") != "one\n" || w.git("r", "status", "--porcelain") != "M  a.txt" {
		t.Error("both were not restored")
	}
	w.refused("git_restore", args{"files": []string{"r/dir"}}, tool.NotFound)
	contains(t, w.refused("git_restore", args{"files": []string{"r/a.txt", "r/none"}, "source": "HEAD"}, tool.NotFound), "No tracked file matches r/none")
	w.refused("git_restore", args{"files": []string{}}, tool.InvalidArgument)
	w.refused("git_restore", args{"files": []string{"r/a.txt"}, "source": "--staged"}, tool.InvalidArgument)

	// Staged changes are undone, too, whatever the file contains.
	staged := func(content string) {
		w.git("r", "reset", "-q", "--hard")
		w.write(map[string]string{"r/a.txt": content})
		w.git("r", "add", "a.txt")
		w.write(map[string]string{"r/a.txt": "one\nmore\n"})
	}
	for name, in := range map[string]args{
		"git_reset": {"path": "r", "mode": "hard"}, "git_restore": {"path": "r", "files": []string{"r/a.txt"}, "where": "both"},
	} {
		staged("much work\n")
		p, text := w.preview(name, in)
		contains(t, text, "changes", " 1 file", "Staged changes:", "-much work\n+one\n")
		staged("more work\n")
		if got := w.approved(name, in, p); got.Error == nil || got.Error.Code != tool.Conflict || w.git("r", "show", ":a.txt") != "more work" {
			t.Errorf("%s of what was staged since = %v", name, got.Error)
		}
		p, _ = w.preview(name, in)
		if got := w.approved(name, in, p); got.Error != nil || w.git("r", "status", "--porcelain") != "" {
			t.Errorf("%s = %v", name, got.Error)
		}
	}

	before := w.git("r", "rev-parse", "HEAD")
	change()
	p, text := w.preview("git_reset", args{"path": "r", "rev": "HEAD~1", "mode": "hard"})
	contains(t, text, "Resets branch main (hard) to ", "discards changes to 1 file", "Commits that the branch loses:", ": second", "-again\n+one\n")
	if got := w.approved("git_reset", args{"path": "r", "rev": "HEAD~1", "mode": "hard"}, p); got.Error != nil || !strings.Contains(got.Text(), before) {
		t.Errorf("git_reset = %q, %v", got.Text(), got.Error)
	}
	if got := w.git("r", "status", "--porcelain"); got != "" || w.git("r", "log", "--format=%s") != "first" {
		t.Errorf("the status is %q", got)
	}
	w.must("git_reset", args{"path": "r", "rev": before, "mode": "soft"})
	contains(t, w.git("r", "status", "--porcelain"), "M  a.txt")
	w.must("git_reset", args{"path": "r"})
	contains(t, w.git("r", "status", "--porcelain"), " M a.txt")
	w.refused("git_reset", args{"path": "r", "rev": "--hard"}, tool.InvalidArgument)
	w.refused("git_reset", args{"path": "r", "rev": "none"}, tool.NotFound)
}

// A merge with conflicts is finished by git_add and git_commit, or undone by git_reset.
func TestConflicts(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("r", "checkout", "-qb", "other", "HEAD~1")
	w.write(map[string]string{"r/a.txt": "other\n"})
	w.git("r", "commit", "-qam", "other")
	w.git("r", "checkout", "-q", "main")
	merge := func() {
		if _, err := w.tryGit("r", "merge", "-q", "other"); err == nil {
			t.Fatal("the merge has no conflicts")
		}
	}
	merge()
	contains(t, w.must("git_status", args{"path": "r"}), "In progress: merge", "UU r/a.txt (conflict)")
	contains(t, w.refused("git_commit", args{"path": "r", "message": "x"}, tool.Conflict), "unresolved conflicts: r/a.txt")
	contains(t, w.refused("git_switch", args{"path": "r", "branch": "other"}, tool.Conflict), "conflicts")
	w.must("git_reset", args{"path": "r", "mode": "merge"})
	contains(t, w.must("git_status", args{"path": "r"}), "clean")
	merge()
	w.write(map[string]string{"r/a.txt": "resolved\n"})
	w.must("git_add", args{"files": []string{"r/a.txt"}})
	w.refused("git_commit", args{"message": "x", "files": []string{"r/a.txt"}}, tool.Conflict)
	contains(t, w.refused("git_switch", args{"path": "r", "branch": "other"}, tool.Conflict), "A merge is in progress")
	w.must("git_commit", args{"path": "r", "message": "merged"})
	if got := w.git("r", "log", "-1", "--format=%s %p"); len(strings.Fields(got)) != 3 {
		t.Errorf("the commit has the parents %s", got)
	}
	if got := w.must("git_status", args{"path": "r"}); strings.Contains(got, "progress") || !strings.Contains(got, "clean") {
		t.Errorf("after the merge:\n%s", got)
	}
}

// The tools name what finishes an operation in progress.
func TestUnfinished(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("r", "checkout", "-qb", "other", "HEAD~1")
	w.write(map[string]string{"r/a.txt": "other\n"})
	w.git("r", "commit", "-qam", "other")
	for doing, hints := range map[string][]string{
		"rebase": {"git_rebase with continue", "git_rebase and abort"}, "cherry-pick": {"git_commit", "git_cherry_pick and abort"},
	} {
		if _, err := w.tryGit("r", doing, "main"); err == nil {
			t.Fatalf("the %s has no conflicts", doing)
		}
		w.write(map[string]string{"r/a.txt": "resolved\n"})
		w.git("r", "add", "a.txt")
		hints = append(hints, "A "+doing+" is in progress")
		contains(t, w.refused("git_switch", args{"path": "r", "branch": "main"}, tool.Conflict), hints...)
		if doing == "rebase" {
			contains(t, w.refused("git_commit", args{"path": "r", "message": "x"}, tool.Conflict), hints...)
		}
		w.git("r", doing, "--abort")
	}
	// A bisection blocks no operation.
	w.git("r", "bisect", "start")
	w.write(map[string]string{"r/a.txt": "fixed\n"})
	w.must("git_commit", args{"message": "x", "files": []string{"r/a.txt"}})
}

// A branch may have the name with which git says that there is none.
func TestNamesOfHead(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	for _, name := range []string{"(detached)", "(null)"} {
		w.git("r", "checkout", "-qb", name)
		if got := structured[Status](w, "git_status", args{"path": "r"}); string(got.Branch) != name || got.Detached {
			t.Errorf("on %s, git_status = %+v", name, got)
		}
		w.write(map[string]string{"r/a.txt": name})
		w.must("git_commit", args{"message": name, "files": []string{"r/a.txt"}})
		if got := w.git("r", "log", "-1", "--format=%s", "refs/heads/"+name); got != name || w.git("r", "symbolic-ref", "HEAD") != "refs/heads/"+name {
			t.Errorf("%s is at %q", name, got)
		}
	}
	w.git("r", "symbolic-ref", "HEAD", "refs/elsewhere")
	contains(t, w.refused("git_status", args{"path": "r"}, tool.Failed), "HEAD is refs/elsewhere, which is not a branch")
}

// Files that no tool may change are not changed by way of git.
func TestProtected(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	guard := func(o *sdktest.Options) { o.Context.Protected = []string{filepath.Join(w.dir, "r/a.txt"), "/nowhere"} }
	w.git("r", "branch", "old", "HEAD~1")
	w.start(started{options: guard})
	w.refused("git_switch", args{"path": "r", "branch": "old"}, tool.PermissionDenied)
	w.refused("git_reset", args{"path": "r", "rev": "old", "mode": "hard"}, tool.PermissionDenied)
	w.write(map[string]string{"r/a.txt": "changed\n"})
	w.refused("git_restore", args{"files": []string{"r"}}, tool.PermissionDenied)
	w.refused("git_stash", args{"path": "r", "action": "push"}, tool.PermissionDenied)
	w.git("r", "stash", "-q")
	w.refused("git_stash", args{"path": "r", "action": "pop"}, tool.PermissionDenied)
	w.start(started{})
	w.must("git_stash", args{"path": "r", "action": "pop"})
}

// Files that editors, agents and hooks read are not changed through git, in any letter case.
func TestProtectedNames(t *testing.T) {
	for _, name := range []string{".vscode/tasks.json", "sub/.MCP.json", ".husky/pre-commit", ".claude/settings.json", "sub/.envrc"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{})
			w.repo("r")
			w.git("r", "branch", "before")
			w.write(map[string]string{"r/" + name: "one\n"})
			w.git("r", "add", name)
			w.git("r", "commit", "-q", "-m", "settings")
			w.refused("git_switch", args{"path": "r", "branch": "before"}, tool.PermissionDenied)
			w.refused("git_reset", args{"path": "r", "rev": "before", "mode": "hard"}, tool.PermissionDenied)
			w.write(map[string]string{"r/" + name: "two\n"})
			w.refused("git_restore", args{"files": []string{"r/" + name}}, tool.PermissionDenied)
			w.refused("git_stash", args{"path": "r", "action": "push"}, tool.PermissionDenied)
		})
	}
}

// Settings are checked when the plugin starts.
func TestSettings(t *testing.T) {
	for name, s := range map[string]settings{
		"program":        {Program: "git"},
		"ssh program":    {SSH: sshSettings{Program: "ssh"}},
		"author":         {AuthorName: "x"},
		"author's email": {AuthorName: "x", AuthorEmail: "a>b"},
		"protocol":       {Protocols: []string{"ext"}},
		"too long":       {Patience: maxPatience + 1},
		"no host":        {Credentials: []credential{{URL: "x", Secret: "s"}}},
		"ssh":            {Credentials: []credential{{URL: "ssh://x/", Secret: "s"}}},
		"a password":     {Credentials: []credential{{URL: "https://a:b@x/", Secret: "s"}}},
		"neither":        {Credentials: []credential{{URL: "https://x/"}}},
		"both":           {Credentials: []credential{{URL: "https://x/", Secret: "s", Helper: "/h"}}},
		"helper":         {Credentials: []credential{{URL: "https://x/", Helper: "h"}}},
		"username":       {Credentials: []credential{{URL: "https://x/", Secret: "s", Username: "a\nb"}}},
	} {
		var wrong *sdk.SettingError
		if err := s.check(); !asSettingError(err, &wrong) || len(wrong.Path) == 0 || wrong.Summary == "" {
			t.Errorf("%s: %v, want a mistake with its place", name, err)
		}
	}
	good := settings{
		AuthorName: "A", AuthorEmail: "a@b", Protocols: protocols(),
		Credentials: []credential{{URL: "https://x/team", Secret: "s"}, {URL: "http://x:80/", Helper: "/h"}},
	}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for address, want := range map[string]bool{
		"https://x/team/a": true, "https://X/team": true, "https://x/teams": false, "https://y/team": false, "http://x/team/a": false, "http://x:80/a": true,
		"https://x/team/../other": false, "https://x/other/../team/a": false, "https://x/team/%2e%2e/other": false, "https://x/other%2f..%2fteam/a": false, "https://x/team/%2e/a": false, "https://x/team/a%20b": true, "https://x/team/": true, "http://x:80": true, "http://x:80//a": false,
	} {
		if got := good.credential(address) != nil; got != want {
			t.Errorf("there are credentials for %s: %t", address, got)
		}
	}
}
