package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/sensitive"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestSensitiveFiles: diffs and commits are shown without files that usually hold
// secrets, and say how many, unless a call names one.
func TestSensitiveFiles(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/.env": "KEY=first\n", "r/dir/.ssh/k": "KEY=second\n", "r/:(top)x.pem": "KEY=third\n", "r/c.txt": "shown\n"})
	w.git("r", "add", "-A")
	check := func(name string, in args, leftOut int, want ...string) {
		t.Helper()
		w.start(started{options: allow(w, in)})
		got := w.must(name, in)
		contains(t, got, want...)
		if leftOut > 0 && strings.Contains(got, "KEY=") {
			t.Errorf("%s(%v) shows a secret:\n%s", name, in, got)
		}
		if found := structured[Diff](w, name, in); found.LeftOut != leftOut {
			t.Errorf("%s(%v) leaves out %d files, want %d", name, in, found.LeftOut, leftOut)
		}
	}
	check("git_diff", args{"path": "r", "staged": true}, 3, "+shown", "[3 sensitive files left out; name a file to see it]")
	check("git_diff", args{"path": "r/dir", "staged": true}, 1, "No differences", "[1 sensitive file left out")
	check("git_diff", args{"path": "r", "staged": true, "files": []string{"r/dir", "r/c.txt"}}, 1, "+shown")
	check("git_diff", args{"path": "r", "staged": true, "files": []string{"r"}}, 3, "+shown")
	check("git_diff", args{"path": "r", "staged": true, "files": []string{"r/.env"}}, 0, "+KEY=first")
	check("git_diff", args{"path": "r", "staged": true, "files": []string{"r/dir/.ssh"}}, 0, "+KEY=second")
	check("git_diff", args{"path": "r", "staged": true, "files": []string{"r/:(top)x.pem", "r/.env"}}, 0, "+KEY=third")
	w.git("r", "commit", "-qm", "third")
	check("git_show", args{"path": "r"}, 3, "+shown", "[3 sensitive files left out")
	check("git_show", args{"path": "r/.env"}, 0, "+KEY=first")
	check("git_diff", args{"path": "r", "base": "HEAD~1", "head": "HEAD"}, 3, "+shown")
	w.git("r", "mv", ".env", "plain")
	if got := structured[Diff](w, "git_diff", args{"path": "r", "staged": true}); got.LeftOut != 1 || strings.Contains(got.Patch, "-KEY=") {
		t.Errorf("of a secret that was renamed, git_diff leaves out %d files and shows\n%s", got.LeftOut, got.Patch)
	}
	w.git("r", "reset", "-q", "--hard")
	w.write(map[string]string{"r/.ENV": "KEY=fourth\n"})
	w.git("r", "add", "-A")
	check("git_diff", args{"path": "r", "staged": true}, 1, "No differences")

	for _, in := range []args{{"path": "r/dir/.ssh/k", "content": true}, {"path": "r/dir/.ssh/k"}} {
		name := "git_blame"
		if in["content"] != nil {
			name = "git_show"
		}
		w.start(started{})
		contains(t, w.refused(name, in, tool.PermissionDenied), "Path not allowed by security policy: r/dir/.ssh/k")
		w.start(started{options: allow(w, in)})
		contains(t, w.must(name, in), "KEY=second")
	}
	if err := (&settings{Secrets: []string{}}).check(); err == nil || !strings.Contains(err.Error(), "in the paths block of the policy") {
		t.Errorf("check of the setting secrets returns %v", err)
	}
}

// TestSensitiveFilesOfTheHost: the host's list counts, also absolute patterns of it.
func TestSensitiveFilesOfTheHost(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/.env": "shown\n", "r/c.txt": "KEY=first\n", "r/dir/x": "KEY=second\n", "r/x": "also\n"})
	w.git("r", "add", "-A")
	w.start(started{options: func(o *sdktest.Options) {
		o.Context.Files = &tool.FilePolicy{Sensitive: []string{"c.txt", w.dir + "/r/dir"}}
	}})
	got := w.must("git_diff", args{"path": "r", "staged": true})
	contains(t, got, "+shown", "+also", "2 sensitive files left out")
	if strings.Contains(got, "KEY=") {
		t.Errorf("git_diff shows\n%s", got)
	}
	w.start(started{options: func(o *sdktest.Options) { o.Context.Files = &tool.FilePolicy{} }})
	contains(t, w.must("git_diff", args{"path": "r", "staged": true}), "KEY=first", "KEY=second")
}

// allow is the host's word that a call may use the sensitive files that it names.
func allow(w *workspace, in args) func(*sdktest.Options) {
	named, _ := in["files"].([]string)
	if path, ok := in["path"].(string); ok && len(named) == 0 {
		named = []string{path}
	}
	policy := &tool.FilePolicy{Sensitive: sensitive.Default()}
	patterns, err := sensitive.Parse(policy.Sensitive)
	if err != nil {
		w.Fatal(err)
	}
	for _, name := range named {
		if abs := filepath.Join(w.dir, name); patterns.Match(name) {
			policy.Allowed = append(policy.Allowed, abs)
		}
	}
	return func(o *sdktest.Options) { o.Context.Files = policy }
}

