package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// branches makes a repository with branches beside main: ahead has one commit more,
// beside changes another file than main does, against the same line.
func (w *workspace) branches() {
	w.Helper()
	w.copyTemplate(filepath.Join(w.dir, "r"), `
		git init -q -b main .
		git config user.name Ada
		git config user.email ada@example.com
		mkdir dir
		printf '1\n2\n3\n4\n5\n6\n7\n8\n9\n' > a.txt
		echo two > dir/b.txt
		git add -A
		git commit -qm first
		git checkout -qb beside
		echo three > dir/c.txt
		git mv dir/b.txt dir/d.txt
		sed -i s/9/nine/ a.txt
		git add -A
		GIT_AUTHOR_NAME=Bob GIT_AUTHOR_EMAIL=bob@example.com git commit -qm 'beside: more' -m 'a body'
		echo four >> dir/c.txt
		git commit -qam 'beside: again'
		git checkout -qb against main
		sed -i s/1/eins/ a.txt
		git commit -qam against
		git checkout -q main
		sed -i s/1/one/ a.txt
		git commit -qam second
		git checkout -qb ahead
		echo new > dir/new.txt
		git add -A
		git commit -qm ahead
		git checkout -q main
	`)
}

// TestMerge compares the tool with git itself: the same tree and the same parents.
func TestMerge(t *testing.T) {
	for _, tt := range []struct {
		name    string
		in      args
		parents string // of the new HEAD
		said    string
	}{
		{"fast-forward", args{"rev": "ahead", "ff": "only"}, "main", "Fast-forwards to ahead"},
		{"never a fast-forward", args{"rev": "ahead", "ff": "never", "message": "m"}, "main ahead", "Merges ahead"},
		{"a merge", args{"rev": "beside", "message": "The merge\n\nwith a body"}, "main beside", "Merges beside"},
		{"a commit", args{"rev": "beside~1"}, "main beside~1", "Merges beside~1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{})
			w.branches()
			tt.in["path"] = "r"
			w.write(map[string]string{"r/kept.txt": "untracked\n"})
			objects := w.git("r", "count-objects")
			p, text := w.preview("git_merge", tt.in)
			contains(t, text, tt.said, "Commits that come in:")
			if got := w.git("r", "count-objects"); got != objects {
				t.Errorf("the preview leaves objects: %s, before %s", got, objects)
			}
			if left, err := filepath.Glob(filepath.Join(w.scratch, "remote-*")); err != nil || len(left) > 0 {
				t.Errorf("the preview leaves %v, %v", left, err)
			}
			want := strings.ReplaceAll(w.git("r", append([]string{"rev-parse"}, strings.Fields(tt.parents)...)...), "\n", " ")
			got := w.approved("git_merge", tt.in, p)
			if got.Error != nil {
				t.Fatal(got.Error)
			}
			contains(t, got.Text(), "Branch main is now at ", "It was at "+w.git("r", "rev-parse", "main@{1}"))
			if parents := w.git("r", "log", "-1", "--format=%P"); parents != want {
				t.Errorf("HEAD has the parents %s, want %s", parents, want)
			}
			tree := w.git("r", "rev-parse", "HEAD^{tree}")
			if message, ok := tt.in["message"]; ok && w.git("r", "log", "-1", "--format=%B") != message.(string)+"\n" {
				t.Errorf("the message is %q", w.git("r", "log", "-1", "--format=%B"))
			}
			if got := w.git("r", "status", "--porcelain"); got != "?? kept.txt" {
				t.Errorf("afterwards, git status says %q", got)
			}
			w.git("r", "reset", "-q", "--hard", "main@{1}")
			w.git("r", "merge", "-q", "-m", "x", tt.in["rev"].(string))
			if theirs := w.git("r", "rev-parse", "HEAD^{tree}"); theirs != tree {
				t.Errorf("the tree is %s, git makes %s", tree, theirs)
			}
			contains(t, w.must("git_merge", tt.in), "Already up to date")
		})
	}
}

// TestMergeFarForward fast-forwards by more commits than a preview lists.
func TestMergeFarForward(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("r", "branch", "old")
	w.commits("r", make([]string, maxBetween+2)...)
	w.git("r", "symbolic-ref", "HEAD", "refs/heads/old")
	contains(t, w.must("git_merge", args{"path": "r", "rev": "main"}), "Branch old is now at "+w.git("r", "rev-parse", "main")[:10])
}

