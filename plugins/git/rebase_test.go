package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// topics makes a repository with branches to rebase on main. The commits of topic are: one
// by Bob, one whose changes main has, an empty one, a merge, and one with a body. Those of
// against are one in conflict with main between two others, and the index is that of
// against.
func (w *workspace) topics() {
	w.Helper()
	w.copyTemplate(filepath.Join(w.dir, "r"), `
		git init -q -b main .
		git config user.name Ada
		git config user.email ada@example.com
		printf '1\n2\n3\n4\n5\n6\n7\n8\n9\n' > a.txt
		echo b > b.txt
		git add -A
		git commit -qm first
		git checkout -qb side
		echo side > side.txt
		git add -A
		git commit -qm side
		git checkout -qb topic main
		echo c > c.txt
		git add -A
		GIT_AUTHOR_NAME="Bob O'Neil" GIT_AUTHOR_EMAIL=bob@example.com GIT_AUTHOR_DATE='2020-01-02T03:04:05+0200' git commit -qm 'topic: c'
		sed -i s/1/one/ a.txt
		git commit -qam 'topic: one'
		git commit -q --allow-empty -m 'topic: nothing'
		git merge -q -m 'topic: merge' side
		sed -i s/9/nine/ a.txt
		git commit -qam 'topic: nine' -m 'with a body

# a heading'
		git checkout -q main
		sed -i s/1/one/ a.txt
		git commit -qam 'main: one'
		echo d > d.txt
		git add -A
		git commit -qm 'main: d'
		git checkout -qb against main~2
		echo e > e.txt
		git add -A
		git commit -qm 'against: e'
		sed -i s/1/eins/ a.txt
		GIT_AUTHOR_NAME="Bob O'Neil" GIT_AUTHOR_EMAIL=bob@example.com git commit -qam 'against: eins' -m 'a body'
		sed -i s/9/neun/ a.txt
		git commit -qam 'against: neun'
	`)
}

// TestRebase compares the tool with git itself: the same trees, authors and messages.
func TestRebase(t *testing.T) {
	for _, tt := range []struct {
		name, at string
		in       args
		git      []string
		said     []string
	}{
		{
			"a branch", "topic",
			args{"upstream": "main"},
			[]string{"rebase", "-q", "main"},
			[]string{"Rebases branch topic of r on main (", "4 commits, 1 file", " Bob O'Neil: topic: c\n", "topic: one [upstream has its changes]", "topic: merge [merge]", "d.txt"},
		},
		{"onto another base", "topic", args{"upstream": "topic~2", "onto": "against~2"}, []string{"rebase", "-q", "--onto", "against~2", "topic~2"}, []string{"on against~2 (", "Commits that the branch loses:", ": topic: nothing\n"}},
		{"without the first commits", "topic", args{"upstream": "topic~1", "onto": "side"}, []string{"rebase", "-q", "--onto", "side", "topic~1"}, []string{": 1 commit, "}},
		{"no branch", "--detach topic~3", args{"upstream": "main"}, []string{"rebase", "-q", "main"}, []string{"Rebases the detached HEAD at "}},
		{"forward", "side", args{"upstream": "topic"}, []string{"rebase", "-q", "topic"}, []string{"Moves branch side of r to "}},
		{"on an ancestor", "topic~3", args{"upstream": "topic~4"}, []string{"rebase", "-q", "topic~4"}, nil},
		{"leaves out what changes nothing", "topic~3", args{"upstream": "topic~3^", "onto": "main"}, []string{"rebase", "-q", "--onto", "main", "topic~3^"}, []string{"[left out: changes nothing]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{})
			w.topics()
			w.git("r", append([]string{"checkout", "-q"}, strings.Fields(tt.at)...)...)
			w.write(map[string]string{"r/b.txt": "unrelated\n", "r/kept.txt": "untracked\n"})
			// What the repository configures has no say.
			config := w.read("r/.git/config")
			w.write(map[string]string{"r/.git/config": config + "[branch \"topic\"]\n\tremote = .\n\tmerge = refs/heads/against\n[rebase]\n\trebaseMerges\n\tinstructionFormat = \"%s%nexec false\"\n"})
			tt.in["path"] = "r"
			head := w.read("r/.git/HEAD")
			if tt.said == nil {
				contains(t, w.must("git_rebase", tt.in), "Already up to date")
				return
			}
			p, text := w.preview("git_rebase", tt.in)
			contains(t, text, tt.said...)
			if got := w.approved("git_rebase", tt.in, p); got.Error != nil {
				t.Fatal(got.Error)
			}
			const format = "--format=%T %an %ae %ad %B"
			ours := w.git("r", "log", format)
			if got := w.git("r", "status", "--porcelain"); got != " M b.txt\n?? kept.txt" {
				t.Errorf("afterwards, git status says %q", got)
			}
			if now := w.read("r/.git/HEAD"); strings.HasPrefix(head, "ref: ") && now != head {
				t.Errorf("HEAD is %q, and was %q", now, head)
			}
			w.write(map[string]string{"r/.git/config": config})
			w.git("r", "reset", "-q", "--hard", "HEAD@{1}")
			w.git("r", tt.git...)
			if theirs := w.git("r", "log", format); ours != theirs {
				t.Errorf("the tool makes\n%s\ngit makes\n%s", ours, theirs)
			}
		})
	}
}