// TestSensitiveFilesAreNotStaged: staging a directory leaves out new and changed sensitive files
// in it, and the result says so.
func TestSensitiveFilesAreNotStaged(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"git_add", "git_commit"} {
		w := newWorkspace(t, started{})
		w.repo("r")
		w.write(map[string]string{"r/.env": "KEY=first\n", "r/gone.key": "KEY=second\n", "r/a.txt": "1\n"})
		w.git("r", "add", "-A")
		w.git("r", "commit", "-qm", "first")
		w.write(map[string]string{"r/.env": "KEY=third\n", "r/sub/id_rsa": "KEY=fourth\n", "r/.ssh/k": "KEY=fifth\n", "r/a.txt": "2\n"})
		if err := os.Remove(filepath.Join(w.dir, "r/gone.key")); err != nil {
			t.Fatal(err)
		}
		made := func() []string { // the files that the last call staged or committed
			if name == "git_commit" {
				return strings.Fields(w.git("r", "show", "--name-only", "--format="))
			}
			return strings.Fields(w.git("r", "diff", "--cached", "--name-only"))
		}
		in := func(files ...string) args {
			if name == "git_commit" {
				return args{"message": "next", "files": files}
			}
			return args{"files": files}
		}
		all := in("r")
		w.start(started{})
		contains(t, w.must(name, all), "2 files", "sensitive files left out: r/.env, r/.ssh/k, r/sub/id_rsa; name a file to stage it")
		if got := made(); !slices.Equal(got, []string{"a.txt", "gone.key"}) {
			t.Errorf("%s of all stages %q, want a.txt and that gone.key is deleted", name, got)
		}
		contains(t, w.refused(name, all, tool.PermissionDenied), "Only sensitive files have changed: r/.env, r/.ssh/k, r/sub/id_rsa")
		contains(t, w.refused(name, in("r/.env"), tool.PermissionDenied), "Only sensitive files have changed: r/.env")

		named := in("r", "r/.env", "r/.ssh")
		w.start(started{options: allow(w, named)})
		contains(t, w.must(name, named), "sensitive files left out: r/sub/id_rsa")
		if got := made(); !slices.Contains(got, ".env") || !slices.Contains(got, ".ssh/k") || slices.Contains(got, "sub/id_rsa") {
			t.Errorf("%s of files that are named stages %q", name, got)
		}
	}
}

// TestSensitiveFilesInParts: the parts of a long diff leave the same files out.
func TestSensitiveFilesInParts(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{budget: 8 * tool.KiB})
	w.repo("r")
	w.write(map[string]string{"r/.env": "KEY=first\n", "r/z.pem": "KEY=last\n", "r/long.txt": strings.Repeat("a line of some length\n", 2000)})
	w.git("r", "add", "-A")
	in := args{"path": "r", "staged": true}
	parts := 0
	for {
		got := structured[Diff](w, "git_diff", in)
		if parts++; strings.Contains(got.Patch, "KEY=") || got.LeftOut != 2 {
			t.Fatalf("part %d leaves out %d files:\n%s", parts, got.LeftOut, got.Patch)
		}
		if got.NextCursor == "" {
			break
		}
		in["cursor"] = got.NextCursor
	}
	if parts < 3 {
		t.Errorf("the diff has %d parts: the test shows nothing", parts)
	}
}

// TestSensitiveRace: a sensitive file that changes while git compares is not shown, not even in
// a later part or next to a conflict.
func TestSensitiveRace(t *testing.T) {
	t.Parallel()
	const write = `echo KEY=now > "$GIT_WORK_TREE/.env"`
	for _, tt := range []struct {
		name, when string // of git's arguments
		conflict   bool
	}{
		{"whole", "*' --patch '*", false},
		{"conflict", "*' --raw '*) ;; *' --patch '*", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{})
			w.repo("r")
			w.write(map[string]string{"r/.env": "KEY=old\n"})
			w.git("r", "add", "-A")
			w.git("r", "commit", "-qm", "third")
			if tt.conflict {
				w.git("r", "checkout", "-qb", "other", "HEAD~2")
				w.write(map[string]string{"r/a.txt": "other\n"})
				w.git("r", "commit", "-qam", "other")
				if _, err := w.tryGit("r", "merge", "-q", "main"); err == nil {
					t.Fatal("the merge has no conflicts")
				}
			}
			w.write(map[string]string{"r/dir/b.txt": strings.Repeat("a line of some length\n", 500)})
			w.pretend(`case " $* " in ` + tt.when + `) ` + write + ` ;; esac`)
			cursor := ""
			for parts := 0; parts == 0 || cursor != ""; parts++ {
				got := structured[Diff](w, "git_diff", args{"path": "r", "cursor": cursor})
				if strings.Contains(got.Patch, "KEY=") {
					t.Fatalf("part %d shows the secret:\n%s", parts, got.Patch)
				}
				if parts == 0 {
					contains(t, got.Patch, "+a line of some length")
					if tt.conflict {
						contains(t, got.Patch, "diff --cc r/a.txt")
					} else if got.LeftOut != 1 {
						t.Errorf("the diff leaves out %d files, want 1", got.LeftOut)
					}
				}
				cursor = string(got.NextCursor)
			}
			if !strings.Contains(w.read("r/.env"), "KEY=now") {
				t.Error("the file was not changed: the test shows nothing")
			}
		})
	}
}
