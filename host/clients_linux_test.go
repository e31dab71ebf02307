package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/state/event"
)

// The names of the sites. The plugin may reach all but otherSite.
const (
	npmSite, goSite, pipSite, gitSite, webSite = "npm.example.com", "go.example.com", "pip.example.com", "git.example.com", "www.example.com"
	otherSite                                  = "other.example.org"
)

// realClients enables the shell plugin in the strict sandbox, with a proxy for the sites. The
// variables of inject lead the clients to the certificates that the host trusts, too.
const realClients = `
server { listen = "127.0.0.1:0" }
policy { actions_per_hour = "unlimited" }
secret "npm-token" { value = "%s" }
plugin "shell" {
  tier   = "privileged"
  claims = "trust"
  config { path = "/usr/local/go/bin:/usr/bin:/bin" }
  sandbox {
    isolation = "strict"
    limits {
      memory     = "2GiB"
      processes  = 1024
      open_files = 4096
      tmp_size   = "512MiB"
    }
    filesystem { exec = ["system", "workspace", "home", "tmp", %q] }
    network {
      mode    = "proxy"
      allow   = ["*.example.com"]
      private = true
      inject "npm.example.com" {
        prefix = "Bearer "
        secret = "npm-token"
      }
    }
  }
  tool "shell_exec" { approval = "allow" }
}
`

// TestClientsThroughProxy runs the programs that agents run to get code, as commands in the
// strict sandbox, against sites of the test: they reach the hosts in the list and no other,
// and say why. The token of the npm registry is added by the proxy.
func TestClientsThroughProxy(t *testing.T) {
	node := clientPrograms(t)
	if !inOwnNetwork(t, npmSite, goSite, pipSite, gitSite, webSite, otherSite) {
		return
	}
	const token = "npm-token-of-the-test"
	served := t.TempDir()
	boats, integrity := npmPackage(t)
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello from the site") })
	backend := gitBackend(t, served)
	all := map[string]http.Handler{
		npmSite: boats, goSite: goProxy(t), pipSite: pipIndex(t), gitSite: backend, webSite: hello,
		otherSite: hello,
	}
	web := serveSites(t, all)
	t.Setenv("SSL_CERT_FILE", web.trust)
	h := serve(t, writeConfig(t, fmt.Sprintf(realClients, token, node)))
	lock := func(host string) string {
		return fmt.Sprintf(`{"name": "mine", "version": "1.0.0", "lockfileVersion": 3, "packages": {
  "": {"name": "mine", "version": "1.0.0", "dependencies": {"boats": "1.0.0"}},
  "node_modules/boats": {"version": "1.0.0", "resolved": "https://%s/boats/-/boats-1.0.0.tgz", "integrity": "%s"}}}`, host, integrity)
	}
	h.write(t, "package.json", `{"name": "mine", "version": "1.0.0", "dependencies": {"boats": "1.0.0"}}`)
	h.write(t, "go.mod", "module example.com/mine\n\ngo 1.21\n\nrequire example.com/boats v1.0.0\n")

	for _, c := range []struct {
		name, site string
		lock       bool   // the command installs from a lock file
		command    string // SITE is replaced
		want       string // in the output
		refused    string // what the program says if the host is not in the list; "" if it only fails
	}{
		{"curl", webSite, false, "curl -sS --retry 0 https://SITE/", "hello from the site", "CONNECT tunnel failed, response 403"},
		{"curl without TLS", webSite, false, "curl -sS -i http://SITE/", "hello from the site", "toolhost: no connection to " + otherSite + ":80"},
		{
			"python", webSite, false, `/usr/bin/python3 -c 'import urllib.request as r; print(r.urlopen("https://SITE/").read())'`,
			"hello from the site", "toolhost: no connection to " + otherSite + ":443",
		},
		{"node", webSite, false, node + ` -e 'fetch("https://SITE/").then(r => r.text()).then(console.log, e => console.log("failed:", e.cause?.message))'`, "hello from the site", "failed:"},
		{
			"npm ci", npmSite, true, "npm ci --no-audit --no-fund --no-update-notifier --fetch-retries=0 --cache=$(mktemp -d) --registry=https://SITE/ && cat node_modules/boats/index.js",
			"module.exports = 'a boat'", "403 toolhost: no connection to " + otherSite + ":443",
		},
		{
			"go mod download", goSite, false, "d=$(mktemp -d) && GOFLAGS=-modcacherw GOPATH=$d GOPROXY=https://SITE GONOSUMDB='*' GOTOOLCHAIN=local go mod download && cat $d/pkg/mod/example.com/boats@v1.0.0/boats.go",
			"package boats", "toolhost: no connection to " + otherSite + ":443",
		},
		{
			"pip download", pipSite, false, "/usr/bin/python3 -m pip --no-cache-dir --disable-pip-version-check --retries 1 download --no-deps -q -d $(mktemp -d) -i https://SITE/simple boats && echo downloaded",
			"downloaded", "403 toolhost: no connection to " + otherSite + ":443",
		},
		{"git clone", gitSite, false, "git clone https://SITE/r.git clone-SITE && ls clone-SITE", "first.txt", "CONNECT tunnel failed, response 403"},
		{
			"git push", gitSite, false, "cd clone-" + gitSite + " && echo more >>second.txt && git add . && git -c user.name=Ada -c user.email=ada@example.com commit -qm second && git push https://SITE/r.git HEAD:main",
			"To https://" + gitSite + "/r.git", "CONNECT tunnel failed, response 403",
		},
	} {
		command := func(site string) client.Outcome {
			if c.lock {
				h.write(t, "package-lock.json", lock(site))
			}
			return h.post(t, "shell_exec", map[string]any{"command": strings.ReplaceAll(c.command, "SITE", site) + " 2>&1; exit 0", "timeout": 60})
		}
		if got := asJSON(command(c.site)); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s\n%s", c.name, got, h.said())
		}
		got := strings.ReplaceAll(asJSON(command(otherSite)), `\n`, "\n")
		said, told, found := strings.Cut(got, "the network refused connections of this call: ")
		if strings.Contains(said, c.want) || !strings.Contains(said, c.refused) {
			t.Errorf("%s of another host says %s\nwant %q", c.name, said, c.refused)
		}
		if !found || !strings.Contains(told, otherSite) {
			t.Errorf("%s of another host does not say that the host refused it: %s", c.name, got)
		}
	}

	out, err := exec.CommandContext(t.Context(), "git", "-C", filepath.Join(served, "r.git"), "log", "--format=%an %s", "main").CombinedOutput()
	if string(out) != "Ada second\nAda first\n" {
		t.Errorf("the git server has %q, %v", out, err)
	}
	if got := web.of(otherSite); len(got) > 0 {
		t.Errorf("a host that is not in the list got %+v", got)
	}
	fetched := web.of(npmSite)
	if len(fetched) == 0 || fetched[0].header.Get("Authorization") != "Bearer "+token {
		t.Errorf("the npm registry got %+v, want its token", fetched)
	}
	for _, site := range []string{goSite, pipSite, gitSite, webSite} {
		for _, r := range web.of(site) {
			if strings.Contains(fmt.Sprint(r), token) {
				t.Errorf("%s got the token of the npm registry: %+v", site, r)
			}
		}
	}
	rows := map[string]int{}
	for _, row := range h.journal(t, "--limit", "500") {
		if row.Kind == "connection" {
			rows[row.Status+" "+row.About]++
		}
	}
	for _, site := range []string{npmSite, goSite, pipSite, gitSite, webSite} {
		if rows[event.Success+" "+site+":443"] == 0 {
			t.Errorf("the journal has no connection to %s: %v", site, rows)
		}
	}
	if rows[event.Rejected+" "+otherSite+":443"] < 7 || rows[event.Rejected+" "+otherSite+":80"] != 1 || rows[event.Success+" "+otherSite+":443"] > 0 {
		t.Errorf("the journal has %v, want that %s was refused to each client", rows, otherSite)
	}
}

