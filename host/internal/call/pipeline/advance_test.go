package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// commandInput is the schema of a tool that executes commands.
var commandInput = json.RawMessage(`{"type":"object","properties":{"command":{"type":"string","description":"what to run","x-role":"command"}}}`)

// TestAdvanceAnswersAsTheQuestion answers parts of commands in advance, changes the workspace at
// random, and has a plugin ask for these parts and for similar ones. With the answers in
// advance, each part runs exactly if the host would now say that it may.
func TestAdvanceAnswersAsTheQuestion(t *testing.T) {
	t.Parallel()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws = filepath.Join(ws, "ws") // changes through links stay in the test's directory
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	list := &policy.Commands{WriteRedirects: []string{"/dev/null", filepath.Join(ws, "out")}}
	for _, name := range []string{"cat", "ls", "head", "test", "grep", "echo", "cd", "git status", "tac *", "rg", "find"} {
		list.Allow = append(list.Allow, policy.CommandRule{Words: strings.Fields(name)})
	}
	options := policy.Options{Commands: list, Paths: policy.Paths{Forbidden: []policy.PathRule{{Pattern: "**/hidden"}}}}
	byList := settingsOf(t, options, ws)
	options.Rules = []policy.Rule{{Name: "all", Tools: []string{"run"}, Verdict: policy.Allow}}
	byRule := settingsOf(t, options, ws)
	s := byList
	d := &drawn{Rand: rand.New(rand.NewPCG(soak.Seed(t), 0)), ws: ws}

	var parts []tool.Execution // that the plugin asks about
	var errs []error
	plugin := sdk.New("shell", "1.0.0")
	sdk.AddRawTool(plugin, tool.Spec{
		Name: "run", Description: "Runs parts.", Tier: tool.Privileged, CommandTree: true, InputSchema: commandInput,
	}, func(ctx context.Context, call *sdk.Call, _ json.RawMessage) (tool.Result, error) {
		errs = nil
		for _, e := range parts {
			errs = append(errs, call.MayRun(ctx, e))
		}
		return tool.TextResult("done"), nil
	})
	var asked atomic.Int32
	c := &call{entry: entryOf(t), tier: tool.Privileged}
	question := func(e tool.Execution) *tool.Error {
		in := s.inputOfPart(c, &e)
		if d := s.Policy.Decide(in); d.Verdict != policy.Allow {
			return tool.Errorf(tool.PermissionDenied, "this needs approval: %s", d.Rule)
		}
		return nil
	}
	running := sdktest.Start(t, plugin, sdktest.Options{MayRun: func(e tool.Execution) *tool.Error {
		asked.Add(1)
		return question(e)
	}})

	advance, refused := 0, 0
	for range soak.Rounds(300, 20_000) {
		d.fill(t)
		if s = byList; d.IntN(2) == 0 {
			s = byRule
		}
		var texts []string
		for range 1 + d.IntN(5) {
			texts = append(texts, d.part())
		}
		line := strings.Join(texts, "; ")
		c.tree, c.names = command.Parse(line, s.Policy.Reading(s.Roots)), nil
		if d.IntN(4) == 0 {
			c.names = []string{d.path()}
		}
		sent := tool.Call{Tool: "run", CommandTree: json.RawMessage("{}"), Judged: s.judged(c), JudgedUntil: time.Now().Add(time.Hour)}
		parts = nil
		for _, j := range sent.Judged {
			parts = append(parts, j.Execution, d.changed(j.Execution))
		}
		for range d.IntN(4) {
			d.change(t)
		}
		before := asked.Load()
		if result := running.Run(t.Context(), sent, tool.Sink{}); result.Error != nil {
			t.Fatal(result.Error)
		}
		advance += len(parts) - int(asked.Load()-before)
		for i, err := range errs {
			want := question(parts[i])
			if (err == nil) != (want == nil) {
				t.Fatalf("after %q in %q, %+v: %v with answers in advance, %v without\n%s", line, c.names, parts[i], err, want, d.log)
			}
			if err != nil {
				refused++
			}
		}
	}
	t.Logf("%d parts ran by an answer in advance, %d were refused", advance, refused)
	if advance < 100 || refused < 20 {
		t.Error("the test shows little")
	}
}

