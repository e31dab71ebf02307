package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testprogram"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// forbidding starts the plugin with forbidden patterns; everything else is allowed.
func (w *workspace) forbidding(how started, patterns ...string) {
	w.Helper()
	how.options = func(o *sdktest.Options) {
		o.Context.Files = &tool.FilePolicy{Forbidden: patterns, Allowed: []string{w.dir}}
	}
	w.start(how)
}

// silent reports an error if a text mentions a forbidden file of these tests.
func silent(tb testing.TB, what, text string) {
	tb.Helper()
	for _, word := range []string{"KEY=", "private", "secret"} {
		if strings.Contains(text, word) {
			tb.Errorf("%s tells of %q:\n%s", what, word, text)
		}
	}
}

// TestForbiddenFiles checks that forbidden files are not shown, listed or staged, even when a
// person approves it.
func TestForbiddenFiles(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/secret": "KEY=first\n", "r/private/k": "KEY=second\n", "r/a.txt": "1\n"})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "first")
	w.write(map[string]string{"r/secret": "KEY=third\n", "r/private/new": "KEY=fourth\n", "r/a.txt": "2\n"})
	w.start(started{options: func(o *sdktest.Options) {
		o.Context.Files = &tool.FilePolicy{Forbidden: []string{w.dir + "/r/secret", "**/private"}, Allowed: []string{w.dir + "/r"}}
	}})
	for name, in := range map[string]args{
		"git_status": {"path": "r"}, "git_diff": {"path": "r"}, "git_show": {"path": "r"},
	} {
		got := w.must(name, in)
		contains(t, got, "a.txt")
		for _, word := range []string{"KEY=", "private", "r/secret"} {
			if strings.Contains(got, word) {
				t.Errorf("%s tells of %s:\n%s", name, word, got)
			}
		}
	}
	contains(t, w.refused("git_blame", args{"path": "r/secret"}, tool.PermissionDenied), "Path not allowed by security policy: r/secret")
	w.must("git_add", args{"files": []string{"r"}})
	if got := w.git("r", "diff", "--cached", "--name-only"); got != "a.txt" {
		t.Errorf("git_add has staged %q, want a.txt alone", got)
	}
}

// TestForbiddenIsNotTold: nothing that reads names a forbidden file or shows one, by a
// path, a revision or a list; a diff says how many it has left out.
func TestForbiddenIsNotTold(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/secret": "KEY=first\n", "r/private/k": "KEY=second\n", "r/b.txt": "b\n"})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "third")
	w.write(map[string]string{"r/secret": "KEY=third\n", "r/private/k": "KEY=fourth\n", "r/private/new": "KEY=fifth\n", "r/a.txt": "2\n"})
	w.git("r", "init", "-q", "private/nested")
	w.git("r/private/nested", "commit", "-q", "--allow-empty", "-m", "nested")
	w.git("r", "mv", "b.txt", "private/b.txt")
	w.forbidding(started{}, w.dir+"/r/secret", "**/private")
	for _, tt := range []struct {
		name    string
		in      args
		leftOut int
	}{
		{"git_diff", args{"path": "r"}, 2},
		{"git_diff", args{"path": "r", "stat": true}, 2},
		{"git_diff", args{"path": "r", "base": "HEAD~1"}, 3},
		{"git_diff", args{"path": "r", "base": "HEAD~1", "stat": true}, 3},
		{"git_diff", args{"path": "r", "base": "HEAD~1", "head": "HEAD"}, 2},
		{"git_diff", args{"path": "r", "base": "HEAD~1", "head": "HEAD", "stat": true}, 2},
		{"git_diff", args{"path": "r", "staged": true, "stat": true}, 1},
		{"git_show", args{"path": "r"}, 2},
	} {
		got := w.must(tt.name, tt.in)
		silent(t, tt.name, got)
		contains(t, got, "["+display.Plural(tt.leftOut, "forbidden file")+" left out]")
		if found := structured[Diff](w, tt.name, tt.in); found.Forbidden != tt.leftOut || found.LeftOut != 0 {
			t.Errorf("%s(%v) leaves out %d forbidden and %d sensitive files, want %d and 0", tt.name, tt.in, found.Forbidden, found.LeftOut, tt.leftOut)
		}
	}
	if got := structured[Diff](w, "git_diff", args{"path": "r", "stat": true}); got.Total != 1 || got.Added != 1 || len(got.Files) != 1 {
		t.Errorf("without forbidden files, git_diff counts %d files and %d lines, want 1 and 1", got.Total, got.Added)
	}
	for _, name := range []string{"git_status", "git_log", "git_branch", "git_stash"} {
		silent(t, name, w.must(name, args{"path": "r"}))
	}
	for _, path := range []string{"r/secret", "r/private", "r/private/k", "r/private/gone"} {
		for name, in := range map[string]args{
			"git_blame": {"path": path}, "git_show": {"path": path}, "git_log": {"path": path}, "git_status": {"path": path}, "git_diff": {"path": path},
			"git_add": {"files": []string{path}}, "git_restore": {"files": []string{path}}, "git_commit": {"files": []string{path}, "message": "x"},
		} {
			contains(t, w.refused(name, in, tool.PermissionDenied), "Path not allowed by security policy: "+path)
		}
		w.refused("git_show", args{"path": path, "content": true}, tool.PermissionDenied)
		w.refused("git_diff", args{"path": "r", "files": []string{path}}, tool.PermissionDenied)
	}
	for name, in := range map[string]args{
		"git_show": {"path": "r", "rev": "HEAD:secret"}, "git_log": {"path": "r", "rev": "HEAD:secret"},
		"git_diff": {"path": "r", "base": "HEAD:secret", "head": "HEAD:private/k"},
	} {
		if got := w.refused(name, in, tool.NotFound); strings.Contains(got, "KEY=") {
			t.Errorf("%s of an object shows %s", name, got)
		}
	}
	_, shown := w.preview("git_add", args{"files": []string{"r"}})
	silent(t, "the preview of git_add", shown)
	if strings.Contains(shown, "nested repositories") {
		t.Errorf("the preview of git_add tells of a forbidden repository:\n%s", shown)
	}
}

