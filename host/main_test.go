package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolhost/toolhost/host/internal/auth/certificate/certtest"
	"github.com/toolhost/toolhost/host/internal/plugin/install/installtest"
)

var update = flag.Bool("update", false, "rewrite what the scripts compare with")

// bin is the directory of the binaries under test: toolhost, and plugins/*. TestMain builds
// them once. If a test runs this program again, binVariable contains their directory.
var bin string

const binVariable = "TOOLHOST_TEST_BIN"

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	syscall.Umask(0o022) // others must not be able to write the files under test
	if bin = os.Getenv(binVariable); bin != "" {
		if scenario := os.Getenv(suiteScenario); scenario != "" {
			if err := runScenario(context.Background(), scenario, os.Args[len(os.Args)-1]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			return 0
		}
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "toolhost-test-")
	if err == nil {
		defer os.RemoveAll(dir)
		bin = dir
		err = errors.Join(os.Chmod(dir, 0o755), lookAtSources(), buildAll(dir))
		if err == nil {
			err = learn(dir)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := runWatched(m, dir)
	if races, _ := filepath.Glob(filepath.Join(dir, raceReport+".*")); len(races) > 0 {
		for _, report := range races {
			text, _ := os.ReadFile(report)
			fmt.Fprintf(os.Stderr, "a program under test has a data race:\n%s", text)
		}
		return 1
	}
	return code
}

// runWatched runs the tests. With the race detector, they run in a separate process whose
// environment tells programs where to report data races.
func runWatched(m *testing.M, dir string) int {
	if !raced {
		return m.Run()
	}
	again := exec.Command("/proc/self/exe", os.Args[1:]...)
	again.Env = append(os.Environ(), binVariable+"="+dir, "GORACE=atexit_sleep_ms=0 log_path="+filepath.Join(dir, raceReport))
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := again.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// raceReport begins the names of the files with the data races that programs find in
// themselves.
const raceReport = "race"

// sources are the directories that the binaries are built from, besides other modules.
var sources = []string{".", "../sdk", "../proto", "../plugins", "../examples", "../clients"}

// lookAtSources reads the sources so that `go test` knows that this test depends on them: it
// caches results by the files that a test opens, and does not see the build.
func lookAtSources() error {
	for _, dir := range sources {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shippedPlugins returns the names of the plugins of the default configuration.
func shippedPlugins() (names []string, err error) {
	dirs, err := os.ReadDir("../plugins")
	for _, dir := range dirs {
		names = append(names, dir.Name())
	}
	return names, err
}

// buildAll builds the host, our plugins, the examples and the tests' plugins. It leaves out
// debug information, which would double the time. With the race detector, the host and a
// second build of hello watch themselves.
func buildAll(dir string) error {
	names, err := shippedPlugins()
	if err != nil {
		return err
	}
	plugins := []string{"./testdata/plugins/probe", "./testdata/plugins/commands", "./testdata/plugins/conformance"}
	for _, name := range names {
		plugins = append(plugins, "../plugins/"+name)
	}
	type build struct {
		in, out string
		pkgs    []string
		watched bool // with the race detector
	}
	builds := []build{
		{".", "plugins/", plugins, false}, // first: a host keeps the digest of no program that is younger than two seconds
		{".", "bridges/", []string{"./testdata/plugins/foreign", "github.com/modelcontextprotocol/go-sdk/examples/server/memory"}, false}, // apart: scripts look at the list of plugins
		{".", "toolhost", []string{"."}, raced},
		{"../examples/hello", "plugins/hello", []string{"."}, false},
		{"../examples/disk", "plugins/disk", []string{"."}, false},
	}
	if raced {
		builds = append(builds, build{"../examples/hello", "plugins/" + watchedHello, []string{"."}, true})
	}
	for _, b := range builds {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir+"/"+b.out)
		cmd.Dir = b.in
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as in the Makefile
		if b.watched {
			cmd.Args = append(cmd.Args, "-race", "-gcflags", "modernc.org/...=-race=false")
			cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
		}
		cmd.Args = append(cmd.Args, b.pkgs...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s: %w\n%s", b.pkgs, err, out)
		}
	}
	return nil
}

// waitFor is a script command that waits for at most a minute until a file exists, or until
// its content matches a pattern.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: waitfor FILE [PATTERN]")
	}
	pattern, err := regexp.Compile("(?m)" + strings.Join(args[1:], ""))
	ts.Check(err)
	patience, look := time.NewTimer(time.Minute), time.NewTicker(10*time.Millisecond)
	defer patience.Stop()
	defer look.Stop()
	for {
		_, err := os.Stat(ts.MkAbs(args[0]))
		if err == nil && (len(args) == 1 || pattern.MatchString(ts.ReadFile(args[0]))) {
			return
		}
		select {
		case <-look.C:
		case <-patience.C:
			ts.Fatalf("%s did not come", strings.Join(args, " with "))
		}
	}
}

// let is a script command that sets a variable to a group of a pattern that matches the last
// output.
func let(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: let NAME PATTERN")
	}
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	found := pattern.FindStringSubmatch(ts.ReadFile("stdout") + "\n" + ts.ReadFile("stderr"))
	if len(found) != 2 {
		ts.Fatalf("%s finds %d groups in the output, want one", args[1], max(0, len(found)-1))
	}
	ts.Setenv(args[0], found[1])
}

// serveSite is a script command that serves the files of a directory over HTTP on a new port,
// which it sets as a variable. It echoes request bodies.
func serveSite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: site DIR VARIABLE")
	}
	files := http.FileServer(http.Dir(ts.MkAbs(args[0])))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			files.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s of %q with %q", r.Method, body, r.Header.Get("Authorization"))
	}))
	ts.Defer(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	ts.Check(err)
	ts.Setenv(args[1], port)
}