// TestMergeRefused: a merge that cannot succeed, or that would lose something, does
// nothing.
func TestMergeRefused(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.branches()
	head := w.git("r", "rev-parse", "HEAD")
	for _, tt := range []struct {
		name, setup string
		in          args
		code        tool.Code
		said        string
	}{
		{"no revision", "", args{}, tool.InvalidArgument, "rev is missing"},
		{"an option", "", args{"rev": "--strategy=x"}, tool.InvalidArgument, `begins with "-"`},
		{"an unknown revision", "", args{"rev": "none"}, tool.NotFound, "There is no commit none"},
		{"only a fast-forward", "", args{"rev": "beside", "ff": "only"}, tool.Conflict, "cannot be fast-forwarded"},
		{"nothing to abort", "", args{"abort": true}, tool.NotFound, "No merge is in progress"},
		{"a changed file", "echo x >> a.txt", args{"rev": "beside"}, tool.Conflict, "would be overwritten: r/a.txt"},
		{"a staged file", "echo x >> a.txt; git add a.txt", args{"rev": "beside"}, tool.Conflict, "would be overwritten: r/a.txt"},
		{"another staged file", "echo x > x.txt; git add x.txt", args{"rev": "beside"}, tool.Conflict, "staged changes: r/x.txt"},
		{"a renamed file", "echo x >> dir/b.txt", args{"rev": "beside"}, tool.Conflict, "would be overwritten: r/dir/b.txt"},
		{"a file in conflict", "echo x >> a.txt", args{"rev": "against"}, tool.Conflict, "would be overwritten: r/a.txt"},
		{"an untracked file", "echo x > dir/c.txt", args{"rev": "beside"}, tool.Conflict, "Untracked files would be lost: r/dir/c.txt"},
		{"an ignored file", "echo dir/new.txt > .git/info/exclude; echo x > dir/new.txt", args{"rev": "ahead"}, tool.Conflict, "Untracked files would be lost: r/dir/new.txt"},
		{"a marked file", "git update-index --assume-unchanged a.txt; echo x >> a.txt", args{"rev": "beside"}, tool.Conflict, "as unchanged: r/a.txt"},
		{"another history", "git checkout -q --orphan other; git commit -qm x; git checkout -q main", args{"rev": "other"}, tool.Conflict, "unrelated histories"},
		{"a cherry-pick", "git cherry-pick against || true", args{"rev": "beside"}, tool.Conflict, "A cherry-pick is in progress"},
	} {
		tt.in["path"] = "r"
		if out, err := w.runIn(filepath.Join(w.dir, "r"), "bash", "-ec", tt.setup); err != nil {
			t.Fatalf("%s: %v\n%s", tt.name, err, out)
		}
		before := w.git("r", "status", "--porcelain")
		contains(t, w.refused("git_merge", tt.in, tt.code), tt.said)
		if got := w.git("r", "status", "--porcelain") + w.git("r", "rev-parse", "HEAD"); got != before+head {
			t.Errorf("%s: the repository was %q, and is %q", tt.name, before+head, got)
		}
		if tt.setup != "" {
			_, _ = w.runIn(filepath.Join(w.dir, "r"), "bash", "-c", "git update-index --no-assume-unchanged a.txt; git reset -q --hard; git clean -qfdx")
		}
	}
	w.write(map[string]string{"r/dir/b.txt": "changed\n"})
	w.must("git_merge", args{"path": "r", "rev": "ahead"}) // which has nothing to do with dir/b.txt
	if got := w.git("r", "status", "--porcelain"); got != " M dir/b.txt" {
		t.Errorf("afterwards, git status says %q", got)
	}
}

