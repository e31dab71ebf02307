package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// File names do not match complaints.
func TestComplaintsAboutNames(t *testing.T) {
	names := []string{
		"not a git repository.md", "error processing config", "empty ident name", "cannot lock ref 'x'", "a in b.txt", "x: bad object y",
		"Connection refused.md", "timed out.log", "needs merge.txt", "TLS certificate.txt", "Permission denied",
	}
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("r", "branch", "side")
	day := soak.Seed(t)
	for _, text := range []string{"one\n", "two\n"} {
		for _, name := range names {
			w.write(map[string]string{"r/" + name: text})
		}
		w.git("r", "add", "-A")
		w.git("r", "commit", "-qm", text)
	}
	for i, name := range names {
		if !soak.Today(day, i, 3) {
			continue
		}
		contains(t, w.refused("git_blame", args{"path": "r/" + name, "lines": "9-10"}, tool.InvalidArgument), "The file has only 1 line")
		contains(t, w.refused("git_blame", args{"path": "r/" + name, "rev": "side"}, tool.NotFound), "r/"+name+" in that commit")
		w.write(map[string]string{"r/" + name: "mine\n"})
		for tool, in := range map[string]args{"git_switch": {"path": "r", "branch": "side"}, "git_reset": {"path": "r", "rev": "HEAD~1", "mode": "keep"}} {
			contains(t, w.refused(tool, in, "conflict"), "would be overwritten", ": r/"+name+"\n")
		}
		w.write(map[string]string{"r/" + name: "two\n"})
		w.git("r", "update-index", "-q", "--refresh")
	}
}

// The output of a remote's hooks does not match complaints.
func TestComplaintsOfARemote(t *testing.T) {
	w := newWorkspace(t, started{})
	s := serve(w, "")
	w.repo("r")
	s.repository(w, "r")
	w.start(started{settings: map[string]any{"ca_file": s.ca}})
	hook := filepath.Join(s.dir, "r.git/hooks/pre-receive")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho 'this branch needs merge approval' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.git("r", "commit", "-q", "--allow-empty", "-m", "x")
	contains(t, w.refused("git_push", args{"path": "r"}, tool.Failed), "The remote rejected the push: pre-receive hook declined")
}

// A reference whose name conflicts with another one is reported as such, not as changed
// by another process.
func TestComplaintsAboutReferences(t *testing.T) {
	w := diverged(t, layers{})
	for name, in := range map[string]args{"git_branch": {"path": "r", "name": "main/x", "create": true}, "git_switch": {"path": "r", "branch": "main/x", "create": true}} {
		contains(t, w.refused(name, in, tool.Conflict), "'refs/heads/main' exists; cannot create 'refs/heads/main/x'")
	}
	w.git("r", "update-ref", "refs/remotes/origin/a", "HEAD")
	w.git("theirs", "push", "-q", "origin", "HEAD:refs/heads/a/b")
	contains(t, w.refused("git_fetch", args{"path": "r"}, tool.Conflict), "'refs/remotes/origin/a' exists; cannot create 'refs/remotes/origin/a/b'")
	w.must("git_fetch", args{"path": "r", "prune": true})
	w.git("r", "remote", "set-head", "origin", "main")
	w.git("theirs", "push", "-q", "origin", "HEAD:refs/heads/HEAD")
	w.git("theirs", "push", "-q", "origin", "HEAD:refs/heads/more")
	contains(t, w.must("git_fetch", args{"path": "r"}), "new refs/remotes/origin/more at ")
}

// Errors do not show where the keys and certificates of the settings are.
func TestHidePaths(t *testing.T) {
	r := &repository{
		access:   &access{git: &git{}, settings: settings{CAFile: "/etc/x/ca.pem", SSH: sshSettings{Key: "/etc/x/key", KnownHosts: "/etc/x/hosts"}}},
		worktree: "/w/r", gitDir: "/w/r/.git", commonDir: "/w/r/.git", folders: []folder{{"/w", "/w"}},
	}
	const said = "CAfile: /etc/x/ca.pem; Load key \"/etc/x/key\"; /etc/x/hosts; /w/r/.git/config; /w/r/a.txt; /w/b"
	const want = "CAfile: ca.pem; Load key \"key\"; hosts; config; a.txt; ./b"
	if got := r.hidePaths(said); got != want {
		t.Errorf("hidePaths(%q) = %q, want %q", said, got, want)
	}
}
