package main

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestClone clones from a server, and works with the clone.
func TestClone(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	s := serve(w, "s3cret")
	w.repo("r")
	w.git("r", "tag", "v1", "HEAD~1")
	w.git("r", "branch", "other", "HEAD~1")
	s.repository(w, "r")
	w.start(started{settings: s.settings(), secrets: map[string]string{"example": "s3cret"}})
	in := args{"url": s.URL + "/r.git", "path": "new/copy"}
	p, text := w.preview("git_clone", in)
	contains(t, text, "Clones "+s.URL+"/r.git into new/copy: the default branch, all commits\n", "Address: "+s.URL+"/r.git\n")
	if s.asked.Load() != 0 || there(w, "new") {
		t.Error("the preview has asked the remote, or made a directory")
	}
	got := w.approved("git_clone", in, p)
	if got.Error != nil {
		t.Fatal(got.Error)
	}
	head := w.git("r", "rev-parse", "HEAD")
	contains(t, got.Text(), "Cloned "+s.URL+"/r.git into new/copy: branch main is at "+head[:10]+", 2 files")
	if got := w.git("new/copy", "for-each-ref", "--format=%(refname)"); got != "refs/heads/main\nrefs/remotes/origin/main\nrefs/remotes/origin/other\nrefs/tags/v1" {
		t.Errorf("the references are\n%s", got)
	}
	status := structured[Status](w, "git_status", args{"path": "new/copy"})
	if !status.Clean || status.Commit != head || status.Upstream != "origin/main" {
		t.Errorf("the status is %+v", status)
	}
	if got := w.git("new/copy", "diff-files") + w.git("new/copy", "fsck"); got != "" {
		t.Errorf("the index does not know the files, or an object is missing: %s", got)
	}
	if config := w.read("new/copy/.git/config"); strings.Contains(config, "s3cret") || there(w, "new/copy/.git/hooks") {
		t.Errorf("the clone has hooks, or a secret:\n%s", config)
	}
	theirs := s.commitOn(w, "r", "main", "theirs.txt", "x")
	contains(t, w.must("git_pull", args{"path": "new/copy"}), theirs[:10])

	// Only the end of one branch, into an empty workspace.
	w = newWorkspace(t, started{settings: s.settings(), secrets: map[string]string{"example": "s3cret"}})
	in = args{"url": s.URL + "/r.git", "path": ".", "branch": "main", "depth": 2}
	_, text = w.preview("git_clone", in)
	contains(t, text, "into the workspace: branch main, only the last 2 commits")
	w.must("git_clone", in)
	if got := w.git("", "rev-list", "--count", "--all") + w.git("", "for-each-ref", "--format= %(refname)"); got != "2 refs/heads/main\n refs/remotes/origin/main" {
		t.Errorf("the clone has %s", got)
	}
	w.must("git_fetch", args{})
}

