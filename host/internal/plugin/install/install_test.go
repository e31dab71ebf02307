package install

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/install/installtest"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

func TestMain(m *testing.M) { os.Exit(m.Run()) }

func newRegistry(t *testing.T) *installtest.Registry {
	t.Helper()
	r := installtest.New()
	t.Cleanup(r.Close)
	return r
}

func options(t *testing.T, r *installtest.Registry) Options {
	t.Helper()
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := launcher.Close(); err != nil {
			t.Error(err)
		}
	})
	node, err := exec.LookPath("node")
	if err != nil {
		missing(t, "node")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		missing(t, "npm")
	}
	if npm, err = filepath.EvalSymlinks(npm); err != nil {
		t.Fatal(err)
	}
	store, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for dir := store; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) { // a root host runs npm as another user
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := removeAll(store); err != nil {
			t.Error(err)
		}
	})
	return Options{Launcher: launcher, Store: store, Node: node, NPM: npm, Registry: r.URL + "/", Log: t.Output()}
}

func missing(t *testing.T, program string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is missing, and in CI nothing is skipped", program)
	}
	t.Skipf("%s is missing", program)
}

// TestFetch installs a package with what it needs, without its install scripts, finds its program,
// and notices each change in the store.
func TestFetch(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	script := map[string]any{"preinstall": "touch pwned", "install": "touch pwned", "postinstall": "touch pwned"}
	r.Add("dep", installtest.Release{Version: "1.0.0", Files: map[string]string{"index.js": "module.exports = 'of dep'"}, About: map[string]any{"scripts": script}})
	r.Add("@scope/server", installtest.Release{
		Version: "2.1.0",
		About:   map[string]any{"bin": map[string]string{"server": "dist/index.js"}, "dependencies": map[string]string{"dep": "^1.0.0"}, "scripts": script},
		Files:   map[string]string{"dist/index.js": "#!/usr/bin/env node\nconsole.log(require('dep'))"},
	})
	opts := options(t, r)
	ref, err := ParseReference("npm:@scope/server@^2.0.0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Fetch(t.Context(), opts, ref)
	if err != nil {
		t.Fatal(err)
	}
	if p.String() != "npm:@scope/server@2.1.0" || !strings.HasPrefix(p.Integrity, "sha512-") || !strings.HasPrefix(p.Digest, "sha256:") || filepath.Dir(p.Dir) != opts.Store {
		t.Errorf("the package is %+v", p)
	}
	program, err := p.ProgramFile("")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), opts.Node, program).CombinedOutput(); err != nil || string(out) != "of dep\n" {
		t.Errorf("the program prints %q, %v", out, err)
	}
	if found, _ := filepath.Glob(filepath.Join(p.Dir, "**", "pwned")); len(found) > 0 {
		t.Errorf("an install script has made %v", found)
	}
	if info, err := os.Stat(program); err != nil || info.Mode().Perm()&0o222 != 0 || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		t.Errorf("the program is %v, %v, want it to belong to this account, and to be read only", info, err)
	}
	if left, err := filepath.Glob(filepath.Join(opts.Store, ".fetch-*")); err != nil || len(left) > 0 {
		t.Errorf("left in the store: %v, %v", left, err)
	}
	again, err := Fetch(t.Context(), opts, ref)
	if err != nil || again != p {
		t.Errorf("fetched again = %+v, %v, want the same", again, err)
	}
	for _, change := range []func() error{
		func() error { return os.WriteFile(program, []byte("evil"), 0o644) },
		func() error { return os.WriteFile(filepath.Join(filepath.Dir(program), "more.js"), nil, 0o644) },
		func() error { return os.Remove(program) },
		func() error { return os.Chmod(program, 0o755) },
		func() error { return removeAll(p.Dir) },
	} {
		if err := p.Verify(); err != nil {
			t.Fatal(err)
		}
		if err := open(p.Dir); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if p.Verify() == nil {
			t.Error("Verify does not notice a change")
		}
		if again, err := Fetch(t.Context(), opts, ref); err != nil || again != p {
			t.Fatalf("fetched after a change = %+v, %v", again, err)
		}
	}
}

// open lets a test change a package.
func open(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o755)
	})
}

