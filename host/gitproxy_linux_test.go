package main

import (
	"encoding/base64"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/client"
)

// TestGitThroughProxy runs the network block that docs/git.md recommends: the tools of the git plugin
// clone, fetch, pull and push over https, with credentials that only the proxy has, and reach no
// other server.
func TestGitThroughProxy(t *testing.T) {
	if !inOwnNetwork(t, gitSite, otherSite) {
		return
	}
	const password = "correct-horse-battery-staple"
	served := t.TempDir()
	backend := gitBackend(t, served)
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, given, _ := r.BasicAuth(); user != "ada" || given != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	})
	web := serveSites(t, map[string]http.Handler{gitSite: guarded, otherSite: guarded})
	t.Setenv("SSL_CERT_FILE", web.trust)
	t.Setenv("GIT_BASIC", base64.StdEncoding.EncodeToString([]byte("ada:"+password)))

	_, page, _ := strings.Cut(readFile(t, "../docs/git.md"), "The network can be as narrow as the remotes.")
	block := hclBlock.FindStringSubmatch(page)
	if block == nil || !strings.Contains(block[1], gitSite) {
		t.Fatal("docs/git.md has no block for the proxy")
	}
	config := block[1]
	for old, replacement := range map[string]string{
		`mode  = "proxy"`:  "mode = \"proxy\"\n private = true", // the test's server is on this machine
		`claims = "trust"`: "claims = \"trust\"\n approval {\n  side_effecting = \"allow\"\n  privileged = \"allow\"\n }",
		`protocols = `:     "author_name = \"Robot\"\n author_email = \"robot@example.com\"\n protocols = ",
		"config {":         "config {\n",
		`["https"] }`:      "[\"https\"]\n}",
	} {
		if !strings.Contains(config, old) {
			t.Fatalf("the block has no %q", old)
		}
		config = strings.Replace(config, old, replacement, 1)
	}
	h := serve(t, writeConfig(t, listening+config))
	must := func(want, tool string, args map[string]any) {
		t.Helper()
		if got := h.post(t, tool, args); got.Status != client.Success || !strings.Contains(asJSON(got), want) {
			t.Errorf("%s = %s\n%s", tool, asJSON(got), h.said())
		}
	}
	must("Cloned https://"+gitSite+"/r.git into clone", "git_clone", map[string]any{"url": "https://" + gitSite + "/r.git", "directory": "clone"})
	clone := map[string]any{"repo": "clone"}
	out, err := exec.CommandContext(t.Context(), "sh", "-ec", `cd "$0" && git clone -q r.git more && cd more &&
		git -c user.name=Ada -c user.email=ada@example.com commit -q --allow-empty -m second && git push -q origin main`, served).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	must("origin/main", "git_fetch", clone)
	must("Pulled", "git_pull", clone)
	h.write(t, "clone/new.txt", "new\n")
	must("Committed", "git_commit", map[string]any{"repo": "clone", "message": "third", "files": []string{"clone/new.txt"}})
	must("Pushed 1 commit", "git_push", clone)
	if out, err := exec.CommandContext(t.Context(), "git", "-C", filepath.Join(served, "r.git"), "log", "--format=%an %s", "main").Output(); string(out) != "Robot third\nAda second\nAda first\n" {
		t.Errorf("the server has %q, %v", out, err)
	}

	got := h.post(t, "git_clone", map[string]any{"url": "https://" + otherSite + "/r.git", "directory": "other"})
	if got.Status == client.Success || !strings.Contains(asJSON(got), otherSite) || len(web.of(otherSite)) > 0 {
		t.Errorf("git_clone of another server = %s; it got %+v", asJSON(got), web.of(otherSite))
	}
	learned := h.ok(t, "sandbox", "learn", "git")
	if !strings.Contains(learned, "\n    \""+gitSite+"\", # connections: ") || !strings.Contains(learned, "\n  #   \""+otherSite+":443\", # times: ") {
		t.Errorf("sandbox learn prints\n%s", learned)
	}
}
