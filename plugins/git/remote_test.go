package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testprogram"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// server serves the repositories of a directory by git http-backend over TLS on loopback, to
// clients that know the password.
type server struct {
	*httptest.Server
	dir      string
	ca       string
	password string
	asked    atomic.Int32
	during   func() // if not nil, is called when it is asked
}

func serve(w *workspace, password string) *server {
	w.Helper()
	exec, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		w.Fatal(err)
	}
	s := &server{dir: w.TempDir(), password: password}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(exec)), "git-http-backend"),
		Env:  append(environment(s.dir), "GIT_PROJECT_ROOT="+s.dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=git"),
	}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		s.asked.Add(1)
		if s.during != nil {
			s.during()
		}
		if user, password, _ := in.BasicAuth(); s.password != "" && (user != "git" || password != s.password) {
			out.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(out, "who are you?", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(out, in)
	}))
	w.Cleanup(s.Close)
	s.ca = filepath.Join(s.dir, "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(s.ca, certificate, 0o600); err != nil {
		w.Fatal(err)
	}
	return s
}

// repository makes a repository on the server with the content of a workspace's repository, and
// makes it that one's origin.
func (s *server) repository(w *workspace, from string) {
	w.Helper()
	w.git(from, "clone", "-q", "--bare", ".", filepath.Join(s.dir, from+".git"))
	w.git(from, "-C", filepath.Join(s.dir, from+".git"), "config", "http.receivepack", "true")
	w.git(from, "remote", "add", "origin", s.URL+"/"+from+".git")
}

// at returns the object of a reference on the server.
func (s *server) at(w *workspace, repo, ref string) string {
	out, _ := w.tryGit("", "-C", filepath.Join(s.dir, repo+".git"), "rev-parse", "--verify", "-q", ref)
	return out
}

func (s *server) settings() map[string]any {
	return map[string]any{
		"ca_file":     s.ca,
		"credentials": []any{map[string]any{"url": s.URL + "/", "secret": "example"}},
	}
}

// commitOn makes a commit on a branch of the server, as a push of another user would.
func (s *server) commitOn(w *workspace, repo, branch, file, content string) string {
	w.Helper()
	message := "theirs: " + file + "\n"
	return w.fastImport(filepath.Join(s.dir, repo+".git"), fmt.Sprintf(
		"commit refs/heads/%[1]s\nmark :1\ncommitter Ada <ada@example.com> 1767323045 +0000\ndata %[2]d\n%[3]sfrom refs/heads/%[1]s^0\nM 100644 inline %[4]s\ndata %[5]d\n%[6]s\nget-mark :1\n",
		branch, len(message), message, file, len(content), content))
}