// TestMergeConflicts: conflicts stay in the files. git_commit concludes the merge, and
// abort undoes it.
func TestMergeConflicts(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.branches()
	head := w.git("r", "rev-parse", "HEAD")
	in := args{"path": "r", "rev": "against"}
	p, text := w.preview("git_merge", in)
	contains(t, text, "conflicts in 1 file", "  UU r/a.txt")
	got := w.approved("git_merge", in, p)
	if got.Error == nil || got.Error.Code != tool.Conflict {
		t.Fatalf("git_merge = %v", got.Error)
	}
	contains(t, got.Error.ModelText(), "conflicts in 1 file: r/a.txt", "git_add them and git_commit", "abort")
	contains(t, w.read("r/a.txt"), "<<<<<<< HEAD\none\n=======\neins\n>>>>>>> against\n")
	contains(t, w.must("git_status", args{"path": "r"}), "In progress: merge", "UU r/a.txt (conflict)")
	contains(t, w.must("git_diff", args{"path": "r"}), "diff --cc r/a.txt", "++>>>>>>> against")
	contains(t, w.refused("git_merge", args{"path": "r", "rev": "beside"}, tool.Conflict), "A merge is in progress", "git_merge and abort")
	contains(t, w.refused("git_cherry_pick", args{"path": "r", "abort": true}, tool.NotFound), "No cherry-pick is in progress")

	p, text = w.preview("git_merge", args{"path": "r", "abort": true})
	contains(t, text, "Undoes the merge in progress on branch main", "-<<<<<<< HEAD")
	w.write(map[string]string{"r/a.txt": "resolved in part\n"})
	if got := w.approved("git_merge", args{"path": "r", "abort": true}, p); got.Error == nil {
		t.Error("an abort discards changes that were not shown")
	}
	contains(t, w.must("git_merge", args{"path": "r", "abort": true}), "Undid the merge: branch main is at "+head[:10])
	if got := w.git("r", "status", "--porcelain") + w.git("r", "rev-parse", "HEAD"); got != head {
		t.Errorf("after the abort: %s, want %s", got, head)
	}

	w.refused("git_merge", in, tool.Conflict)
	w.write(map[string]string{"r/a.txt": "resolved\n"})
	w.must("git_add", args{"files": []string{"r/a.txt"}})
	_, text = w.preview("git_commit", args{"path": "r", "message": "merged"})
	contains(t, text, "Finishes a merge")
	w.must("git_commit", args{"path": "r", "message": "merged"})
	if got, want := w.git("r", "log", "-1", "--format=%P"), head+" "+w.git("r", "rev-parse", "against"); got != want {
		t.Errorf("the merge has the parents %s, want %s", got, want)
	}
	contains(t, w.must("git_status", args{"path": "r"}), "clean")

	// git itself finishes what the tool began.
	w.git("r", "reset", "-q", "--hard", head)
	w.refused("git_merge", in, tool.Conflict)
	w.git("r", "checkout", "--theirs", "a.txt")
	w.git("r", "add", "a.txt")
	w.git("r", "commit", "-q", "--no-edit")
	if got := w.git("r", "log", "-1", "--format=%s"); got != "Merge against into main" {
		t.Errorf("git's commit is %q", got)
	}
}

// kindsOfConflicts makes a repository whose branches main and other are in conflict in all
// kinds.
func (w *workspace) kindsOfConflicts() {
	w.Helper()
	w.copyTemplate(filepath.Join(w.dir, "r"), `
		git init -q -b main .
		git config user.name Ada
		git config user.email ada@example.com
		for name in both ours theirs moved; do seq 20 > $name; done
		mkdir dir; seq 30 40 > dir/x
		printf 'a\0b' > binary
		git add -A
		git commit -qm first
		git checkout -qb other
		sed -i s/1/other/ both; git rm -q ours; sed -i s/2/other/ theirs; git mv moved elsewhere
		echo other > added; printf 'a\0other' > binary; git rm -qr dir; echo file > dir; chmod +x both; ln -s both link
		git add -A; git commit -qm other
		git checkout -q main
		sed -i s/1/mine/ both; sed -i s/2/mine/ ours; git rm -q theirs; git mv moved here; ln -s ours link
		echo mine > added; printf 'a\0mine' > binary; sed -i s/30/mine/ dir/x
		git add -A; git commit -qm mine
	`)
}

