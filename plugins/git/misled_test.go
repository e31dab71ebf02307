package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// diverged is a workspace with a repository r and its remote up.git. Each has a commit that the
// other lacks, and another branch; theirs is a clone.
func diverged(t *testing.T, l layers) *workspace {
	t.Helper()
	w := newWorkspace(t, started{settings: map[string]any{"protocols": []string{"file"}}, layers: l})
	w.copyTemplate(w.dir, `
		mkdir r; cd r`+makeRepo+`
		git branch other HEAD~1
		git clone -q --bare . ../up.git
		git remote add origin ../up.git
		git fetch -q
		git branch -q -u origin/main
		git clone -q ../up.git ../theirs
		echo 'mine ' > mine.txt
		git add -A
		git commit -q --cleanup=verbatim -m "$(printf 'mine\n\n# Heading\ntext')"
		cd ../theirs
		git remote set-url origin ../up.git
		echo theirs > theirs.txt
		git add -A
		git commit -qm theirs
		git push -q
	`)
	w.git("r", "config", "remote.origin.url", filepath.Join(w.dir, "up.git"))
	w.git("r", "update-index", "--refresh")
	return w
}

// A repository's settings for rebases and merges do not change what a pull does.
func TestPullDoesNothingElse(t *testing.T) {
	day := soak.Seed(t)
	for i, tt := range []struct {
		mode   string
		config []string
	}{
		{"rebase", []string{"rebase.instructionFormat=%s%nexec touch OWNED"}},
		{"rebase", []string{"rebase.instructionFormat=%s%nupdate-ref refs/heads/other"}},
		{"rebase", []string{"rebase.backend=apply", "apply.whitespace=fix"}},
		{"rebase", []string{"commit.cleanup=strip"}},
		{"merge", []string{"pull.twohead=ours"}},
	} {
		for j, l := range []layers{{}, {noRules: true}} {
			if j > 0 && !soak.Today(day, i, 5) {
				continue
			}
			w := diverged(t, l)
			for _, setting := range tt.config {
				name, value, _ := strings.Cut(setting, "=")
				w.git("r", "config", name, value)
			}
			other := w.git("r", "rev-parse", "other")
			contains(t, w.must("git_pull", args{"path": "r", "mode": tt.mode}), "Pulled origin/main")
			if got := w.read("r/theirs.txt") + w.read("r/mine.txt"); got != "theirs\nmine \n" {
				t.Errorf("%s: the files are %q", tt.config, got)
			}
			if got := w.git("r", "log", "--no-merges", "--format=%B", "-3"); !strings.Contains(got, "mine\n\n# Heading\ntext") || !strings.Contains(got, "theirs") {
				t.Errorf("%s: the commits are %q", tt.config, got)
			}
			if got := w.git("r", "rev-parse", "other"); got != other {
				t.Errorf("%s: another branch has moved from %s to %s", tt.config, other, got)
			}
			if _, err := os.Stat(filepath.Join(w.dir, "r/OWNED")); err == nil {
				t.Errorf("%s: a program was run", tt.config)
			}
		}
	}
}

// A reference that is another name of one leads no change there.
func TestReferencesThatAreOthers(t *testing.T) {
	there := func(w *workspace, ref string) string {
		out, _ := w.tryGit("r", "rev-parse", "--verify", "--quiet", ref)
		return out
	}
	plain := func() *workspace {
		w := newWorkspace(t, started{})
		w.repo("r")
		w.git("r", "branch", "victim", "HEAD~1")
		w.write(map[string]string{"r/a.txt": "changed\n"})
		return w
	}
	behind := func() *workspace { // the remote is, so that a push succeeds
		w := diverged(t, layers{})
		w.git("theirs", "push", "-qf", "origin", "HEAD~1:main")
		return w
	}
	for name, tt := range map[string]struct {
		begin        func() *workspace
		symbolic, to string
		tool         string
		in           args
		refused      bool
	}{
		"HEAD's branch":             {plain, "refs/heads/x", "refs/tags/v1", "git_commit", args{"message": "m", "files": []string{"r/a.txt"}}, true},
		"a new branch":              {plain, "refs/heads/new", "refs/tags/planted", "git_branch", args{"path": "r", "name": "new", "create": true}, true},
		"a new branch to be on":     {plain, "refs/heads/new", "refs/tags/planted", "git_switch", args{"path": "r", "branch": "new", "create": true}, true},
		"the stash":                 {plain, "refs/stash", "refs/heads/victim", "git_stash", args{"path": "r", "action": "push"}, true},
		"a remote's branch, new":    {func() *workspace { return diverged(t, layers{}) }, "refs/remotes/origin/main", "refs/heads/planted", "git_fetch", args{"path": "r"}, false},
		"a remote's branch":         {func() *workspace { return diverged(t, layers{}) }, "refs/remotes/origin/main", "refs/heads/other", "git_fetch", args{"path": "r"}, true},
		"a remote's branch, pushed": {behind, "refs/remotes/origin/main", "refs/heads/other", "git_push", args{"path": "r"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := tt.begin()
			if tt.symbolic == "refs/heads/x" {
				w.git("r", "tag", "v1")
				w.git("r", "symbolic-ref", "HEAD", tt.symbolic)
			}
			w.tryGit("r", "update-ref", "-d", "--no-deref", tt.symbolic)
			w.git("r", "symbolic-ref", tt.symbolic, tt.to)
			before := there(w, tt.to)
			got := w.call(tt.tool, tt.in)
			if tt.refused && got.Error == nil {
				t.Errorf("%s = %q, want it refused", tt.tool, got.Text())
			}
			if !tt.refused && got.Error != nil {
				t.Error(got.Error)
			}
			if after := there(w, tt.to); after != before {
				t.Errorf("%s has moved from %q to %q", tt.to, before, after)
			}
		})
	}
}