func TestFetchPullPush(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	s := serve(w, "s3cret")
	w.repo("r")
	s.repository(w, "r")
	w.start(started{settings: s.settings(), secrets: map[string]string{"example": "s3cret"}})
	theirs := s.commitOn(w, "r", "main", "theirs.txt", "x")
	_, text := w.preview("git_fetch", args{"path": "r"})
	contains(t, text, "Fetches from origin ("+s.URL+"/r.git) into r", "+refs/heads/*:refs/remotes/origin/*")
	if s.asked.Load() != 0 {
		t.Error("the preview has asked the remote")
	}
	contains(t, w.must("git_fetch", args{"path": "r"}), "new refs/remotes/origin/main at "+theirs[:10])
	contains(t, w.must("git_fetch", args{"path": "r", "remote": "origin", "branch": "main"}), "no changes")

	// No upstream yet, so the branch is named.
	contains(t, w.refused("git_pull", args{"path": "r"}, tool.Failed), "no upstream in the remote origin")
	contains(t, w.must("git_pull", args{"path": "r", "remote": "origin", "branch": "main"}), "Pulled origin/main: branch main moved from ", "1 file changed")
	if w.git("r", "rev-parse", "HEAD") != theirs {
		t.Error("the branch is not where the remote's is")
	}
	contains(t, w.must("git_pull", args{"path": "r", "branch": "main"}), "Already up to date")

	w.write(map[string]string{"r/mine.txt": "mine\n"})
	w.must("git_commit", args{"message": "mine", "files": []string{"r/mine.txt"}})
	mine := w.git("r", "rev-parse", "HEAD")
	asked := s.asked.Load()
	in := args{"path": "r", "set_upstream": true}
	p, text := w.preview("git_push", in)
	contains(t, text, "Pushes 1 commit of branch main to origin ("+s.URL+"/r.git), branch main", "refs/heads/main becomes "+mine+"; it was at "+theirs, "Commits to push:", ": mine", "+mine\n")
	if s.asked.Load() != asked {
		t.Error("the preview has asked the remote")
	}
	if got := w.approved("git_push", in, p); got.Error != nil || s.at(w, "r", "main") != mine {
		t.Fatalf("git_push = %v; the remote is at %s, want %s", got.Error, s.at(w, "r", "main"), mine)
	}
	contains(t, w.must("git_status", args{"path": "r"}), "Upstream origin/main: ahead 0, behind 0")
	contains(t, w.refused("git_push", args{"path": "r"}, tool.Failed), "nothing to push")

	t.Run("the object that was shown", func(t *testing.T) {
		w.write(map[string]string{"r/mine.txt": "more\n"})
		w.must("git_commit", args{"message": "shown", "files": []string{"r/mine.txt"}})
		p, _ := w.preview("git_push", args{"path": "r"})
		for _, change := range [][]string{
			{"commit", "-q", "--allow-empty", "-m", "not shown"},
			{"config", "remote.origin.pushurl", s.URL + "/other.git"},
			{"update-ref", "refs/remotes/origin/main", "HEAD~2"},
			{"config", "url." + s.URL + "/evil.insteadOf", s.URL + "/r"},
		} {
			w.git("r", change...)
			if got := w.approved("git_push", args{"path": "r"}, p); got.Error == nil || got.Error.Code != tool.Conflict || s.at(w, "r", "main") != mine {
				t.Errorf("after git %q: %+v, %v; the remote is at %s", change, got, got.Error, s.at(w, "r", "main"))
			}
		}
		w.git("r", "config", "--unset", "remote.origin.pushurl")
		w.git("r", "config", "--remove-section", "url."+s.URL+"/evil")
		w.git("r", "update-ref", "refs/remotes/origin/main", mine)
		w.git("r", "reset", "-q", "--hard", "HEAD~1")
		if got := w.approved("git_push", args{"path": "r"}, p); got.Error != nil || s.at(w, "r", "main") != w.git("r", "rev-parse", "HEAD") {
			t.Errorf("as it was shown: %v", got.Error)
		}
	})
	t.Run("rejected", func(t *testing.T) {
		theirs := s.commitOn(w, "r", "main", "theirs.txt", "y")
		w.write(map[string]string{"r/mine.txt": "again\n"})
		w.must("git_commit", args{"message": "again", "files": []string{"r/mine.txt"}})
		contains(t, w.refused("git_push", args{"path": "r"}, tool.Conflict), "it has commits that the branch lacks")
		contains(t, w.refused("git_push", args{"path": "r", "force_with_lease": true}, tool.Conflict), "changed since the last fetch")
		w.must("git_fetch", args{"path": "r"})
		contains(t, w.refused("git_push", args{"path": "r"}, tool.Conflict), "origin/main has commits that main lacks")
		contains(t, w.refused("git_pull", args{"path": "r"}, tool.Conflict), "both have new commits")
		before := w.git("r", "rev-parse", "HEAD")
		w.must("git_pull", args{"path": "r", "mode": "rebase"})
		if got := w.git("r", "log", "--format=%s", "-2"); got != "again\ntheirs: theirs.txt" {
			t.Errorf("after the rebase: %s", got)
		}
		w.must("git_reset", args{"path": "r", "rev": before, "mode": "hard"})
		w.must("git_pull", args{"path": "r", "mode": "merge"})
		contains(t, w.git("r", "log", "--format=%s", "-1"), "Merge branch 'main' of origin")
		w.must("git_reset", args{"path": "r", "rev": before, "mode": "hard"})
		_, text := w.preview("git_push", args{"path": "r", "force_with_lease": true})
		contains(t, text, "Force-pushes", "Commits that the remote's branch loses:", theirs[:10])
		w.must("git_push", args{"path": "r", "force_with_lease": true})
		if s.at(w, "r", "main") != before {
			t.Error("the push was not forced")
		}
	})
	t.Run("not as the repository likes it", func(t *testing.T) {
		before := w.git("r", "rev-parse", "HEAD")
		theirs := s.commitOn(w, "r", "main", "options.txt", "x")
		w.git("r", "config", "branch.main.mergeOptions", "--squash")
		w.must("git_pull", args{"path": "r"})
		if got := w.git("r", "rev-parse", "HEAD"); got != theirs {
			t.Errorf("HEAD is at %s, want %s", got, theirs)
		}
		w.git("r", "reset", "-q", "--hard", before)
		w.git("r", "commit", "-q", "--allow-empty", "-m", "mine")
		w.git("r", "config", "branch.main.mergeOptions", "-s ours")
		w.must("git_pull", args{"path": "r", "mode": "merge"})
		if got := w.read("r/options.txt"); got != "x" {
			t.Errorf("the file holds %q", got)
		}
		w.must("git_push", args{"path": "r"})
	})
	t.Run("many commits", func(t *testing.T) {
		w.commits("r", make([]string, maxBetween+2)...)
		_, text := w.preview("git_push", args{"path": "r"})
		contains(t, text, "Pushes more than 50 commits", "[and more]")
		contains(t, w.must("git_push", args{"path": "r"}), "Pushed more than 50 commits")
	})
	t.Run("new branch", func(t *testing.T) {
		w.git("r", "branch", "feature")
		w.git("r", "checkout", "-q", "feature")
		w.write(map[string]string{"r/feature.txt": "feature\n"})
		w.must("git_commit", args{"message": "feature", "files": []string{"r/feature.txt"}})
		_, text := w.preview("git_push", args{"path": "r"})
		contains(t, text, "Pushes 1 commit of branch feature", "its current commit is unknown", "+feature\n")
		if strings.Contains(text, "a.txt") {
			t.Errorf("the preview shows what the remote has:\n%s", text)
		}
		w.git("r", "checkout", "-q", "main")
	})
	t.Run("shown and changed", func(t *testing.T) {
		for name, in := range map[string]args{"git_fetch": {"path": "r"}, "git_pull": {"path": "r"}} {
			p, _ := w.preview(name, in)
			w.git("r", "remote", "set-url", "origin", s.URL+"/other.git")
			if got := w.approved(name, in, p); got.Error == nil || got.Error.Code != tool.Conflict {
				t.Errorf("%s to another address than was shown: %q, %v", name, got.Text(), got.Error)
			}
			w.git("r", "remote", "set-url", "origin", s.URL+"/r.git")
		}
		// The branch moves while the remote is asked.
		s.commitOn(w, "r", "main", "late.txt", "x")
		s.during = func() { w.git("r", "update-ref", "refs/heads/main", "HEAD~1") }
		contains(t, w.refused("git_pull", args{"path": "r"}, tool.Conflict), "changed")
		s.during = nil
		w.git("r", "reset", "-q", "--hard", "origin/main")
	})
	t.Run("protected", func(*testing.T) {
		s.commitOn(w, "r", "main", "guarded.txt", "x")
		guarded := started{settings: s.settings(), secrets: map[string]string{"example": "s3cret"}}
		guarded.options = func(o *sdktest.Options) { o.Context.Protected = []string{filepath.Join(w.dir, "r/guarded.txt")} }
		w.start(guarded)
		w.refused("git_pull", args{"path": "r"}, tool.PermissionDenied)
		guarded.options = nil
		w.start(guarded)
		w.must("git_pull", args{"path": "r"})
	})
	t.Run("conflict", func(t *testing.T) {
		s.commitOn(w, "r", "main", "mine.txt", "theirs")
		w.write(map[string]string{"r/mine.txt": "ours\n"})
		w.must("git_commit", args{"message": "ours", "files": []string{"r/mine.txt"}})
		before := w.git("r", "rev-parse", "HEAD")
		contains(t, w.refused("git_pull", args{"path": "r", "mode": "rebase"}, tool.Conflict), "conflicts in r/mine.txt and was undone")
		if w.git("r", "rev-parse", "HEAD") != before || w.git("r", "status", "--porcelain") != "" {
			t.Error("not all is as it was")
		}
		contains(t, w.refused("git_pull", args{"path": "r", "mode": "merge"}, tool.Conflict), "The merge has conflicts in r/mine.txt")
		contains(t, w.must("git_status", args{"path": "r"}), "In progress: merge", "r/mine.txt (conflict)")
		w.must("git_reset", args{"path": "r", "mode": "merge"})
	})
	t.Run("branches and tags", func(t *testing.T) {
		bare := filepath.Join(s.dir, "r.git")
		w.git("", "-C", bare, "branch", "gone", "main")
		w.git("", "-C", bare, "tag", "v1", "main")
		contains(t, w.must("git_fetch", args{"path": "r", "tags": true}), "new refs/remotes/origin/gone", "new refs/tags/v1")
		w.git("", "-C", bare, "branch", "-D", "gone")
		contains(t, w.must("git_fetch", args{"path": "r", "prune": true}), "deleted refs/remotes/origin/gone")
		contains(t, w.refused("git_fetch", args{"path": "r", "branch": "none"}, tool.NotFound), "couldn't find remote ref refs/heads/none")
		w.git("r", "branch", "other", "HEAD~1")
		w.must("git_push", args{"path": "r", "branch": "other", "remote": "origin"})
		if s.at(w, "r", "other") != w.git("r", "rev-parse", "other") {
			t.Error("the other branch has not arrived")
		}
		// A fetch cannot overwrite a repository's branches.
		w.git("r", "config", "--replace-all", "remote.origin.fetch", "+refs/heads/*:refs/heads/*")
		before := w.git("r", "rev-parse", "main", "other")
		w.must("git_fetch", args{"path": "r"})
		if w.git("r", "rev-parse", "main", "other") != before {
			t.Error("the fetch has changed branches")
		}
	})
	t.Run("refused by the remote", func(t *testing.T) {
		hook := filepath.Join(s.dir, "r.git/hooks/update")
		if err := testprogram.Write(hook, strings.NewReader("#!/bin/sh\nexit 1\n")); err != nil {
			t.Fatal(err)
		}
		w.git("r", "branch", "--no-track", "another")
		contains(t, w.refused("git_push", args{"path": "r", "branch": "another"}, tool.Failed), "The remote rejected the push: hook declined")
	})
	t.Run("without credentials", func(t *testing.T) {
		w.start(started{settings: map[string]any{"ca_file": s.ca}})
		contains(t, w.refused("git_fetch", args{"path": "r"}, tool.PermissionDenied), "could not read Username")
		w.start(started{settings: s.settings(), secrets: map[string]string{"example": "wrong"}})
		contains(t, w.refused("git_fetch", args{"path": "r"}, tool.PermissionDenied), "Authentication failed")
		w.start(started{settings: s.settings()})
		if got := w.call("git_fetch", args{"path": "r"}); got.Error == nil {
			t.Error("git_fetch works without the secret")
		}
		w.start(started{})
		contains(t, w.refused("git_fetch", args{"path": "r"}, tool.Unavailable), "certificate")
		w.git("r", "config", "http."+s.URL+"/.sslVerify", "false")
		contains(t, w.refused("git_fetch", args{"path": "r"}, tool.Unavailable), "certificate")
		w.git("r", "config", "http.sslCAInfo", s.ca)
		contains(t, w.refused("git_fetch", args{"path": "r"}, tool.Unavailable), "certificate")
	})
}

