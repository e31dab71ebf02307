package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/internal/testprogram"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The test binary becomes the plugin if its environment says so.
func TestMain(m *testing.M) {
	if os.Getenv("GIT_AS_PLUGIN") != "" {
		newPlugin(layers{}).Serve()
	}
	flag.Parse()
	if _, err := exec.LookPath("git"); err != nil {
		fmt.Fprintln(os.Stderr, "git is missing:", err)
		if os.Getenv("CI") != "" {
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "templates")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	templates.dir = dir
	code := m.Run()
	_ = os.RemoveAll(dir) // it is a temporary directory
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.fuzz").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" {
		code = untested()
	}
	os.Exit(code)
}

// made are the calls that tests have made.
var made struct {
	sync.Mutex
	calls []sdktest.Call
}

// untested reports the properties of the tools that no test has set to another value
// than the default.
func untested() (code int) {
	p := newPlugin(layers{})
	addRemote(p, &git{}, true)
	names, err := sdktest.Untested(p.Tools(), made.calls)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, name := range names {
		fmt.Fprintf(os.Stderr, "no test sets %s to another value than its default\n", name)
		code = 1
	}
	return code
}

// workspace is a directory with repositories, and a plugin that works in it.
type workspace struct {
	testing.TB
	dir     string
	scratch string
	plugin  *sdktest.Plugin
}

// started says how a workspace is started; the zero value is as the plugin ships.
type started struct {
	layers   layers
	settings map[string]any
	budget   tool.ByteSize
	secrets  map[string]string
	options  func(*sdktest.Options)
}

// newWorkspace makes one with nothing in it.
func newWorkspace(tb testing.TB, how started) *workspace {
	tb.Helper()
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	w := &workspace{TB: tb, dir: filepath.Join(dir, "ws"), scratch: filepath.Join(dir, "scratch")}
	for _, dir := range []string{w.dir, w.scratch} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	w.start(how)
	return w
}

// start starts the plugin again.
func (w *workspace) start(how started) {
	w.Helper()
	if how.budget == 0 {
		how.budget = 64 * tool.KiB
	}
	options := sdktest.Options{
		Settings: how.settings, Secrets: how.secrets, Config: sdk.Config{ScratchDir: w.scratch},
		Context: tool.Context{Roots: []string{w.dir}, MaxOutput: how.budget},
	}
	if how.options != nil {
		how.options(&options)
	}
	w.plugin = sdktest.Start(w.TB, newPlugin(how.layers), options)
}

// pretend puts a shell script in the place of git, before which it does something else.
func (w *workspace) pretend(before string) {
	w.Helper()
	program := filepath.Join(w.scratch, "git")
	if err := testprogram.Write(program, strings.NewReader("#!/bin/sh\n"+before+"\nexec git \"$@\"\n")); err != nil {
		w.Fatal(err)
	}
	w.start(started{settings: map[string]any{"protocols": []string{"file"}, "program": program}, layers: layers{noRules: true}})
}

// environment returns the environment for git in tests: it reads no user's configuration and
// starts no background packing.
func environment(home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false",
	}
}

// git runs git in a directory of the workspace, like its user, and returns its output.
func (w *workspace) git(in string, args ...string) string {
	w.Helper()
	out, err := w.tryGit(in, args...)
	if err != nil {
		w.Fatal(err)
	}
	return out
}

func (w *workspace) tryGit(in string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = filepath.Join(w.dir, in), environment(w.scratch)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("git %q: %w\n%s%s", args, err, &stdout, &stderr)
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}

// write writes files of the workspace.
func (w *workspace) write(files map[string]string) {
	w.Helper()
	for name, content := range files {
		path := filepath.Join(w.dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			w.Fatal(err)
		}
	}
}

func (w *workspace) read(name string) string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// repo makes a repository with two commits and an identity.
func (w *workspace) repo(name string) {
	w.Helper()
	w.copyTemplate(filepath.Join(w.dir, name), makeRepo)
}

const makeRepo = `
	git init -q -b main .
	git config user.name Ada
	git config user.email ada@example.com
	mkdir dir
	echo one > a.txt
	echo two > dir/b.txt
	git add -A
	git commit -qm first
	echo more >> a.txt
	git commit -qam second -m 'with a body'
`

// args are the arguments of a call.
type args map[string]any

// call calls a tool.
func (w *workspace) call(name string, in args) tool.Result {
	w.Helper()
	note(name, encode(w, in))
	return w.plugin.Call(w.Context(), name, in)
}

// note remembers the parameters of a call.
func note(name string, in json.RawMessage) {
	made.Lock()
	defer made.Unlock()
	made.calls = append(made.calls, sdktest.Call{Tool: name, Args: in})
}

// must calls a tool that must succeed, and returns its text.
func (w *workspace) must(name string, in args) string {
	w.Helper()
	got := w.call(name, in)
	if got.Error != nil {
		w.Fatalf("%s(%v) = %v\n%s", name, in, got.Error, got.Error.Hint)
	}
	return got.Text()
}

// refused calls a tool that must fail, and returns the text for the model.
func (w *workspace) refused(name string, in args, code tool.Code) string {
	w.Helper()
	got := w.call(name, in)
	if got.Error == nil || got.Error.Code != code {
		w.Fatalf("%s(%v) = %q, %v, want the code %s", name, in, got.Text(), got.Error, code)
	}
	if got.Error.Hint == "" && code != tool.InvalidArgument {
		w.Errorf("%s(%v): %v, without a hint", name, in, got.Error)
	}
	if text := got.Error.ModelText(); strings.Contains(text, w.dir) {
		w.Errorf("%s(%v) tells where the workspace is: %s", name, in, text)
	}
	return got.Error.ModelText()
}

// structured calls a tool that must succeed, and reads its result.
func structured[Out any](w *workspace, name string, in args) (out Out) {
	w.Helper()
	got := w.call(name, in)
	if got.Error != nil {
		w.Fatalf("%s(%v) = %v\n%s", name, in, got.Error, got.Error.Hint)
	}
	if err := json.Unmarshal(got.Structured, &out); err != nil {
		w.Fatalf("%v in %s", err, got.Structured)
	}
	return out
}

// contains reports an error if a text lacks something.
func contains(tb testing.TB, text string, wanted ...string) {
	tb.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			tb.Errorf("got\n%s\nwhich lacks\n%s", text, want)
		}
	}
}

// The plugin keeps the contract, in this process and in a separate one.
func TestContract(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/a.txt": "changed\n"})
	options := sdktest.Options{
		Env:     []string{"GIT_AS_PLUGIN=1"},
		Context: tool.Context{Roots: []string{w.dir}, MaxOutput: 64 * tool.KiB},
		Calls: []sdktest.Call{
			{Tool: "git_status", Args: args{"path": "r"}},
			{Tool: "git_diff", Args: args{"path": "r"}},
			{Tool: "git_log", Args: args{"path": "r"}},
			{Tool: "git_show", Args: args{"path": "r"}},
			{Tool: "git_blame", Args: args{"path": "r/dir/b.txt"}},
			{Tool: "git_branch", Args: args{"path": "r", "create": false, "limit": 200}},
			{Tool: "git_stash", Args: args{"path": "r", "action": "list"}},
		},
	}
	t.Run("in process", func(t *testing.T) { sdktest.Run(t, newPlugin(layers{}), options) })
	t.Run("binary", func(t *testing.T) { sdktest.RunBinary(t, os.Args[0], options) })
}

// encode writes arguments as JSON.
func encode(tb testing.TB, in args) json.RawMessage {
	tb.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func asSettingError(err error, to **sdk.SettingError) bool { return errors.As(err, to) }