// TestRebaseRefused: a call that cannot succeed does nothing.
func TestRebaseRefused(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.topics()
	before := w.git("r", "rev-parse", "HEAD")
	for _, tt := range []struct {
		in   args
		code tool.Code
		said string
	}{
		{args{}, tool.InvalidArgument, "upstream is missing"},
		{args{"upstream": "none"}, tool.NotFound, "There is no commit none"},
		{args{"upstream": "--exec=false"}, tool.InvalidArgument, `begins with "-"`},
		{args{"upstream": "main", "onto": "none"}, tool.NotFound, "There is no commit none"},
		{args{"continue": true}, tool.NotFound, "No rebase is in progress"},
		{args{"abort": true}, tool.NotFound, "No rebase is in progress"},
		{args{"abort": true, "continue": true}, tool.InvalidArgument, "both set"},
	} {
		tt.in["path"] = "r"
		contains(t, w.refused("git_rebase", tt.in, tt.code), tt.said)
	}
	w.write(map[string]string{"r/a.txt": "changed\n"})
	contains(t, w.refused("git_rebase", args{"path": "r", "upstream": "main"}, tool.Conflict), "would be overwritten: r/a.txt")
	w.git("r", "checkout", "-q", "a.txt")
	w.write(map[string]string{"r/d.txt": "untracked\n"})
	contains(t, w.refused("git_rebase", args{"path": "r", "upstream": "main"}, tool.Conflict), "Untracked files would be lost: r/d.txt")
	if got := w.git("r", "rev-parse", "HEAD") + w.git("r", "status", "--porcelain"); got != before+"?? d.txt" || there(w, "r/.git/rebase-merge") {
		t.Errorf("what was refused has changed the repository: %s", got)
	}
	w.remove("r/d.txt")
	w.git("r", "checkout", "-q", "main")
	w.commits("r", make([]string, maxReplayed+1)...)
	contains(t, w.refused("git_rebase", args{"path": "r", "upstream": "side"}, tool.InvalidArgument), "more than 500 commits")
}

// inConflict makes a repository whose branch against is rebased on main until the
// conflict, by the tool or by git.
func inConflict(t *testing.T, byGit bool) (w *workspace, head string) {
	t.Helper()
	w = newWorkspace(t, started{})
	w.topics()
	head = w.git("r", "rev-parse", "HEAD")
	if byGit {
		if _, err := w.tryGit("r", "rebase", "main"); err == nil {
			t.Fatal("git rebases without conflicts")
		}
		return w, head
	}
	in := args{"path": "r", "upstream": "main"}
	p, text := w.preview("git_rebase", in)
	contains(t, text, "stops at "+w.git("r", "rev-parse", "against~1")[:10]+" with conflicts in 1 file", "against: eins [conflict: the call stops here]", "against: neun [not applied]", "  UU r/a.txt")
	got := w.approved("git_rebase", in, p)
	if got.Error == nil || got.Error.Code != tool.Conflict {
		t.Fatalf("git_rebase = %v", got.Error)
	}
	contains(t, got.Error.ModelText(), "1 file: r/a.txt", "1 of 3 commits are done", "git_rebase with continue")
	return w, head
}

