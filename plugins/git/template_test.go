package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A template is a repository that git makes once for all tests: a copy costs less than
// the processes that make it.
type template struct {
	once sync.Once
	dir  string
	err  error
}

// templates are the templates of this run, by the commands that make them.
var templates struct {
	sync.Mutex
	dir  string
	made map[string]*template
}

// copyTemplate makes the directory a copy of the result of the commands in an empty one. The
// copy's index knows its files, as if git had written them.
func (w *workspace) copyTemplate(dir, commands string) {
	w.Helper()
	templates.Lock()
	made := templates.made[commands]
	if made == nil {
		if templates.made == nil {
			templates.made = map[string]*template{}
		}
		made = &template{dir: filepath.Join(templates.dir, fmt.Sprint(len(templates.made)))}
		templates.made[commands] = made
	}
	templates.Unlock()
	made.once.Do(func() { made.err = made.make(commands) })
	if made.err != nil {
		w.Fatal(made.err)
	}
	copyTree(w, made.dir, dir)
	// It fails if a file is not as it was committed, which some are not.
	_, _ = w.runIn(dir, "git", "update-index", "-q", "--refresh")
}

func (m *template) make(commands string) error {
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return err
	}
	cmd := exec.Command("bash", "-ec", commands)
	cmd.Dir, cmd.Env = m.dir, environment(m.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a template: %w\n%s", err, out)
	}
	samples, err := filepath.Glob(filepath.Join(m.dir, ".git", "hooks", "*.sample"))
	for _, sample := range samples {
		err = os.Remove(sample)
	}
	return err
}

// copyTree copies files with their modes; their times are those of the copy.
func copyTree(tb testing.TB, from, to string) {
	tb.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		tb.Fatal(err)
	}
}

// runIn runs a program in a directory, like the workspace's user, and returns its output.
func (w *workspace) runIn(dir, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = dir, environment(w.scratch)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// commits makes commits that change no file on the branch main, in one process.
func (w *workspace) commits(in string, messages ...string) {
	w.Helper()
	var b strings.Builder
	for i, message := range messages {
		fmt.Fprintf(&b, "commit refs/heads/main\ncommitter Ada <ada@example.com> 1767323045 +0000\ndata %d\n%s\n", len(message), message)
		if i == 0 {
			b.WriteString("from refs/heads/main^0\n")
		}
	}
	w.fastImport(filepath.Join(w.dir, in), b.String())
}

// fastImport makes commits in the repository dir from the input of git fast-import, and returns
// the marks that the input asks for.
func (w *workspace) fastImport(dir, input string) string {
	w.Helper()
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Env, cmd.Stdin = dir, environment(w.scratch), strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}