// TestForbiddenIsNotChanged: no change of a repository includes a forbidden file, and the
// refusal does not name it. Without the list each change is made.
func TestForbiddenIsNotChanged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		tool   string
		in     args
		before func(w *workspace) // after a commit that has the file, which the branch old has otherwise
	}{
		{"switch", "git_switch", args{"path": "r", "branch": "old"}, nil},
		{"detach", "git_switch", args{"path": "r", "branch": "HEAD~1", "detach": true}, nil},
		{"reset soft", "git_reset", args{"path": "r", "rev": "old", "mode": "soft"}, nil},
		{"reset mixed", "git_reset", args{"path": "r", "rev": "old"}, nil},
		{"reset keep", "git_reset", args{"path": "r", "rev": "old", "mode": "keep"}, nil},
		{"reset hard", "git_reset", args{"path": "r", "mode": "hard"}, func(w *workspace) { w.write(map[string]string{"r/secret": "KEY=new\n"}) }},
		{"restore", "git_restore", args{"files": []string{"r"}}, func(w *workspace) { w.write(map[string]string{"r/secret": "KEY=new\n"}) }},
		{"restore what was deleted", "git_restore", args{"files": []string{"r"}}, func(w *workspace) { w.remove("r/secret") }},
		{"restore from a commit", "git_restore", args{"files": []string{"r"}, "source": "old"}, nil},
		{"unstage", "git_restore", args{"files": []string{"r"}, "where": "index"}, func(w *workspace) {
			w.write(map[string]string{"r/secret": "KEY=new\n"})
			w.git("r", "add", "secret")
		}},
		{"commit", "git_commit", args{"path": "r", "message": "next"}, func(w *workspace) {
			w.write(map[string]string{"r/secret": "KEY=new\n"})
			w.git("r", "add", "secret")
		}},
		{"commit a rename", "git_commit", args{"path": "r", "message": "next"}, func(w *workspace) { w.git("r", "mv", "secret", "plain") }},
		{"stash", "git_stash", args{"path": "r", "action": "push"}, func(w *workspace) { w.write(map[string]string{"r/secret": "KEY=new\n"}) }},
		{"stash untracked", "git_stash", args{"path": "r", "action": "push", "untracked": true}, func(w *workspace) {
			w.write(map[string]string{"r/private/new": "KEY=new\n"})
		}},
		{"apply", "git_stash", args{"path": "r", "action": "apply"}, func(w *workspace) {
			w.write(map[string]string{"r/secret": "KEY=new\n"})
			w.git("r", "stash", "-q")
		}},
		{"pop untracked", "git_stash", args{"path": "r", "action": "pop"}, func(w *workspace) {
			w.write(map[string]string{"r/private/new": "KEY=new\n"})
			w.git("r", "stash", "-q", "-u")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{})
			w.repo("r")
			w.write(map[string]string{"r/secret": "KEY=old\n"})
			w.git("r", "add", "-A")
			w.git("r", "commit", "-qm", "third")
			w.git("r", "branch", "old")
			w.write(map[string]string{"r/secret": "KEY=now\n"})
			w.git("r", "commit", "-qam", "fourth")
			if tt.before != nil {
				tt.before(w)
			}
			state := func() string {
				return w.git("r", "rev-parse", "HEAD") + w.git("r", "status", "--porcelain", "-uall") + w.git("r", "diff", "HEAD") + w.git("r", "stash", "list")
			}
			before := state()
			w.forbidding(started{}, w.dir+"/r/secret", "**/private")
			got := w.refused(tt.tool, tt.in, tool.PermissionDenied)
			contains(t, got, "the change includes 1 forbidden file")
			silent(t, tt.tool, got)
			if _, err := w.plugin.Preview(t.Context(), tt.tool, tt.in); err == nil {
				t.Error("there is a preview of what is refused")
			} else {
				silent(t, "the preview", err.Error())
			}
			if after := state(); after != before {
				t.Errorf("what was refused has changed the repository:\n%s\nfrom\n%s", after, before)
			}
			w.start(started{})
			w.must(tt.tool, tt.in)
		})
	}
}