// TestRebaseConflicts: the tool and git leave the same state, and each can go on with it
// and undo it.
func TestRebaseConflicts(t *testing.T) {
	states := map[bool]string{}
	for _, byGit := range []bool{false, true} {
		w, head := inConflict(t, byGit)
		state, err := w.runIn(filepath.Join(w.dir, "r"), "bash", "-c", "git log --format='%T %an %B' -3; git rev-parse against REBASE_HEAD; git ls-files -s; git status; grep -v '>>>' a.txt; cd .git/rebase-merge; cat head-name onto orig-head end msgnum stopped-sha git-rebase-todo author-script")
		if err != nil {
			t.Fatal(err)
		}
		states[byGit] = state
		contains(t, w.must("git_status", args{"path": "r"}), "In progress: rebase", "UU r/a.txt (conflict)")
		for name, in := range map[string]args{"git_commit": {"path": "r", "message": "x"}, "git_rebase": {"path": "r", "continue": true}, "git_merge": {"path": "r", "rev": "side"}} {
			contains(t, w.refused(name, in, tool.Conflict), "git_rebase with continue")
		}
		undo := args{"path": "r", "abort": true}
		p, text := w.preview("git_rebase", undo)
		contains(t, text, "Undoes the rebase in progress on branch against of r", "-<<<<<<< ")
		if got := w.approved("git_rebase", undo, p); got.Error != nil {
			t.Fatal(got.Error)
		}
		if got := w.git("r", "rev-parse", "HEAD") + w.git("r", "status", "--porcelain"); got != head || w.read("r/.git/HEAD") != "ref: refs/heads/against\n" || there(w, "r/.git/rebase-merge") {
			t.Errorf("after the abort: %s, want %s", got, head)
		}
	}
	if states[false] != states[true] {
		t.Errorf("the tool leaves\n%s\ngit leaves\n%s", states[false], states[true])
	}
	for _, tt := range []struct {
		name  string
		byGit bool
		end   func(w *workspace)
	}{
		{"the tool's by the tool", false, nil},
		{"git's by the tool", true, nil},
		{"the tool's by git", false, func(w *workspace) { w.git("r", "-c", "core.editor=true", "rebase", "--continue") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, _ := inConflict(t, tt.byGit)
			w.write(map[string]string{"r/a.txt": strings.Replace(w.git("r", "show", "main:a.txt")+"\n", "one", "resolved", 1)})
			w.must("git_add", args{"files": []string{"r/a.txt"}})
			on := args{"path": "r", "continue": true}
			if tt.end == nil {
				p, text := w.preview("git_rebase", on)
				contains(t, text, "Continues the rebase of branch against of r: 2 commits left", "Bob O'Neil: against: eins\n", "Ada: against: neun\n", "Staged changes", "-one\n+resolved\n")
				w.write(map[string]string{"r/a.txt": "not staged\n"})
				contains(t, w.refused("git_rebase", on, tool.Conflict), "not staged: r/a.txt")
				w.git("r", "checkout", "-q", "a.txt")
				got := w.approved("git_rebase", on, p)
				if got.Error != nil {
					t.Fatal(got.Error)
				}
				contains(t, got.Text(), "Branch against is now at ")
			} else {
				tt.end(w)
			}
			if got := w.git("r", "log", "--format=%an %s", "-3"); got != "Ada against: neun\nBob O'Neil against: eins\nAda against: e" {
				t.Errorf("the commits are\n%s", got)
			}
			if got := w.git("r", "log", "--format=%B", "-1", "HEAD~1"); got != "against: eins\n\na body\n" {
				t.Errorf("the message is %q", got)
			}
			if got := w.read("r/a.txt"); got != "resolved\n2\n3\n4\n5\n6\n7\n8\nneun\n" {
				t.Errorf("the file holds %q", got)
			}
			if got := w.git("r", "status", "--porcelain") + w.git("r", "rev-list", "HEAD~3...main"); got != "" || w.read("r/.git/HEAD") != "ref: refs/heads/against\n" || there(w, "r/.git/rebase-merge") {
				t.Errorf("afterwards: %s", got)
			}
		})
	}
}