// TestMergeKindsOfConflicts: what the tool leaves in the index and the files is what git
// leaves, but for the names in conflict markers.
func TestMergeKindsOfConflicts(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.kindsOfConflicts()
	state := func() string {
		out, err := w.runIn(filepath.Join(w.dir, "r"), "bash", "-c", "git ls-files -s -t; git status --porcelain; find . -path ./.git -prune -o -type f -print | sort | xargs sha1sum; cat .git/MERGE_HEAD")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := w.refused("git_merge", args{"path": "r", "rev": "other"}, tool.Conflict)
	contains(t, got, "r/both", "r/added", "r/binary")
	ours := state()
	w.git("r", "reset", "-q", "--merge")
	w.git("r", "clean", "-qfd")
	if _, err := w.tryGit("r", "merge", "-q", "other"); err == nil {
		t.Fatal("git merges without conflicts")
	}
	if theirs := state(); ours != theirs {
		t.Errorf("the tool leaves\n%s\ngit leaves\n%s", ours, theirs)
	}
	for _, letters := range []string{"UU both", "UD ours", "DU theirs", "AA added", "UU binary"} {
		contains(t, ours, letters)
	}
}

// TestManyConflicts: previews and results of a merge or rebase with 10,000 conflicts are
// bounded, and git_status lists the files in parts. There are fewer, with names that take as much
// room in a preview, but for make soak. The calls themselves have even fewer: they write the files.
func TestManyConflicts(t *testing.T) {
	t.Parallel()
	many, pad := soak.Rounds(2000, 10_000), strings.Repeat("x", soak.Rounds(85, 0))
	few := soak.Rounds(250, many)
	name := func(i int) string { return fmt.Sprintf("dir%d/file-%d%s", i/1000, i, pad) }
	w := newWorkspace(t, started{})
	// The branches change the files, and main deletes them: making the test writes none.
	var history strings.Builder
	for n, branch := range []struct {
		name  string
		files int
	}{{"main", many}, {"many", many}, {"few", few}, {"main", 0}} {
		fmt.Fprintf(&history, "commit refs/heads/%s\nmark :%d\ncommitter Ada <ada@example.com> 1767323045 +0000\ndata 1\nx\n", branch.name, n+1)
		if n > 0 {
			history.WriteString("from :1\n")
		}
		if branch.files == 0 {
			history.WriteString("deleteall\n")
		}
		for i := range branch.files {
			fmt.Fprintf(&history, "M 644 inline %s\ndata 1\n%d\n", name(i), n)
		}
	}
	w.git("", "init", "-q", "-b", "main", "r")
	w.git("r", "config", "user.name", "Ada")
	w.git("r", "config", "user.email", "ada@example.com")
	w.fastImport(filepath.Join(w.dir, "r"), history.String())
	for _, tt := range []struct{ name, arg, doing, letters string }{{"git_merge", "rev", "merge", "DU"}, {"git_rebase", "upstream", "rebase", "UD"}} {
		p, text := w.preview(tt.name, args{"path": "r", tt.arg: "many"})
		contains(t, p.Summary, fmt.Sprintf("conflicts in %d files", many))
		contains(t, text, "  "+tt.letters+" r/"+name(many-1)+"\n")
		if len(text) > 3*maxPreview || len(text) < maxPreview/2 {
			t.Errorf("the preview has %d bytes", len(text))
		}
		if text := w.refused(tt.name, args{"path": "r", tt.arg: "few"}, tool.Conflict); len(text) > 1000+10*len(pad) {
			t.Errorf("the result has %d bytes: %.200s", len(text), text)
		}
		status := structured[Status](w, "git_status", args{"path": "r"})
		if status.Conflicts != few || status.NextCursor == "" || status.Doing != tt.doing {
			t.Errorf("%d conflicts, next %q, %s in progress", status.Conflicts, status.NextCursor, status.Doing)
		}
		w.must(tt.name, args{"path": "r", "abort": true})
		contains(t, w.must("git_status", args{"path": "r"}), "On branch main", "clean")
	}
}

// TestApplyAsApproved: what was approved is made, or nothing is.
func TestApplyAsApproved(t *testing.T) {
	for name, in := range map[string]args{
		"git_merge": {"path": "r", "rev": "beside"}, "git_cherry_pick": {"path": "r", "revs": []string{"beside~1"}}, "git_revert": {"path": "r", "revs": []string{"main"}},
		"git_rebase": {"path": "r", "upstream": "beside"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{})
			w.branches()
			p, _ := w.preview(name, in)
			for _, move := range [][]string{{"commit", "-q", "--allow-empty", "-m", "x"}, {"branch", "-qf", "beside", "ahead"}, {"config", "user.email", "eve@example.com"}} {
				if name != "git_merge" && move[0] != "commit" {
					continue // the same code
				}
				before, head := w.git("r", "rev-parse", "beside"), w.git("r", "rev-parse", "HEAD")
				w.git("r", move...)
				now := w.git("r", "rev-parse", "HEAD")
				if got := w.approved(name, in, p); got.Error == nil || got.Error.Code != tool.Conflict {
					t.Errorf("after git %q: %v", move, got.Error)
				}
				if got := w.git("r", "rev-parse", "HEAD"); got != now {
					t.Errorf("after git %q, the branch has moved", move)
				}
				w.git("r", "branch", "-qf", "beside", before)
				w.git("r", "reset", "-q", "--hard", head)
				w.git("r", "config", "user.email", "ada@example.com")
			}
			if got := w.approved(name, in, p); got.Error != nil {
				t.Errorf("as it was approved: %v", got.Error)
			}
		})
	}
}

// TestApplyRespectsFiles: a change of a protected or forbidden file is refused as a whole.
func TestApplyRespectsFiles(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.branches()
	calls := map[string]args{
		"git_merge": {"path": "r", "rev": "beside"}, "git_cherry_pick": {"path": "r", "revs": []string{"beside~1"}}, "git_revert": {"path": "r", "revs": []string{"HEAD"}},
		"git_rebase": {"path": "r", "upstream": "beside"},
	}
	w.forbidding(started{}, w.dir+"/r/a.txt")
	for name, in := range calls {
		got := w.refused(name, in, tool.PermissionDenied)
		contains(t, got, "1 forbidden file")
		if strings.Contains(got, "a.txt") {
			t.Errorf("%s names the file: %s", name, got)
		}
	}
	w.start(started{})
	w.git("r", "checkout", "-q", "beside")
	w.write(map[string]string{"r/.vscode/tasks.json": "{}\n"})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "tasks")
	w.git("r", "checkout", "-q", "main")
	calls["git_cherry_pick"] = args{"path": "r", "revs": []string{"beside"}}
	delete(calls, "git_revert")
	for name, in := range calls {
		contains(t, w.refused(name, in, tool.PermissionDenied), "r/.vscode/tasks.json")
	}
}
