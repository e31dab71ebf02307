package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// twoServed are a repository with a commit to push, a server that has it without that
// commit, and another repository of the server, where it must not go.
func twoServed(t *testing.T) (w *workspace, s *server) {
	t.Helper()
	w = newWorkspace(t, started{})
	s = serve(w, "")
	w.repo("r")
	w.git("", "clone", "-q", "--bare", "r", filepath.Join(s.dir, "other.git"))
	w.git("", "-C", filepath.Join(s.dir, "other.git"), "config", "http.receivepack", "true")
	s.repository(w, "r")
	w.write(map[string]string{"r/a.txt": "new\n"})
	w.git("r", "commit", "-qam", "new")
	w.start(started{settings: map[string]any{"ca_file": s.ca}})
	return w, s
}

// misleading are settings of a repository by which an address leads elsewhere, for git.
func misleading(s *server) map[string][]string {
	return map[string][]string{
		"address as a remote": {"remote." + s.URL + "/r.git.url", s.URL + "/other.git"},
		"pushurl of it":       {"remote." + s.URL + "/r.git.pushurl", s.URL + "/other.git"},
		"proxy of it":         {"remote." + s.URL + "/r.git.proxy", "http://127.0.0.1:1"},
		"instead of":          {"url." + s.URL + "/other.git.insteadOf", s.URL + "/r.git"},
		"proxy":               {"http." + s.URL + "/.proxy", "http://127.0.0.1:1"},
		"certificates":        {"http." + s.URL + "/.sslCAInfo", "/dev/null"},
		"header":              {"http." + s.URL + "/.extraHeader", "Authorization: none"},
	}
}

// A push goes to the address that was shown, whatever the repository configures for that
// address. The control is git, which goes elsewhere.
func TestRepositoryDoesNotRedirect(t *testing.T) {
	w, s := twoServed(t)
	head := w.git("r", "rev-parse", "HEAD")
	setting := misleading(s)["address as a remote"]
	w.git("r", "config", setting[0], setting[1])
	_, text := w.preview("git_push", args{"path": "r"})
	contains(t, text, "("+s.URL+"/r.git)")
	w.must("git_push", args{"path": "r"})
	if s.at(w, "r", "main") != head || s.at(w, "other", "main") == head {
		t.Errorf("%s has arrived elsewhere: %s", head, s.at(w, "other", "main"))
	}
	w.git("r", "-c", "http.sslCAInfo="+s.ca, "push", "-q", s.URL+"/r.git", "main")
	if s.at(w, "other", "main") != head {
		t.Error("plain git has not pushed elsewhere: the test proves nothing")
	}
}