// TestCloneKinds clones repositories of the workspace.
func TestCloneKinds(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{settings: map[string]any{"protocols": []string{"file"}}})
	w.git("", "init", "-q", "-b", "trunk", "--object-format=sha256", "sha256")
	w.write(map[string]string{
		"sha256/a.txt": "a\n", "sha256/.gitattributes": "*.bin filter=lfs\n", "sha256/x.bin": "x\n", "sha256/.vscode/tasks.json": "{}\n", "sha256/.envrc": "x\n",
		"sha256/secret": "KEY=\n", "sha256/.gitmodules": "[submodule \"sub\"]\n\tpath = sub\n\turl = ../sha256\n\tupdate = !touch OWNED\n",
	})
	w.git("sha256", "add", "-A")
	w.git("sha256", "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 64)+",sub")
	w.git("sha256", "commit", "-qm", "first")
	w.forbidding(started{settings: map[string]any{"protocols": []string{"file"}}}, w.dir+"/copy/secret")
	got := w.must("git_clone", args{"url": "sha256", "path": "copy"})
	contains(t, got, "branch trunk is at ", "4 files", "without the filter that .gitattributes sets, such as git-lfs: copy/x.bin", "[1 submodule left out]", "[not checked out", "copy/.envrc, copy/.vscode/tasks.json, 1 forbidden file]")
	silent(t, "git_clone", got)
	for _, name := range []string{"copy/.vscode", "copy/.envrc", "copy/secret"} {
		if there(w, name) {
			t.Errorf("the clone has %s", name)
		}
	}
	// What is left out does not count as deleted.
	contains(t, w.must("git_status", args{"path": "copy"}), "Nothing to commit, clean")
	// A git that writes all files of the index, whatever it marks.
	w.pretend(`case " $* " in *" --skip-worktree "*) cat > /dev/null; exit ;; esac`)
	contains(t, w.must("git_clone", args{"url": "sha256", "path": "unmarked"}), "unmarked/.envrc, unmarked/.vscode/tasks.json")
	for _, name := range []string{"unmarked/.vscode", "unmarked/.envrc"} {
		if there(w, name) {
			t.Errorf("the clone has %s", name)
		}
	}

	w.start(started{settings: map[string]any{"protocols": []string{"file"}}})
	w.git("", "init", "-q", "none")
	contains(t, w.must("git_clone", args{"url": "./none/.git", "path": "copy2"}), "no commits on a default branch yet")
	contains(t, w.refused("git_clone", args{"url": "sha256", "path": "copy3", "branch": "none"}, tool.NotFound), "no branch none")
	w.git("sha256", "checkout", "-q", "--detach")
	contains(t, w.refused("git_clone", args{"url": "sha256", "path": "copy3"}, tool.Failed), "no default branch")
	contains(t, w.must("git_clone", args{"url": "file://" + w.dir + "/sha256", "path": "copy3", "branch": "trunk"}), "branch trunk is at ")
}

// TestCloneRefused: a call that cannot succeed makes no directory.
func TestCloneRefused(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("", "init", "-q", "--bare", "bare.git")
	w.write(map[string]string{"file": "x\n", "secret/x": "x\n"})
	w.git("", "init", "-q", "deploy.key")
	w.link("..", "out")
	w.link("secret", "open")
	w.forbidding(started{settings: map[string]any{"protocols": []string{"https", "file"}}}, w.dir+"/secret/**")
	before := w.names()
	for _, tt := range []struct {
		url, path string
		code      tool.Code
		said      string
	}{
		{"r", "r", tool.Conflict, "r is not empty"},
		{"r", "file", tool.Conflict, "is not a directory"},
		{"r", "../x", tool.PermissionDenied, "outside the workspace"},
		{"r", "out/x", tool.PermissionDenied, "outside the workspace"},
		{"r", "secret", tool.PermissionDenied, "not allowed"},
		{"r", "r/.git/hooks", tool.PermissionDenied, "files there name"},
		{"r", "r/.GIT/x", tool.PermissionDenied, "files there name"},
		{"r", "bare.git/hooks/x", tool.PermissionDenied, "files there name"},
		{"r", ".vscode", tool.PermissionDenied, "files there name"},
		{"ssh://127.0.0.1/x", "new", tool.PermissionDenied, "protocol ssh, which the settings do not allow"},
		{"git@127.0.0.1:x", "new", tool.PermissionDenied, "protocol ssh"},
		{"ext::sh -c true", "new", tool.PermissionDenied, "protocol ext"},
		{"/etc", "new", tool.PermissionDenied, "outside the workspace"},
		{"secret/none", "new", tool.PermissionDenied, "not allowed"},
		{"open", "new", tool.PermissionDenied, "not allowed"},
		{"none", "new", tool.NotFound, "does not appear to be a git repository"},
		{"--upload-pack=x", "new", tool.InvalidArgument, "not the address of a repository"},
		{"https:///x", "new", tool.InvalidArgument, "not the address of a repository"},
		{"https://a:b@127.0.0.1:1/x", "new", tool.PermissionDenied, "contains a password"},
		{"https://127.0.0.1:1/x", "new/deep", tool.Unavailable, "Failed to connect"},
	} {
		contains(t, w.refused("git_clone", args{"url": tt.url, "path": tt.path}, tt.code), tt.said)
		if after := w.names(); after != before {
			t.Errorf("the clone of %s into %s has left\n%s", tt.url, tt.path, after)
		}
	}
	w.refused("git_clone", args{"url": "r", "path": "new", "branch": "-x"}, tool.InvalidArgument)
	w.refused("git_clone", args{"url": "r", "path": "new", "branch": "a..b"}, tool.InvalidArgument)
	w.refused("git_clone", args{"url": "r", "path": "new", "depth": -1}, tool.InvalidArgument)
	w.start(started{settings: map[string]any{"protocols": []string{"file"}}, options: func(o *sdktest.Options) {
		o.Context.Files = &tool.FilePolicy{Sensitive: []string{"*.key"}}
	}})
	contains(t, w.refused("git_clone", args{"url": "file://" + w.dir + "/deploy.key", "path": "new"}, tool.PermissionDenied), "not allowed")
}

