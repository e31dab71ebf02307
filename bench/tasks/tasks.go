package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// task is one whole task, and how a good agent does it with either set of tools.
type task struct {
	name       string
	repo       func(dir string) *repo
	prepare    func(*repo)
	typescript bool // its programs need a node that runs TypeScript
	toolhost   []step
	claude     []step
	check      func(r *repo, said string) // said is all that the model has read
}

// step is one call of a tool.
type step struct {
	tool string
	args args
}

// args are arguments. Their values may be inRepo and found.
type args map[string]any

// fill returns the arguments with the values that are known only now: the repository is in dir,
// and the model has read what is said.
func (a args) fill(dir, said string) args {
	filled := args{}
	for name, value := range a {
		switch v := value.(type) {
		case inRepo:
			value = filepath.Join(dir, string(v))
		case found:
			value = v.in(said)
		}
		filled[name] = value
	}
	return filled
}

// String returns the arguments as JSON.
func (a args) String() string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(map[string]any(a)) // texts, numbers and lists of them always encode
	return strings.TrimSuffix(text.String(), "\n")
}

// inRepo is a path in the repository, as an absolute path.
type inRepo string

// found is a text and, behind it, the last match of a regular expression in earlier results, or
// of its group.
type found struct{ before, pattern string }

// in returns the value in what was said.
func (f found) in(said string) string {
	matches := slices.Concat(regexp.MustCompile(f.pattern).FindAllStringSubmatch(said, -1)...)
	if len(matches) == 0 {
		return "nothing matches " + f.pattern
	}
	return f.before + matches[len(matches)-1]
}

// tasks returns the 20 tasks.
func tasks() []task {
	return slices.Concat(fixes, changes, histories, readings)
}

// warmUp is done first and not counted: it fills Go's caches.
var warmUp = task{
	name:     "warm up",
	repo:     ledger,
	toolhost: []step{{"shell_exec", args{"command": "go test ./...", "timeout": 600}}},
	claude:   []step{{"Bash", args{"command": "go test ./...", "timeout": 600_000}}},
}

// shell runs a command with toolhost.
func shell(command string) step { return step{"shell_exec", args{"command": command}} }

// bash runs a command with Claude Code.
func bash(command string) step { return step{"Bash", args{"command": command}} }

// read reads a file with Claude Code, which edits only what it has read.
func read(path inRepo) step { return step{"Read", args{"file_path": path}} }

// edit edits a file with Claude Code.
func edit(path inRepo, old, replaced string) step {
	return step{"Edit", args{"file_path": path, "old_string": old, "new_string": replaced}}
}