// TestParentOfALink checks that a file that a part names through the parent of a directory is
// found where the system finds it, if that directory is a symbolic link: way/../k is .ssh/k.
// Such a part is not answered in advance.
func TestParentOfALink(t *testing.T) {
	t.Parallel()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.MkdirAll(filepath.Join(ws, ".ssh", "deep"), 0o755), os.Symlink(".ssh/deep", filepath.Join(ws, "way")), os.Mkdir(filepath.Join(ws, "sub"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := settingsOf(t, policy.Options{Rules: []policy.Rule{{Name: "all", Tools: []string{"run"}, Verdict: policy.Allow}}}, ws)
	for line, want := range map[string]policy.Verdict{
		"tac way/../k": policy.Confirm, "tac sub/../way/../k": policy.Confirm, "tac --file=way/../k": policy.Confirm,
		"tac " + ws + "/way/../k": policy.Confirm, "tac sub/../k": policy.Allow, "tac way/..": policy.Confirm, "tac k": policy.Allow,
	} {
		c := &call{entry: entryOf(t), tier: tool.Privileged, tree: command.Parse(line, s.Policy.Reading(s.Roots))}
		in := s.inputOfPart(c, &tool.Execution{Argv: strings.Fields(line), Directory: ws})
		if got := s.Policy.Decide(in).Verdict; got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
		if got := len(s.judged(c)) > 0; got != (line == "tac k") {
			t.Errorf("%s: answered in advance: %t", line, got)
		}
	}
	if dir := inside(ws, []string{"sub", "../way/.."}); dir != filepath.Join(ws, ".ssh") { // git -C sub -C ../way/..
		t.Errorf("git runs in %s, want .ssh", dir)
	}
	c := &call{entry: entryOf(t), names: []string{"way/../k"}}
	if paths := s.paths(c); len(paths) != 2 || paths[1].Absolute != filepath.Join(ws, ".ssh", "k") {
		t.Errorf("the argument way/../k has the paths %v, want .ssh/k too", paths)
	}
}

// entryOf returns a tool that executes commands.
func entryOf(t *testing.T) *catalog.Entry {
	t.Helper()
	compiled, err := schema.Compile(commandInput)
	if err != nil {
		t.Fatal(err)
	}
	return &catalog.Entry{Plugin: "shell", Spec: tool.Spec{Name: "run"}, Schema: compiled}
}

func settingsOf(t *testing.T, options policy.Options, root string) *Settings {
	t.Helper()
	rules, err := policy.New(options)
	if err != nil {
		t.Fatal(err)
	}
	s := &Settings{Policy: rules, Roots: []string{root}}
	s.resolve()
	return s
}

// drawn makes commands and changes of a workspace.
type drawn struct {
	*rand.Rand

	ws  string
	log []string // the changes since fill
}

func (d *drawn) pick(of ...string) string { return of[d.IntN(len(of))] }

// path returns the name of a file or directory that may exist.
func (d *drawn) path() string {
	name := d.pick("a", "k", "sub", "other", "way", "link", "none", "hidden", ".env", ".ssh", ".")
	if d.IntN(2) == 0 {
		name = filepath.Join(d.pick("sub", "other", "way", "sub/deep", ".ssh"), name)
	}
	return name
}

// part returns a command.
func (d *drawn) part() string {
	path := d.path()
	switch d.IntN(8) {
	case 0:
		path = filepath.Join(d.ws, path)
	case 1:
		path = d.pick("way", "sub", "link") + "/../" + path
	case 2:
		path = "./" + path
	case 3:
		path = "--x=" + path
	}
	return d.pick("cat ", "tac ", "tac ", "grep -rn x ", "rg x ", "find ", "ls ", "head -n1 ", "test -f ", "grep -n x ", "echo ", "cd ", "git status ", "cat a ", "grep -f", "ls -I", "echo a >/dev/null; cat ", "echo a >"+d.ws+"/out; cat ") + path
}

// changed returns a part that differs a little.
func (d *drawn) changed(e tool.Execution) tool.Execution {
	e.Argv = append([]string(nil), e.Argv...)
	switch d.IntN(6) {
	case 0:
		e.Environment = []string{d.pick("PATH=.", "LD_PRELOAD=x", "IFS=/", "HOME=.", "GIT_DIR=x")}
	case 1:
		e.Directory = filepath.Join(d.ws, d.path())
	case 2:
		e.Write = !e.Write
	case 3:
		e.File = filepath.Join(d.ws, d.path())
		e.Argv = nil
	default:
		if len(e.Argv) > 0 {
			e.Argv[d.IntN(len(e.Argv))] = d.path()
		}
	}
	return e
}

// fill makes a workspace with one link.
func (d *drawn) fill(t *testing.T) {
	t.Helper()
	d.log = nil
	old, err := os.ReadDir(d.ws)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range old {
		d.try(os.RemoveAll, entry.Name())
	}
	for _, dir := range []string{"sub/deep", "other", ".ssh/deep"} {
		if err := os.MkdirAll(filepath.Join(d.ws, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "k", ".env", "hidden", "sub/a", "sub/deep/a", "other/a", ".ssh/a", ".ssh/k"} {
		if err := os.WriteFile(filepath.Join(d.ws, name), []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("sub", filepath.Join(d.ws, "way")); err != nil {
		t.Fatal(err)
	}
	d.log = nil
}

// try changes something; an error is a change less.
func (d *drawn) try(change func(path string) error, name string) {
	d.log = append(d.log, fmt.Sprint(name, ": ", change(filepath.Join(d.ws, name))))
}

// change makes one change: a link, a rename, a hard link, a directory or a file, in place of
// another.
func (d *drawn) change(t *testing.T) {
	t.Helper()
	from, to := d.path(), d.path()
	switch {
	case d.IntN(3) == 0: // a directory that the commands go through
		to = d.pick("way", "sub", "link")
	case to == ".":
		return
	}
	if d.IntN(3) > 0 {
		d.try(os.RemoveAll, to)
	}
	source := filepath.Join(d.ws, from)
	switch d.IntN(6) {
	case 0, 1:
		d.try(func(path string) error { return os.Symlink(source, path) }, to)
	case 2:
		d.try(func(path string) error {
			return os.Symlink(d.pick("..", ".ssh", ".ssh/deep", filepath.Dir(d.ws), ".env", "hidden", "sub", "none"), path)
		}, to)
	case 3:
		if from == "." {
			return // the workspace itself
		}
		d.try(func(path string) error { return os.Rename(source, path) }, to)
	case 4:
		d.try(func(path string) error { return os.Link(source, path) }, to)
	default:
		d.try(func(path string) error { return os.Mkdir(path, 0o755) }, to)
	}
}