// TestForbiddenIsNotPulled: a remote's changes of forbidden files are not pulled, in any mode,
// and a push shows its changes without them.
func TestForbiddenIsNotPulled(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.git("", "init", "-q", "-b", "other", "theirs")
	w.repo("r")
	w.git("r", "remote", "add", "origin", "../theirs")
	w.git("r", "push", "-q", "origin", "main:main", "main:refs/heads/far")
	file := map[string]any{"protocols": []string{"file"}}
	w.git("theirs", "checkout", "-qf", "far")
	w.write(map[string]string{"theirs/secret": "KEY=theirs\n"})
	w.git("theirs", "add", "-A")
	w.git("theirs", "commit", "-qm", "theirs")
	w.forbidding(started{settings: file}, w.dir+"/r/secret")
	head := w.git("r", "rev-parse", "HEAD")
	for _, mode := range []string{"ff_only", "merge", "rebase"} {
		got := w.refused("git_pull", args{"path": "r", "branch": "far", "mode": mode}, tool.PermissionDenied)
		contains(t, got, "the change includes 1 forbidden file")
		silent(t, "git_pull", got)
	}
	if _, err := os.Lstat(filepath.Join(w.dir, "r/secret")); err == nil || w.git("r", "rev-parse", "HEAD") != head {
		t.Error("git_pull has brought the forbidden file")
	}
	w.write(map[string]string{"r/secret": "KEY=ours\n", "r/c.txt": "c\n"})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "ours")
	_, shown := w.preview("git_push", args{"path": "r"})
	silent(t, "the preview of git_push", shown)
	contains(t, shown, "NOT ALL IS SHOWN: 1 forbidden file left out.", "c.txt")
	w.git("r", "reset", "-q", "--hard", head)
	w.start(started{settings: file})
	w.must("git_pull", args{"path": "r", "branch": "far"})
}

// TestForbiddenInMessages: messages of git and the plugin do not name forbidden files: about
// conflicts, about possible losses, and in git's own words.
func TestForbiddenInMessages(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/secret": "KEY=old\n"})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "third")
	w.git("r", "checkout", "-qb", "other", "HEAD~1")
	w.write(map[string]string{"r/secret": "KEY=other\n"})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "other")
	if _, err := w.tryGit("r", "merge", "-q", "main"); err == nil {
		t.Fatal("the merge has no conflicts")
	}
	w.forbidding(started{}, w.dir+"/r/secret")
	for name, in := range map[string]args{
		"git_switch": {"path": "r", "branch": "main"}, "git_commit": {"path": "r", "message": "x"}, "git_stash": {"path": "r", "action": "push"},
	} {
		got := w.refused(name, in, tool.Conflict)
		silent(t, name, got)
		contains(t, got, "unresolved conflicts: 1 forbidden file")
	}
	silent(t, "git_diff during a conflict", w.must("git_diff", args{"path": "r"}))
	silent(t, "git_diff stat during a conflict", w.must("git_diff", args{"path": "r", "stat": true}))
	for _, said := range []string{"fatal: secret: odd", "fatal: cannot open 'secret': odd", "error: it is so:\n\tsecret\n", "error: pathspec 'secret' did not match", "fatal: HEAD:secret: odd"} {
		program := filepath.Join(w.scratch, "git")
		script := "#!/bin/sh\ncase \" $* \" in *' log '*) printf '%s\\n' \"" + said + "\" >&2; exit 128;; esac\nexec git \"$@\"\n"
		if err := testprogram.Write(program, strings.NewReader(script)); err != nil {
			t.Fatal(err)
		}
		w.forbidding(started{settings: map[string]any{"program": program}, layers: layers{noRules: true}}, w.dir+"/r/secret")
		got := w.call("git_log", args{"path": "r", "rev": "HEAD"})
		if got.Error == nil {
			t.Fatalf("git_log = %s", got.Text())
		}
		silent(t, "git_log", got.Error.ModelText())
		contains(t, got.Error.ModelText(), "forbidden file")
	}
}