// Changes that git is configured to ignore are not overwritten.
func TestUnseenChangesAreKept(t *testing.T) {
	for _, call := range []struct {
		tool string
		in   args
	}{
		{"git_reset", args{"path": "r", "mode": "hard"}},
		{"git_reset", args{"path": "r", "mode": "hard", "rev": "HEAD~1"}},
		{"git_restore", args{"files": []string{"r"}}},
		{"git_stash", args{"path": "r", "action": "push"}},
	} {
		w := newWorkspace(t, started{})
		w.repo("r")
		w.git("r", "update-index", "--assume-unchanged", "a.txt")
		w.write(map[string]string{"r/dir/b.txt": "other\n"})
		main := w.git("r", "rev-parse", "HEAD")
		w.must(call.tool, call.in) // which is no reason to refuse if nothing is lost
		w.git("r", "reset", "-q", "--hard", main)
		w.git("r", "update-index", "--assume-unchanged", "a.txt")
		w.write(map[string]string{"r/a.txt": "precious\n", "r/dir/b.txt": "other\n"})
		contains(t, w.refused(call.tool, call.in, tool.Conflict), "as unchanged: r/a.txt")
		if got := w.read("r/a.txt"); got != "precious\n" {
			t.Errorf("%s: a.txt is %q", call.tool, got)
		}
	}
	for _, name := range []string{"git_reset", "git_restore"} {
		w := newWorkspace(t, started{})
		w.repo("r")
		w.git("r", "checkout", "-qb", "side")
		w.write(map[string]string{"r/A.TXT": "theirs\n"})
		w.git("r", "add", "-A")
		w.git("r", "commit", "-qm", "A.TXT")
		w.git("r", "checkout", "-q", "main")
		w.git("r", "config", "core.ignoreCase", "true")
		w.git("r", "config", "core.ignoreStat", "true")
		w.write(map[string]string{"r/A.TXT": "precious\n"})
		contains(t, w.must("git_status", args{"path": "r"}), "A.TXT")
		in := map[string]args{"git_reset": {"path": "r", "rev": "side", "mode": "hard"}, "git_restore": {"files": []string{"r"}, "source": "side"}}[name]
		w.refused(name, in, tool.Conflict)
		w.git("r", "update-index", "--assume-unchanged", "a.txt")
		w.write(map[string]string{"r/a.txt": "precious\n", "r/dir/b.txt": "other\n"})
		w.must("git_restore", args{"files": []string{"r/dir"}}) // which is not about a.txt
		if got := w.read("r/A.TXT"); got != "precious\n" {
			t.Errorf("%s: A.TXT is %q", name, got)
		}
	}
}

// Files outside of a sparse checkout are not deleted.
func TestCommitOfASparseCheckout(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/dir/new.txt": "x\n"})
	w.git("r", "add", "-A")
	w.git("r", "sparse-checkout", "set", "--no-cone", "/a.txt")
	w.write(map[string]string{"r/a.txt": "changed\n"})
	contains(t, w.must("git_commit", args{"message": "m", "files": []string{"r"}}), "1 file, +1 -2")
	if got := w.git("r", "show", "--format=", "--name-status"); got != "M\ta.txt" {
		t.Errorf("the commit changes %q", got)
	}
}