// registryKey is the key of a script's registry of npm.
type registryKey struct{}

// publish is a script command that publishes the files of a directory as a version of a package, in
// the script's registry of npm.
func publish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: publish NAME VERSION DIR")
	}
	release := installtest.Release{Version: args[1], Age: 48 * time.Hour, Files: map[string]string{}}
	dir := ts.MkAbs(args[2])
	entries, err := os.ReadDir(dir)
	ts.Check(err)
	for _, entry := range entries {
		text := ts.ReadFile(filepath.Join(dir, entry.Name()))
		if entry.Name() == "package.json" {
			ts.Check(json.Unmarshal([]byte(text), &release.About))
			continue
		}
		release.Files[entry.Name()] = text
	}
	registry, started := ts.Value(registryKey{}).(*installtest.Registry)
	if !started {
		ts.Fatalf("the script has no registry")
	}
	registry.Add(args[0], release)
	ts.Setenv("npm_config_registry", registry.URL+"/")
}

// certificates writes a certificate for this machine to the directory tls below dir, one that
// expires soon to soon, one for tools.example.com to named, and that of their authority to
// ca.pem.
func certificates(t *testing.T, dir string) {
	t.Helper()
	authority := certtest.New(t)
	for name, days := range map[string]int{"tls": 90, "soon": 5, "named": 90} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		names := certtest.Names()
		if name == "named" {
			names = []string{"tools.example.com"}
		}
		authority.Write(t, filepath.Join(dir, name), time.Now().Add(time.Duration(days)*24*time.Hour), names...)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), []byte(authority.PEM), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestScripts runs testdata/script/*.txtar with the real binaries, each in its own folder.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"waitfor": waitFor, "let": let, "site": serveSite, "publish": publish, "approve": decide("approve"), "reject": decide("reject")},
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("BIN", bin)
			env.Setenv("PLUGINS", filepath.Join(bin, "plugins"))
			env.Setenv("CI", os.Getenv("CI"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			if filepath.Base(env.WorkDir) == "script-mcp-servers" {
				registry := installtest.New()
				env.Defer(registry.Close)
				env.Values[registryKey{}] = registry
			}
			if filepath.Base(env.WorkDir) == "script-remote" {
				certificates(t, env.WorkDir)
			}
			return seed(filepath.Join(env.WorkDir, "state"))
		},
	})
}