// TestForbiddenThroughALink: a pattern that spells the workspace with a link in it holds.
func TestForbiddenThroughALink(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/secret": "KEY=new\n"})
	way := filepath.Join(w.scratch, "way")
	if err := os.Symlink(w.dir, way); err != nil {
		t.Fatal(err)
	}
	w.start(started{options: func(o *sdktest.Options) {
		o.Context.Roots = []string{way}
		o.Context.Files = &tool.FilePolicy{Forbidden: []string{way + "/r/secret"}}
	}})
	silent(t, "git_status", w.must("git_status", args{"path": "r"}))
	w.refused("git_add", args{"files": []string{"r/secret"}}, tool.PermissionDenied)
}

// TestForbiddenInPreviews: a preview contains no forbidden file that the call does not change,
// even if the file changes while git makes the patch.
func TestForbiddenInPreviews(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/secret": "KEY=old\n"})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "third")
	w.write(map[string]string{"r/a.txt": "changed\n"})
	program := filepath.Join(w.scratch, "git")
	script := "#!/bin/sh\ncase \" $* \" in *' --patch '*) echo KEY=now > \"$GIT_WORK_TREE/secret\";; esac\nexec git \"$@\"\n"
	if err := testprogram.Write(program, strings.NewReader(script)); err != nil {
		t.Fatal(err)
	}
	w.forbidding(started{settings: map[string]any{"program": program}, layers: layers{noRules: true}}, w.dir+"/r/secret")
	_, shown := w.preview("git_restore", args{"files": []string{"r"}})
	silent(t, "the preview", shown)
	contains(t, shown, "a.txt", "NOT ALL IS SHOWN: 1 forbidden file left out.")
	if w.read("r/secret") != "KEY=now\n" {
		t.Error("the file was not changed: the test shows nothing")
	}
	w.git("r", "stash", "-q")
	w.forbidding(started{}, w.dir+"/r/secret")
	in := args{"path": "r", "action": "drop"}
	p, shown := w.preview("git_stash", in)
	silent(t, "the preview", shown)
	contains(t, shown, "a.txt", "NOT ALL IS SHOWN: 1 forbidden file left out.")
	if got := w.approved("git_stash", in, p); got.Error != nil {
		t.Errorf("git_stash = %v", got.Error)
	}
}

// TestForbiddenNamesInLines checks names that git's output does not delimit.
func TestForbiddenNamesInLines(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	program := filepath.Join(w.scratch, "git")
	for name, said := range map[string]string{
		"a b": "error: unable to create file a b/c: Permission denied", "it's": "error: unable to unlink 'it's/c': Permission denied",
	} {
		script := "#!/bin/sh\ncase \" $* \" in *' log '*) printf '%s\\n' \"" + said + "\" >&2; exit 128;; esac\nexec git \"$@\"\n"
		if err := testprogram.Write(program, strings.NewReader(script)); err != nil {
			t.Fatal(err)
		}
		w.forbidding(started{settings: map[string]any{"program": program}, layers: layers{noRules: true}}, w.dir+"/r/"+name+"/**")
		got := w.call("git_log", args{"path": "r", "rev": "HEAD"})
		if got.Error == nil {
			t.Fatalf("git_log = %s", got.Text())
		}
		if text := got.Error.ModelText(); strings.Contains(text, name+"/c") || strings.Contains(text, "/c") || !strings.Contains(text, "[forbidden file]") {
			t.Errorf("the error names what is forbidden: %s", text)
		}
	}
}