// A helper of the settings is asked, those of the repository are not.
func TestCredentialHelper(t *testing.T) {
	w := newWorkspace(t, started{})
	s := serve(w, "s3cret")
	w.repo("r")
	s.repository(w, "r")
	helper := filepath.Join(w.scratch, "a helper's")
	script := "#!/bin/sh\n(: > '" + w.dir + "/r/.git/OWNED') 2>/dev/null\necho username=git\necho password=s3cret\n"
	if err := testprogram.Write(helper, strings.NewReader(script)); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(w.scratch, "mark")
	w.git("r", "config", "credential."+s.URL+".helper", "!touch "+mark+";")
	w.git("r", "config", "credential.helper", "!touch "+mark+";")
	settings := map[string]any{"ca_file": s.ca, "credentials": []any{map[string]any{"url": s.URL, "helper": helper}}}
	// A process that contacts a remote can write only objects into the repository; the control
	// has no rules.
	for _, l := range []layers{{}, {noRules: true}} {
		w.start(started{layers: l, settings: settings})
		w.must("git_fetch", args{"path": "r"})
		if _, err := os.Stat(filepath.Join(w.dir, "r/.git/OWNED")); (err == nil) != l.noRules {
			t.Errorf("with %+v, the helper has written into the repository: %t", l, err == nil)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the repository's helper was asked")
	}
	if _, err := w.tryGit("r", "-c", "http.sslCAInfo="+s.ca, "-c", "core.askPass=false", "fetch", "-q", "origin"); err == nil {
		t.Error("plain git gets in without the password")
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error("plain git has not asked the repository's helper: the test proves nothing")
	}
}

// A remote that hangs is given up in time, and nothing of git is left.
func TestRemoteHangs(t *testing.T) {
	w := newWorkspace(t, started{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accepted := make(chan net.Conn, 16)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c // and not a word
		}
	}()
	w.repo("r")
	w.git("r", "remote", "add", "origin", "https://"+listener.Addr().String()+"/r.git")
	w.start(started{settings: map[string]any{"remote_timeout": "300ms"}})
	contains(t, w.refused("git_fetch", args{"path": "r"}, tool.Timeout), "did not answer within 300ms")
	w.start(started{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan tool.Result)
	for len(accepted) > 0 {
		(<-accepted).Close()
	}
	go func() { ended <- w.plugin.Call(ctx, "git_push", args{"path": "r"}) }()
	waiting, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	select {
	case c := <-accepted: // the push is in progress
		defer c.Close()
	case <-waiting.Done():
		t.Fatal("the remote was not asked")
	}
	if len(gitsIn(t, w.scratch)) == 0 {
		t.Error("no git runs during the call: the test proves nothing")
	}
	cancel()
	if got := <-ended; got.Error == nil || got.Error.Code != tool.Canceled {
		t.Errorf("git_push = %+v, %v, want it canceled", got, got.Error)
	}
	// The client does not wait for the call's end.
	waitFor(t, "no git is left running", func() bool { return len(gitsIn(t, w.scratch)) == 0 })
}

// gitsIn are the processes that know a directory by their environment.
func gitsIn(t *testing.T, dir string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte("GIT_WORK_TREE="+dir)) {
			found = append(found, path)
		}
	}
	return found
}

func TestRemotesThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	all := map[string]any{"protocols": protocols()}
	config := w.read("r/.git/config")
	running := map[string]any(nil) // the settings of the plugin
	for _, tt := range []struct {
		config   []string // pairs
		settings map[string]any
		code     tool.Code
		want     string
	}{
		{nil, nil, tool.NotFound, "There is no remote origin"},
		{[]string{"remote.origin.url", ""}, nil, tool.NotFound, "has no address"},
		{[]string{"remote.origin.url", "ssh://127.0.0.1/x"}, nil, tool.PermissionDenied, "uses the protocol ssh, which the settings do not allow"},
		{[]string{"remote.origin.url", "git@127.0.0.1:x"}, nil, tool.PermissionDenied, "uses the protocol ssh"},
		{[]string{"remote.origin.url", "git+ssh://127.0.0.1/x"}, nil, tool.PermissionDenied, "uses the protocol ssh"},
		{[]string{"remote.origin.url", "/etc"}, nil, tool.PermissionDenied, "uses the protocol file"},
		{[]string{"remote.origin.url", "../../x"}, all, tool.PermissionDenied, "outside the workspace"},
		{[]string{"remote.origin.url", "file:///etc"}, all, tool.PermissionDenied, "outside the workspace"},
		{[]string{"remote.origin.url", "http://127.0.0.1:1/x"}, nil, tool.PermissionDenied, "the protocol http,"},
		{[]string{"remote.origin.url", "ext::sh -c true"}, all, tool.PermissionDenied, "uses the protocol ext"},
		{[]string{"remote.origin.url", "https::https://127.0.0.1:1/"}, all, tool.PermissionDenied, "uses the protocol https"},
		{[]string{"remote.origin.url", "--upload-pack=x"}, all, tool.Failed, "is invalid"},
		{[]string{"remote.origin.url", "https://127.0.0.1:1/a\tb"}, all, tool.Failed, "is invalid"},
		{[]string{"remote.origin.url", "https:///x"}, all, tool.Failed, "is invalid"},
		{[]string{"remote.origin.url", "https://a:b@127.0.0.1:1/x"}, nil, tool.PermissionDenied, "contains a password"},
		{[]string{"remote.origin.url", "good:x", "url.https://127.0.0.1:1/.insteadOf", "good:", "url.ext::x.insteadOf", "https://127.0.0.1:1/"}, nil, tool.Unavailable, "Failed to connect"},
		{[]string{"remote.origin.url", "good:x", "url.ssh://127.0.0.1/.insteadOf", "good:"}, nil, tool.PermissionDenied, "uses the protocol ssh"},
		{[]string{"remote.origin.url", "https://127.0.0.1:1/x"}, nil, tool.Unavailable, "Failed to connect"},
		{[]string{"remote.origin.url", "https://name@127.0.0.1:1/x"}, nil, tool.Unavailable, "Failed to connect"},
	} {
		t.Run(fmt.Sprint(tt.config), func(t *testing.T) {
			var text strings.Builder
			text.WriteString(config)
			for i := 0; i < len(tt.config); i += 2 {
				dot := strings.LastIndexByte(tt.config[i], '.')
				kind, of, _ := strings.Cut(tt.config[i][:dot], ".")
				fmt.Fprintf(&text, "[%s %q]\n\t%s = %q\n", kind, of, tt.config[i][dot+1:], tt.config[i+1])
			}
			w.write(map[string]string{"r/.git/config": text.String()})
			if len(tt.settings) != len(running) {
				w.start(started{settings: tt.settings})
				running = tt.settings
			}
			for _, name := range []string{"git_fetch", "git_push"} {
				contains(t, w.refused(name, args{"path": "r", "remote": "origin"}, tt.code), tt.want)
			}
		})
	}
	const origin = "[remote \"origin\"]\n\turl = https://127.0.0.1:1/x\n"
	w.write(map[string]string{"r/.git/config": config + origin + "[remote \"\x1b[31m\"]\n\turl = x\n"})
	if said := w.refused("git_fetch", args{"path": "r", "remote": "none"}, tool.NotFound); strings.ContainsRune(said, '\x1b') || !strings.Contains(said, "origin") {
		t.Errorf("the remotes are %q", said)
	}
	var ten strings.Builder
	for i := range 10 {
		fmt.Fprintf(&ten, "[remote \"x%d\"]\n\turl = x\n", i)
	}
	w.write(map[string]string{"r/.git/config": config + origin + ten.String()})
	contains(t, w.refused("git_fetch", args{"path": "r", "remote": "none"}, tool.NotFound), "origin, x0, x1, x2, x3, x4, x5, x6, x7, x8, and 1 more")
	w.write(map[string]string{"r/.git/config": config + origin + "\tpushurl = https://127.0.0.1:1/y\n\tpushurl = https://127.0.0.1:1/z\n"})
	contains(t, w.refused("git_push", args{"path": "r"}, tool.Failed), "several addresses")
	const pushed = "[url \"https://127.0.0.1:1/pushed\"]\n\tpushInsteadOf = https://127.0.0.1:1/x\n"
	w.write(map[string]string{"r/.git/config": config + pushed + origin + "\tfetch = \"+refs/heads/a:refs/remotes/origin/a\\nAddress: \x1b[1mhttps://elsewhere/\"\n"})
	_, text := w.preview("git_fetch", args{"path": "r"})
	if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) != 3 || strings.ContainsRune(text, '\x1b') {
		t.Errorf("the preview of git_fetch is %q, want three lines that can be seen", text)
	}
	w.write(map[string]string{"r/.git/config": config + pushed + origin})
	_, text = w.preview("git_push", args{"path": "r"})
	contains(t, text, "(https://127.0.0.1:1/pushed)")
	w.git("r", "checkout", "-q", "--detach")
	contains(t, w.refused("git_push", args{"path": "r"}, tool.Failed), "HEAD is detached")
	contains(t, w.refused("git_pull", args{"path": "r"}, tool.Failed), "HEAD is detached")
	w.refused("git_push", args{"path": "r", "branch": "none"}, tool.NotFound)
	w.refused("git_push", args{"path": "r", "branch": "-x"}, tool.InvalidArgument)
	w.refused("git_fetch", args{"path": "r", "remote": "-x"}, tool.NotFound)
	w.git("r", "checkout", "-q", "main")
	contains(t, w.refused("git_push", args{"path": "r", "force_with_lease": true}, tool.Failed), "was never fetched")
}