// TestFetchRefused: what a registry or a package can do wrong is an error, and leaves nothing.
func TestFetchRefused(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	other := newRegistry(t)
	other.Add("elsewhere", installtest.Release{Version: "1.0.0"})
	r.Add("forged", installtest.Release{Version: "1.0.0", Forged: true})
	r.Add("outside", installtest.Release{Version: "1.0.0", About: map[string]any{"dependencies": map[string]string{"x": other.URL + "/elsewhere/-/1.0.0.tgz"}}})
	r.Add("young", installtest.Release{Version: "1.0.0", Age: 48 * time.Hour, About: map[string]any{"bin": "a.js"}, Files: map[string]string{"a.js": ""}}, installtest.Release{Version: "1.1.0", Age: time.Minute})
	opts := options(t, r)
	for _, tt := range []struct{ name, ref, want string }{
		{"unknown", "npm:nothing", "404"},
		{"the archive is not what the registry says", "npm:forged", "EINTEGRITY"},
		{"from another host", "npm:outside", "it may reach the registry only, and tried 127.0.0.1:"},
		{"no such version", "npm:young@9.9.9", "ETARGET"},
	} {
		ref, err := ParseReference(tt.ref)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Fetch(t.Context(), opts, ref); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Fetch = %v, want an error with %q", tt.name, err, tt.want)
		}
	}
	if asked := fmt.Sprint(other.Asked()); asked != "[]" {
		t.Errorf("the other host was asked for %s", asked)
	}
	opts.MinAge = 24 * time.Hour
	p, err := Fetch(t.Context(), opts, Reference{Source: "npm", Name: "young"})
	if err != nil || p.Version != "1.0.0" {
		t.Errorf("with a minimum age, Fetch = %+v, %v, want the older version", p, err)
	}
	if entries, err := os.ReadDir(opts.Store); err != nil || len(entries) != 1 {
		t.Errorf("the store has %v, %v, want one package", entries, err)
	}
	r.Close()
	if _, err := Fetch(t.Context(), opts, Reference{Source: "npm", Name: "young"}); err == nil {
		t.Error("Fetch works although the registry is down")
	}
	if err := p.Verify(); err != nil {
		t.Errorf("the installed package needs the registry: %v", err)
	}
}

// TestFetchOfScope: a scope with a registry of its own comes from there, and never from the other one.
func TestFetchOfScope(t *testing.T) {
	t.Parallel()
	r, own := newRegistry(t), newRegistry(t)
	program := map[string]string{"a.js": ""}
	r.Add("@corp/x", installtest.Release{Version: "6.6.6", About: map[string]any{"bin": "a.js"}, Files: program})
	r.Add("y", installtest.Release{Version: "1.0.0", About: map[string]any{"bin": "a.js", "dependencies": map[string]string{"@corp/x": "*"}}, Files: program})
	own.Add("@corp/x", installtest.Release{Version: "1.0.0", About: map[string]any{"bin": "a.js"}, Files: program})
	opts := options(t, r)
	opts.Scopes = map[string]string{"@corp": own.URL + "/"}
	p, err := Fetch(t.Context(), opts, Reference{Source: "npm", Name: "@corp/x"})
	if err != nil || p.Version != "1.0.0" {
		t.Errorf("Fetch = %+v, %v, want that of its own registry", p, err)
	}
	p, err = Fetch(t.Context(), opts, Reference{Source: "npm", Name: "y"})
	if err != nil {
		t.Fatal(err)
	}
	var about struct{ Version string }
	if err := readJSON(filepath.Join(p.Dir, modules, "@corp/x/package.json"), &about); err != nil || about.Version != "1.0.0" {
		t.Errorf("what another package needs is %+v, %v, want that of its own registry", about, err)
	}
}

func TestParseReference(t *testing.T) {
	for text, want := range map[string]Reference{
		"npm:a":              {"npm", "a", ""},
		"npm:@s/a":           {"npm", "@s/a", ""},
		"npm:@s/a@1.2.3":     {"npm", "@s/a", "1.2.3"},
		"npm:a@^1.0.0-rc.1":  {"npm", "a", "^1.0.0-rc.1"},
		"npm:a@latest":       {"npm", "a", "latest"},
		"npm:":               {},
		"a":                  {},
		"npm:../a":           {},
		"npm:a@../b":         {},
		"npm:a@npm:b":        {},
		"npm:a@file:/etc":    {},
		"npm:--prefix":       {},
		"npm:a@--force":      {},
		"npm:A":              {},
		"pypi:a":             {},
		"npm:a b":            {},
		"npm:@s/../../x@1":   {},
		"npm:a@1.0.0 --x":    {},
		"npm:git+ssh://x":    {},
		"npm:a@git+ssh://x":  {},
		"npm:a@>=1.0.0":      {},
		"npm:@s@1":           {},
		"npm:a@1.0.0+build.": {"npm", "a", "1.0.0+build."},
	} {
		got, err := ParseReference(text)
		if got != want || (err == nil) != (want != Reference{}) {
			t.Errorf("ParseReference(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
}
