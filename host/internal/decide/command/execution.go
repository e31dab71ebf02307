package command

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax/typedjson"
)

// MaxTree limits the text of a line with a tree. The encoded tree is a hundred times as long.
const MaxTree = 8 << 10

// Text returns the line as it was given.
func (l *Line) Text() string { return l.text }

// HasTree reports whether the line can be executed by its tree: it was parsed, is not too long, and
// does nothing that only bash does as bash.
func (l *Line) HasTree() bool {
	return l.tree != nil && len(l.text) <= MaxTree && !needsBash(l.tree, l.text)
}

// Tree returns the syntax tree of the line, in the typed JSON of mvdan.cc/sh; nil if it
// has none.
func (l *Line) Tree() ([]byte, error) {
	if !l.HasTree() {
		return nil, nil
	}
	var out bytes.Buffer
	if err := typedjson.Encode(&out, l.tree); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Literals returns the commands in the line that get exactly the words that are written.
func (l *Line) Literals() [][]string {
	var all [][]string
	for i := range l.Segments {
		s := &l.Segments[i]
		if s.Literal && !s.Maybe {
			all = append(all, s.Argv)
		}
	}
	return all
}

// ParseArgv reads a command with known words, as the program or builtin gets them, and the
// variables that are set for it, as NAME=value.
func ParseArgv(argv, environment []string, opts Options) *Line {
	line := &Line{text: strings.Join(argv, " ")}
	r := &reader{opts: opts, line: line}
	words := make([]word, len(argv))
	for i, text := range argv {
		words[i] = word{text: text, static: true, plain: true, whole: true}
	}
	var unread []int
	if argv[0] == "grep" {
		unread = excluded(words)
	}
	for i, text := range argv {
		if !slices.Contains(unread, i) {
			r.mentionParts(text, false)
		}
	}
	r.run(words, false)
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if keepsBlanks(argv[0], name, value) {
			continue
		}
		if why := r.setting(name, word{text: value, static: true}); why != "" {
			line.problem(High, "%s", why)
		}
		r.mentionParts(value, false)
	}
	r.settle()
	return line
}

// ParseOpen reads a shell's access to a file by its absolute path, for example for a redirection.
func ParseOpen(name string, write bool, opts Options) *Line {
	operator := "<"
	if write {
		operator = ">"
	}
	line := &Line{text: operator + " " + name}
	r := &reader{opts: opts, line: line}
	s := Segment{Argv: []string{operator, name}, Words: []string{operator, name}, Transparent: true, Known: true, Literal: true, Files: []string{name}}
	switch {
	case !write:
		if risk, why := r.outside(name); why != "" {
			s.blame(risk, "%s", why)
		}
	case r.writable(name):
		line.Writes = []string{name}
	default:
		line.Writes = []string{name}
		s.blame(Medium, "it writes the file %s", name)
		if device(name) {
			line.Forbidden = "it writes to the device " + name
		}
	}
	r.mentionParts(name, false)
	r.add(s)
	r.settle()
	return line
}

// writable reports whether output may be redirected to an absolute path.
func (r *reader) writable(name string) bool {
	for _, allowed := range r.opts.WriteRedirects {
		if !path.IsAbs(allowed) {
			allowed = path.Join(r.opts.Workspace, allowed)
		}
		if path.Clean(allowed) == name {
			return true
		}
	}
	return false
}