// TestRebaseStopsAgain: a rebase can stop more than once, and a commit that a resolution
// makes empty is left out.
func TestRebaseStopsAgain(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.topics()
	w.write(map[string]string{"r/a.txt": "one more\n"})
	w.git("r", "commit", "-qam", "against: more")
	in := args{"path": "r", "upstream": "main"}
	w.refused("git_rebase", in, tool.Conflict)
	on := args{"path": "r", "continue": true}
	w.git("r", "checkout", "main", "--", "a.txt") // the resolution is what main has
	_, text := w.preview("git_rebase", on)
	contains(t, text, "against: eins [left out: changes nothing]", "against: neun\n", "against: more [conflict: the call stops here]")
	// A link in the place of a file that the tool writes is replaced.
	w.remove("r/.git/rebase-merge/message")
	w.link("../config", "r/.git/rebase-merge/message")
	config := w.read("r/.git/config")
	contains(t, w.refused("git_rebase", on, tool.Conflict), "2 of 3 commits are done")
	if w.read("r/.git/config") != config {
		t.Error("the tool has written through a link")
	}
	if got := w.git("r", "log", "--format=%s", "-3"); got != "against: neun\nagainst: e\nmain: d" {
		t.Errorf("the commits are\n%s", got)
	}
	w.write(map[string]string{"r/a.txt": "resolved\n"})
	w.must("git_add", args{"files": []string{"r/a.txt"}})
	contains(t, w.must("git_rebase", on), "Branch against is now at ")
	if got := w.git("r", "log", "--format=%s", "-3", "against"); got != "against: more\nagainst: neun\nagainst: e" {
		t.Errorf("the commits are\n%s", got)
	}
}

// TestRebaseKeepsIgnoredFiles: a commit that adds a file again, which the resolution has
// deleted, does not replace an ignored file. HEAD and the new commit both have the file.
func TestRebaseKeepsIgnoredFiles(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.copyTemplate(filepath.Join(w.dir, "r"), `
		git init -q -b main .
		git config user.name Ada
		git config user.email ada@example.com
		echo 1 > a.txt
		echo theirs > x.log
		echo '*.log' > .gitignore
		git add -Af
		git commit -qm first
		echo one > a.txt
		git commit -qam one
		git checkout -qb topic main~1
		echo eins > a.txt
		git rm -q x.log
		git commit -qam deleted
		echo theirs > x.log
		git add -f x.log
		git commit -qm again
	`)
	w.refused("git_rebase", args{"path": "r", "upstream": "main"}, tool.Conflict)
	w.write(map[string]string{"r/a.txt": "resolved\n", "r/x.log": "mine\n"})
	w.git("r", "add", "a.txt")
	on := args{"path": "r", "continue": true}
	contains(t, w.refused("git_rebase", on, tool.Conflict), "Untracked files would be lost: r/x.log")
	w.remove("r/x.log")
	w.must("git_rebase", on)
	if got := w.read("r/a.txt") + w.read("r/x.log"); got != "resolved\ntheirs\n" {
		t.Errorf("the files hold %q", got)
	}
}

// TestRebaseCutShort: if a rebase fails after the files have changed, nothing can commit the
// conflict markers, and the rebase can be undone.
func TestRebaseCutShort(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.topics()
	w.write(map[string]string{"r/a.txt": "one more\n"})
	w.git("r", "commit", "-qam", "against: more")
	head := w.git("r", "rev-parse", "HEAD")
	const fails = `case " $* " in *" --index-info "*) test -e broken && exit 1 ;; *" read-tree -m "*) test -e full && exit 1 ;; esac`
	w.pretend(fails)
	begin, on, undo := args{"path": "r", "upstream": "main"}, args{"path": "r", "continue": true}, args{"path": "r", "abort": true}
	cutShort := func(in args) {
		t.Helper()
		w.write(map[string]string{"r/broken": ""})
		if got := w.call("git_rebase", in); got.Error == nil || got.Error.Code == tool.Conflict {
			t.Fatalf("git_rebase = %v", got.Error)
		}
		w.remove("r/broken")
		contains(t, w.refused("git_rebase", on, tool.Conflict), "git_rebase and abort")
		w.must("git_rebase", undo)
		if got := w.git("r", "rev-parse", "HEAD") + w.git("r", "status", "--porcelain"); got != head || there(w, "r/.git/rebase-merge") {
			t.Errorf("after the abort: %s, want %s", got, head)
		}
	}
	cutShort(begin)
	w.refused("git_rebase", begin, tool.Conflict)
	w.git("r", "checkout", "main", "--", "a.txt")
	// A failure before the files change keeps the rebase as it is.
	w.write(map[string]string{"r/full": ""})
	if got := w.call("git_rebase", on); got.Error == nil {
		t.Fatal("the rebase goes on")
	}
	w.remove("r/full")
	w.preview("git_rebase", on)
	cutShort(on)
}

