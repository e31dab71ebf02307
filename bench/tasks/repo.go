package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// repo is a generated repository.
type repo struct {
	dir string
	err error // the first error; later steps do nothing
}

// newRepo makes an empty repository in place of what is in the directory.
func newRepo(dir string) *repo {
	r := &repo{dir: dir}
	r.err = cmp.Or(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
	r.run("git", "init", "-q", "-b", "main")
	r.run("git", "config", "user.name", "Ada")
	r.run("git", "config", "user.email", "ada@example.com")
	return r
}

// write writes files. Each name is followed by the content.
func (r *repo) write(namesAndTexts ...string) {
	for i := 0; i+1 < len(namesAndTexts) && r.err == nil; i += 2 {
		path := filepath.Join(r.dir, namesAndTexts[i])
		if r.err = os.MkdirAll(filepath.Dir(path), 0o755); r.err == nil {
			r.err = os.WriteFile(path, []byte(namesAndTexts[i+1]), 0o644)
		}
	}
}

// replace replaces a text that occurs in a file.
func (r *repo) replace(name, old, text string) {
	before := r.read(name)
	if r.err == nil && !strings.Contains(before, old) {
		r.err = fmt.Errorf("%s does not contain %q", name, old)
	}
	r.write(name, strings.Replace(before, old, text, 1))
}

// read returns the content of a file.
func (r *repo) read(name string) string {
	if r.err != nil {
		return ""
	}
	var text []byte
	text, r.err = os.ReadFile(filepath.Join(r.dir, name))
	return string(text)
}

// commit commits everything.
func (r *repo) commit(message string) {
	r.run("git", "add", "-A")
	r.run("git", "commit", "-q", "-m", message)
}

// run runs a program in the repository and returns what it prints.
func (r *repo) run(program string, args ...string) string {
	if r.err != nil {
		return ""
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "CGO_ENABLED=0",
		"GIT_AUTHOR_DATE=2026-03-02T10:00:00Z", "GIT_COMMITTER_DATE=2026-03-02T10:00:00Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.err = fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// want reports that a check of the final state failed.
func (r *repo) want(ok bool, what string) {
	if r.err == nil && !ok {
		r.err = fmt.Errorf("not so: %s", what)
	}
}

// clean demands that nothing is left uncommitted.
func (r *repo) clean() {
	r.want(r.run("git", "status", "--porcelain") == "", "everything is committed")
}