// The same settings, written during the call, after the address was read.
func TestRepositoryDoesNotRedirectDuringCall(t *testing.T) {
	w, s := twoServed(t)
	head := w.git("r", "rev-parse", "HEAD")
	r := openForTest(t, w, &git{configs: newConfigCache(), scratch: w.scratch})
	r.settings.CAFile = s.ca
	to, err := r.remote("origin", "main", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range misleading(s) {
		w.git("r", "config", setting[0], setting[1])
	}
	c := &pushing{repository: r, to: to, branch: "main", target: "main", commitID: head}
	if _, err := c.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.at(w, "r", "main") != head || s.at(w, "other", "main") == head {
		t.Errorf("%s has arrived elsewhere: %s", head, s.at(w, "other", "main"))
	}
}

// References that others have changed since are not overwritten, and additional content of the
// remote is not mistaken for the repository's.
func TestFetchMovesReferences(t *testing.T) {
	w, s := twoServed(t)
	bare := filepath.Join(s.dir, "r.git")
	w.must("git_fetch", args{"path": "r"})
	w.git("r", "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	w.git("", "-C", bare, "branch", "topic", "main")
	w.git("", "-C", bare, "tag", "v1", "main")
	contains(t, w.must("git_fetch", args{"path": "r"}), "new refs/remotes/origin/topic")
	// A branch whose name another one needs.
	w.git("", "-C", bare, "branch", "-D", "topic")
	w.git("", "-C", bare, "branch", "topic/one", "main")
	contains(t, w.must("git_fetch", args{"path": "r", "prune": true}), "new refs/remotes/origin/topic/one", "deleted refs/remotes/origin/topic")
	if got := w.git("r", "for-each-ref", "--format=%(refname)"); got != "refs/heads/main\nrefs/remotes/origin/HEAD\nrefs/remotes/origin/main\nrefs/remotes/origin/topic/one" {
		t.Errorf("the references are\n%s", got)
	}
	// A tag that is another one here stays.
	w.git("r", "tag", "v1", "main")
	contains(t, w.refused("git_fetch", args{"path": "r", "tags": true}, tool.Conflict), "tag v1 differs")
	if w.git("r", "rev-parse", "v1") != w.git("r", "rev-parse", "main") {
		t.Error("the tag was replaced")
	}
	// Another user moves one of the two in the meantime.
	s.commitOn(w, "r", "main", "theirs.txt", "x")
	w.git("", "-C", bare, "branch", "new", "main")
	s.during = func() { w.git("r", "update-ref", "refs/remotes/origin/main", "main~2") }
	w.refused("git_fetch", args{"path": "r"}, tool.Conflict)
	if w.git("r", "rev-parse", "origin/main") != w.git("r", "rev-parse", "main~2") {
		t.Error("what was moved meanwhile is overwritten")
	}
	if _, err := w.tryGit("r", "rev-parse", "--verify", "-q", "refs/remotes/origin/new"); err == nil {
		t.Error("the other one has moved")
	}
	// References that the remote no longer has are pruned first.
	w.git("", "-C", bare, "branch", "-D", "topic/one")
	s.during = func() { w.git("r", "update-ref", "refs/remotes/origin/main", "main~1") }
	w.refused("git_fetch", args{"path": "r", "prune": true}, tool.Conflict)
	if got := w.git("r", "for-each-ref", "--format=%(refname)", "refs/remotes/origin/new", "refs/remotes/origin/topic"); got != "" {
		t.Errorf("there are still\n%s", got)
	}
	s.during = nil
	contains(t, w.must("git_fetch", args{"path": "r"}), "new refs/remotes/origin/new")
}

// A shallow clone, and one with longer object ids, are fetched and pushed.
func TestOtherRepositories(t *testing.T) {
	for name, from := range map[string][]string{
		"shallow": {"clone", "-q", "--depth", "1", "file://"},
		"sha256":  {"clone", "-q", "file://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{})
			s := serve(w, "")
			if name == "sha256" {
				w.git("", "init", "-q", "-b", "main", "--object-format=sha256", "r")
				w.write(map[string]string{"r/a.txt": "one\n"})
				w.git("r", "add", "-A")
				w.git("r", "commit", "-qm", "first")
			} else {
				w.repo("r")
			}
			s.repository(w, "r")
			from[len(from)-1] += filepath.Join(s.dir, "r.git")
			w.git("", append(from, "mine")...)
			w.git("mine", "remote", "set-url", "origin", s.URL+"/r.git")
			w.start(started{settings: map[string]any{"ca_file": s.ca, "author_name": "Ada", "author_email": "ada@example.com"}})
			if name == "shallow" { // older history is fetched when needed
				w.git("", "-C", filepath.Join(s.dir, "r.git"), "branch", "old", "main~1")
				w.must("git_fetch", args{"path": "mine", "branch": "old"})
				w.git("mine", "log", "-p", "origin/old")
			}
			theirs := s.commitOn(w, "r", "main", "theirs.txt", "x")
			w.must("git_pull", args{"path": "mine"})
			if got := w.git("mine", "rev-parse", "HEAD"); got != theirs {
				t.Errorf("HEAD is at %s, want %s", got, theirs)
			}
			w.write(map[string]string{"mine/mine.txt": "mine\n"})
			w.must("git_commit", args{"message": "mine", "files": []string{"mine/mine.txt"}})
			w.must("git_push", args{"path": "mine"})
			if got := s.at(w, "r", "main"); got != w.git("mine", "rev-parse", "HEAD") {
				t.Errorf("the remote is at %s", got)
			}
			w.git("mine", "fsck", "--connectivity-only")
		})
	}
}

// A remote that is a directory runs nothing that its configuration names. The control
// is git, by which it does.
func TestDirectoryAsRemote(t *testing.T) {
	w := newWorkspace(t, started{settings: map[string]any{"protocols": []string{"file"}}})
	w.repo("r")
	w.git("", "clone", "-q", "--bare", "r", "alternate.git")
	for _, target := range []string{"bare.git", "tree"} {
		mark := filepath.Join(w.dir, target+".mark")
		dir, kind := target, "--bare"
		if target == "tree" {
			dir, kind = "tree/.git", "--no-bare"
		}
		w.git("", "clone", "-q", strings.Replace(kind, "--no-bare", "--no-local", 1), "r", target)
		for _, setting := range []string{"core.alternateRefsCommand", "core.fsmonitor"} {
			w.git(dir, "config", setting, "echo >> '"+mark+"'; false")
		}
		w.git(dir, "config", "receive.denyCurrentBranch", "updateInstead")
		w.write(map[string]string{dir + "/objects/info/alternates": w.dir + "/alternate.git/objects\n"})
		hook := filepath.Join(w.dir, dir, "hooks", "pre-receive")
		if err := os.WriteFile(hook, []byte("#!/bin/sh\necho >> '"+mark+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		w.git("r", "config", "remote.origin.url", w.dir+"/"+target)
		w.write(map[string]string{"r/a.txt": target})
		w.git("r", "commit", "-qam", target)
		w.must("git_fetch", args{"path": "r"})
		if got := w.call("git_push", args{"path": "r"}); (got.Error == nil) != (target == "bare.git") {
			t.Errorf("git_push to %s = %q, %v", target, got.Text(), got.Error)
		}
		if _, err := os.Stat(mark); err == nil {
			t.Errorf("%s has run a program", target)
		}
		w.git("r", "commit", "-q", "--allow-empty", "-m", "more")
		if _, err := w.tryGit("r", "push", "-q", "origin", "main"); err != nil {
			t.Log(err) // updateInstead may refuse
		}
		if _, err := os.Stat(mark); err != nil {
			t.Errorf("plain git has run no program in %s: the test proves nothing", target)
		}
	}
}

// If a server repeats a password, the model does not see it.
func TestSecretIsNotRepeated(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		_, password, known := in.BasicAuth()
		if !known {
			out.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		out.Header().Set("Content-Type", "text/plain")
		out.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintln(out, "no entry with", password)
	}))
	defer server.Close()
	ca := filepath.Join(w.scratch, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	w.git("r", "remote", "add", "origin", server.URL+"/r.git")
	w.start(started{
		settings: map[string]any{"ca_file": ca, "credentials": []any{map[string]any{"url": server.URL, "secret": "example"}}},
		secrets:  map[string]string{"example": "s3cret"},
	})
	for _, name := range []string{"git_fetch", "git_push"} {
		text := w.refused(name, args{"path": "r"}, tool.Failed)
		contains(t, text, "no entry with [secret example]")
		if strings.Contains(text, "s3cret") {
			t.Errorf("%s tells the secret: %s", name, text)
		}
	}
}