// TestRebaseStateIsNotTrusted: a repository that pretends a rebase is in progress cannot
// make the tool run programs, write elsewhere, or move another branch.
func TestRebaseStateIsNotTrusted(t *testing.T) {
	made, _ := inConflict(t, false)
	made.write(map[string]string{"r/a.txt": "resolved\n"})
	made.git("r", "add", "a.txt")
	for _, tt := range []struct {
		name, setup      string
		goesOn, isUndone string // what the error says, or ""
	}{
		{"another instruction", `printf 'exec touch OWNED\n' > git-rebase-todo`, "with other options", ""},
		{"a merge to pick", `echo pick $(git rev-parse topic~1) > git-rebase-todo`, "with other options", ""},
		{"a commit that does not exist", `echo pick 1111111111111111111111111111111111111111 > git-rebase-todo`, "There is no commit 1111", ""},
		{"a name to pick", `echo pick main > git-rebase-todo`, "with other options", ""},
		{"too many commits", fmt.Sprintf(`id=$(cat stopped-sha); for i in {1..%d}; do echo pick $id; done > git-rebase-todo`, maxReplayed), "more than 500 commits", ""},
		{"a strategy", `echo evil > strategy`, "with other options", "with other options"},
		{"a stash", `git rev-parse HEAD > autostash`, "with other options", "with other options"},
		{"another branch", `echo refs/heads/main > head-name`, "main has moved", "main has moved"},
		{"no branch", `echo refs/tags/x > head-name`, "with other options", "with other options"},
		{"a bad branch", `echo 'refs/heads/a..b' > head-name`, "not a valid branch name", "not a valid branch name"},
		{"a symbolic branch", `git symbolic-ref refs/heads/against refs/heads/main`, "is symbolic", "is symbolic"},
		{"a moved branch", `git update-ref refs/heads/against main`, "against has moved", "against has moved"},
		{"HEAD on another branch", `git symbolic-ref HEAD refs/heads/topic`, "HEAD is on branch topic", "HEAD is on branch topic"},
		{"an option as a commit", `echo --all > orig-head`, "with other options", "with other options"},
		{"no directory", `cd ..; rm -r rebase-merge; ln -s /etc rebase-merge`, "with other options", "with other options"},
		{"a mail", `cd ..; mv rebase-merge rebase-apply`, "with other options", "with other options"},
		{"a link out", `rm onto; ln -s /etc/hostname onto`, "is unreadable", "is unreadable"},
		{"a pipe", `rm onto; mkfifo onto`, "is unreadable", "is unreadable"},
		{"a large patch", `truncate -s 2M patch`, "", ""},
		{"a large file", `truncate -s 2M onto`, "is unreadable", "is unreadable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{})
			if err := os.Remove(w.dir); err != nil {
				t.Fatal(err)
			}
			copyTree(t, made.dir, w.dir)
			if out, err := w.runIn(filepath.Join(w.dir, "r/.git/rebase-merge"), "bash", "-ec", tt.setup); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for name, said := range map[string]string{"continue": tt.goesOn, "abort": tt.isUndone} {
				_, err := w.plugin.Preview(t.Context(), "git_rebase", args{"path": "r", name: true})
				if said == "" && err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if said != "" && (err == nil || !strings.Contains(err.Error(), said)) {
					t.Errorf("%s: %v, want %q", name, err, said)
				}
			}
		})
	}
}