// names lists the files of the workspace, without what is in git directories.
func (w *workspace) names() string {
	w.Helper()
	out, err := w.runIn(w.dir, "find", ".", "-path", "*.git/?*", "-prune", "-o", "-print")
	if err != nil {
		w.Fatal(err)
	}
	names := strings.Fields(out)
	slices.Sort(names)
	return strings.Join(names, "\n")
}

// TestFailedCloneLeavesNothing: neither does one that is given up, nor one that fails at
// the last moment.
func TestFailedCloneLeavesNothing(t *testing.T) {
	w := newWorkspace(t, started{settings: map[string]any{"protocols": []string{"file"}}})
	w.repo("r")
	// A name that the file system does not take.
	w.fastImport(filepath.Join(w.dir, "r"), fmt.Sprintf("commit refs/heads/long\ncommitter Ada <ada@example.com> 1767323045 +0000\ndata 1\nx\nM 644 inline a/file\ndata 1\nx\nM 644 inline %s\ndata 1\nx\n", strings.Repeat("x", 300)))
	before := w.names()
	in := args{"url": "r", "path": "new/copy", "branch": "long"}
	if got := w.call("git_clone", in); got.Error == nil {
		t.Error("a file name of 300 bytes is checked out")
	}
	if after := w.names(); after != before {
		t.Errorf("the failed clone has left\n%s", after)
	}
	// Another program puts a file into the directory, which stays.
	var many strings.Builder // one blob under names that sum up to more than the limit
	fmt.Fprintf(&many, "blob\nmark :1\ndata %d\n%s\ncommit refs/heads/many\ncommitter Ada <ada@example.com> 1767323045 +0000\ndata 1\nx\n", tool.MiB, strings.Repeat("x", int(tool.MiB)))
	for i := range maxCheckout/tool.MiB + 1 {
		fmt.Fprintf(&many, "M 644 :1 %d\n", i)
	}
	w.fastImport(filepath.Join(w.dir, "r"), many.String())
	in["branch"] = "many"
	contains(t, w.refused("git_clone", in, tool.ResourceExhausted), "more than 1GiB")
	if after := w.names(); after != before {
		t.Errorf("the failed clone has left\n%s", after)
	}
	in["branch"] = "main"
	w.pretend(`case " $* " in *" checkout-index "*) echo kept > ../kept ;; esac`)
	contains(t, w.refused("git_clone", in, tool.Conflict), "new/copy is not empty")
	if after := w.names(); after != strings.Replace(before, "./r\n", "./new\n./new/copy\n./new/copy/kept\n./r\n", 1) {
		t.Errorf("the failed clone has left\n%s", after)
	}
	w.remove("new")
	// A remote that does not answer.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	w.start(started{})
	in = args{"url": "https://" + listener.Addr().String() + "/r.git", "path": "new/copy"}
	w.giveUp(t, "git_clone", in, "the beginning of the clone", func() bool { return len(gitsIn(t, w.scratch)) > 0 && there(w, "new/copy") })
	waitFor(t, "the clone has ended", func() bool { return !there(w, "new") && len(gitsIn(t, w.scratch)) == 0 })
	if after := w.names(); after != before { // which fails while files are removed
		t.Errorf("the clone that was given up has left\n%s", after)
	}
	// What the host protects is not replaced.
	w.start(started{settings: map[string]any{"protocols": []string{"file"}}, options: func(o *sdktest.Options) {
		o.Context.Protected = []string{filepath.Join(w.dir, "copy/a.txt")}
	}})
	contains(t, w.must("git_clone", args{"url": "r", "path": "copy"}), "[not checked out", "copy/a.txt]")
}