// clientPrograms returns a Node.js that knows proxies, and requires the other clients.
func clientPrograms(t *testing.T) (node string) {
	t.Helper()
	for _, program := range []string{"curl", "git", "npm", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, program)
		}
	}
	if err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-m", "pip", "--version").Run(); err != nil {
		missing(t, "pip of /usr/bin/python3")
	}
	node, _ = peerProgram(t, "node")
	node, err := filepath.EvalSymlinks(node)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// npmPackage serves the package boats, only to those who have a token, and returns its digest.
func npmPackage(t *testing.T) (registry http.Handler, integrity string) {
	t.Helper()
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	files := tar.NewWriter(compressed)
	for name, text := range map[string]string{"package/package.json": `{"name": "boats", "version": "1.0.0"}`, "package/index.js": "module.exports = 'a boat'\n"} {
		if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(files, text)
	}
	_, _ = files.Close(), compressed.Close() // to memory
	sum := sha512.Sum512(archive.Bytes())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/boats/-/boats-1.0.0.tgz" || r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(archive.Bytes())
	}), "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// zipped returns an archive of files.
func zipped(t *testing.T, names []string, texts map[string]string) []byte {
	t.Helper()
	var archive bytes.Buffer
	files := zip.NewWriter(&archive)
	for _, name := range names {
		w, err := files.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, texts[name])
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// serveFiles serves texts by their paths.
func serveFiles(texts map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := texts[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/") {
			w.Header().Set("Content-Type", "text/html")
		}
		_, _ = io.WriteString(w, text)
	})
}

// goProxy serves the module example.com/boats.
func goProxy(t *testing.T) http.Handler {
	t.Helper()
	const dir = "example.com/boats@v1.0.0/"
	texts := map[string]string{dir + "go.mod": "module example.com/boats\n", dir + "boats.go": "package boats\n"}
	return serveFiles(map[string]string{
		"/example.com/boats/@v/v1.0.0.info": `{"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}`,
		"/example.com/boats/@v/v1.0.0.mod":  texts[dir+"go.mod"],
		"/example.com/boats/@v/v1.0.0.zip":  string(zipped(t, []string{dir + "go.mod", dir + "boats.go"}, texts)),
	})
}

// pipIndex serves the package boats.
func pipIndex(t *testing.T) http.Handler {
	t.Helper()
	const info = "boats-1.0.0.dist-info/"
	wheel := zipped(t, []string{"boats.py", info + "METADATA", info + "WHEEL", info + "RECORD"}, map[string]string{
		"boats.py": "boat = 'a boat'\n", info + "METADATA": "Metadata-Version: 2.1\nName: boats\nVersion: 1.0.0\n",
		info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n", info + "RECORD": "",
	})
	const file = "boats-1.0.0-py3-none-any.whl"
	return serveFiles(map[string]string{
		"/simple/boats/": fmt.Sprintf(`<!DOCTYPE html><a href="/files/%s#sha256=%x">%s</a>`, file, sha256.Sum256(wheel), file),
		"/files/" + file: string(wheel),
	})
}

// gitBackend serves the repository r.git, to clone and to push, from a directory.
func gitBackend(t *testing.T, dir string) http.Handler {
	t.Helper()
	script := `git init -q -b main theirs && cd theirs && echo first >first.txt && git add . &&
		git -c user.name=Ada -c user.email=ada@example.com commit -qm first && cd .. && git clone -q --bare theirs r.git && git -C r.git config http.receivepack true && git --exec-path`
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null"},
	}
}
