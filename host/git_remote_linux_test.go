package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gitPassword is the password that the git server requires.
const gitPassword = "correct-horse-battery"

// TestGitRemote fetches, pulls and pushes with the git plugin in its sandbox, with the host's
// network, from a git server over TLS on loopback. The server requires a password, which is a
// secret of the configuration and must not leak.
func TestGitRemote(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatalf("git is missing: %v", err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main", "theirs")
	git("-C", "theirs", "commit", "-q", "--allow-empty", "-m", "first")
	git("clone", "-q", "--bare", "theirs", "served/r.git")
	git("-C", "served/r.git", "config", "http.receivepack", "true")
	git("clone", "-q", "served/r.git", "ws")
	git("-C", "theirs", "commit", "-q", "--allow-empty", "-m", "second")
	git("-C", "theirs", "push", "-q", filepath.Join(dir, "served/r.git"), "main")

	backend := &cgi.Handler{
		Path: filepath.Join(git("--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Join(dir, "served"), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=ada", "GIT_CONFIG_GLOBAL=/dev/null"},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		switch user, password, _ := in.BasicAuth(); {
		case user != "ada" || password != gitPassword:
			out.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			out.WriteHeader(http.StatusUnauthorized)
		case strings.HasPrefix(in.URL.Path, "/repeats.git"):
			out.Header().Set("Content-Type", "text/plain")
			out.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintln(out, "no repository for", password)
		default:
			backend.ServeHTTP(out, in)
		}
	}))
	defer server.Close()
	git("-C", "ws", "remote", "set-url", "origin", server.URL+"/r.git")
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	config := func(name, network, secrets, more string) string {
		path := filepath.Join(dir, name)
		text := fmt.Sprintf(`
workspace  = "ws"
plugin_dir = %q
state_dir  = "state-%s"
server { listen = "" }
secret "git-password" {
  value = env("GIT_PASSWORD")
}
plugin "git" {
  tier    = "privileged"
  claims  = "trust"
  secrets = [%s]
  config {
    ca_file      = %q
    credentials  = [{ url = %q, username = "ada", secret = "git-password" }]
    author_name  = "Robot"
    author_email = "robot@example.com"
    %s
  }
  approval {
    side_effecting = "allow"
    privileged     = "allow"
  }
  sandbox {
    filesystem {
      read = [%q]
      exec    = ["/usr/bin/git", "/usr/lib/git-core", "/usr/libexec/git-core", "/bin/sh"]
      protect = ["hooks", "editor", "agents"]
    }
    network { mode = %q }
  }
}
`, filepath.Join(bin, "plugins"), name, secrets, ca, server.URL+"/", more, ca, network)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("GIT_PASSWORD", gitPassword)
	call := func(config string, args ...string) (string, error) {
		t.Helper()
		var out bytes.Buffer
		cmd := toolhost(t.Context(), config, append([]string{"call", "--log-level", "trace"}, args...)...)
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		if strings.Contains(out.String(), gitPassword) {
			t.Errorf("toolhost call %q tells the password:\n%s", args, &out)
		}
		return out.String(), err
	}
	granted := config("host.hcl", "host", `"git-password"`, "")
	must := func(want string, args ...string) {
		t.Helper()
		if out, err := call(granted, args...); err != nil || !strings.Contains(out, want) {
			t.Fatalf("toolhost call %q = %v\n%s\nwant %q", args, err, out, want)
		}
	}
	refused := func(config, want string, args ...string) {
		t.Helper()
		if out, err := call(config, args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("toolhost call %q = %v\n%s\nwant %q", args, err, out, want)
		}
	}
	refused(config("none.hcl", "none", `"git-password"`, ""), `the tool "git_fetch" is not available: there is no network`, "git_fetch")
	// With remotes on this machine the tools are there, and the sandbox still has no network.
	refused(config("files.hcl", "none", `"git-password"`, `protocols = ["https", "file"]`), "the remote must be up, and the plugin needs network", "git_fetch")
	refused(config("not-granted.hcl", "host", "", ""), "git-password", "git_fetch")
	must("refs/remotes/origin/main: ", "git_fetch")
	must("Pulled origin/main", "git_pull")
	if err := os.WriteFile(filepath.Join(dir, "ws", "new.txt"), []byte("new\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	must("Committed ", "git_commit", `{"message":"third","files":["new.txt"]}`)
	must("Pushed 1 commit to origin", "git_push")
	if got := git("-C", "served/r.git", "log", "--format=%an %s", "main"); got != "Robot third\nAda second\nAda first" {
		t.Errorf("the server has\n%s", got)
	}
	git("-C", "ws", "remote", "set-url", "origin", server.URL+"/repeats.git")
	refused(granted, "no repository for [secret git-password]", "git_fetch")
	// Nor may it be in what the host keeps: the journal, results, scratch directories.
	journals := 0
	for _, state := range []string{"state-host.hcl", "ws"} {
		err := filepath.WalkDir(filepath.Join(dir, state), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			if entry.Name() == "toolhost.db" {
				journals++
			}
			text, err := os.ReadFile(path)
			if bytes.Contains(text, []byte(gitPassword)) {
				t.Errorf("%s holds the password", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if journals != 1 {
		t.Errorf("there are %d journals: the test proves little", journals)
	}
}