// A switch that removes files outside of a sparse checkout says so in advance.
func TestSwitchOfASparseCheckout(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("r", "branch", "side", "HEAD~1")
	_, text := w.preview("git_switch", args{"path": "r", "branch": "side"})
	if strings.Contains(text, "sparse") {
		t.Errorf("without one, the preview is %q", text)
	}
	w.git("r", "config", "core.sparseCheckout", "yes")
	w.write(map[string]string{"r/.git/info/sparse-checkout": "/a.txt\n"})
	_, text = w.preview("git_switch", args{"path": "r", "branch": "side"})
	contains(t, text, "NOT ALL IS SHOWN: the checkout is sparse", "r/a.txt")
	w.must("git_switch", args{"path": "r", "branch": "side"})
	if _, err := os.Stat(filepath.Join(w.dir, "r/dir/b.txt")); !os.IsNotExist(err) {
		t.Errorf("dir/b.txt is there: the test proves nothing (%v)", err)
	}
}

// A diff names the files that attributes hide from it.
func TestHiddenDiffs(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/.gitattributes": "a.txt -diff\n", "r/a.txt": "changed\n"})
	_, text := w.preview("git_commit", args{"message": "m", "files": []string{"r"}})
	contains(t, text, "NOT ALL IS SHOWN: .gitattributes hides the diff of r/a.txt\n")
}

// A tag with the full name of a branch is not mistaken for the branch.
func TestNamesThatMeanOthers(t *testing.T) {
	w := diverged(t, layers{})
	w.git("r", "update-ref", "-d", "refs/remotes/origin/main")
	w.git("r", "tag", "refs/remotes/origin/main", "HEAD~1")
	push, _ := w.preview("git_push", args{"path": "r"})
	contains(t, push.Summary, "Pushes 2 commits")
	w.git("r", "tag", "refs/heads/gone")
	w.refused("git_push", args{"path": "r", "branch": "gone"}, tool.NotFound)
	w.must("git_branch", args{"path": "r", "name": "gone", "create": true})
	w.git("r", "update-ref", "--create-reflog", "refs/heads/refs/stash", "HEAD")
	contains(t, w.must("git_stash", args{"path": "r"}), "No stashes")
	w.git("r", "tag", "main", "HEAD~1")
	for _, in := range []args{{"path": "r", "rev": "main"}, {"path": "r", "rev": "other..main"}} {
		contains(t, w.refused("git_log", in, tool.InvalidArgument), "is ambiguous")
	}
	w.must("git_log", args{"path": "r", "rev": "refs/heads/main"})
	for _, name := range []string{"main~1", "main@{0}", "main^{/first}"} {
		w.refused("git_switch", args{"path": "r", "branch": name}, tool.InvalidArgument)
	}
	w.git("r", "update-ref", "refs/heads/HEAD", "HEAD~1")
	if got := structured[Log](w, "git_log", args{"path": "r", "rev": "HEAD"}); len(got.Commits) != 3 {
		t.Errorf("the log of HEAD is %+v", got)
	}
	w.git("theirs", "push", "-q", "origin", "HEAD:refs/heads/a\u00a0b")
	contains(t, w.must("git_fetch", args{"path": "r"}), "origin/a\u00a0b")
}

// A branch or tag may be named "stash", and git skips files that it cannot stash.
func TestOddStashes(t *testing.T) {
	for _, kind := range []string{"branch", "tag"} {
		w := newWorkspace(t, started{})
		w.repo("r")
		w.git("r", kind, "stash")
		w.write(map[string]string{"r/a.txt": "changed\n"})
		w.must("git_stash", args{"path": "r", "action": "push"})
		contains(t, w.must("git_stash", args{"path": "r", "action": "pop"}), "Restored and removed stash 0")
	}
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("r", "init", "-q", "sub")
	w.git("r/sub", "commit", "-q", "--allow-empty", "-m", "x")
	w.git("r", "add", "sub")
	w.git("r", "commit", "-qm", "sub")
	w.write(map[string]string{"r/a.txt": "older\n"})
	w.git("r", "stash", "-q")
	w.git("r/sub", "commit", "-q", "--allow-empty", "-m", "y")
	contains(t, w.refused("git_stash", args{"path": "r", "action": "push"}, tool.Failed), "nothing to stash")
	w.write(map[string]string{"r/.git/refs/stash": strings.Repeat("1", 40) + "\n"})
	w.refused("git_stash", args{"path": "r"}, tool.Failed)
}
