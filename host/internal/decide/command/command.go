// Package command reads a shell command as bash would, without running anything. It finds the
// programs that the command runs, their arguments and files, and how much harm they may do. It
// reports what it does not understand, and never guesses: a line that it calls clean runs only what
// it lists.
//
// It makes no decisions. Package policy does, from the administrator's lists.
package command

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Limits of what is read. A longer or deeper line is a [Problem].
const (
	MaxLength = 64 << 10
	// maxSegments limits the commands of a line, including those that it may run.
	maxSegments = 1000
	// maxOpen limits the constructs that a line opens, nested or not.
	maxOpen = 512
	// maxDepth limits commands in strings that are commands: sh -c 'sh -c ...'.
	maxDepth = 8
	// maxProblems limits the reported problems. One of the highest risk is always reported.
	maxProblems = 32
	// maxCandidate limits the words that are shown of a possible command.
	maxCandidate = 32
)

// Break separates commands in the words of a [Segment] that holds a whole line. Shell words cannot
// contain it.
const Break = "\x00"

// Risk is how much harm a command may do.
type Risk int

// The risks.
const (
	// Low: it reads files of the workspace, or prints.
	Low Risk = iota
	// Medium: it changes something, or what it does is not known.
	Medium
	// High: it may remove, execute or send anything, or its words are known only at
	// run time.
	High
)

var riskNames = []string{"low", "medium", "high"} //nolint:gochecknoglobals // a constant

// String returns low, medium or high.
func (r Risk) String() string {
	if r < 0 || int(r) >= len(riskNames) {
		return fmt.Sprintf("Risk(%d)", int(r))
	}
	return riskNames[r]
}

// MarshalText implements [encoding.TextMarshaler].
func (r Risk) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (r *Risk) UnmarshalText(text []byte) error {
	for i, name := range riskNames {
		if name == string(text) {
			*r = Risk(i)
			return nil
		}
	}
	return fmt.Errorf("unknown risk %q, expected low, medium or high", text)
}

// Options configure how a line is read.
type Options struct {
	// Workspace is an absolute, clean path. Files below it may be read.
	Workspace string
	// Assign are the variables that may be set for a command.
	Assign []string
	// WriteRedirects are the files to which output may be redirected.
	WriteRedirects []string
}

// String describes the problem for people.
func (p Problem) String() string { return "not clear: " + p.Why + " (" + p.Risk.String() + " risk)" }

// String describes the command for people: its words and its risk.
func (s Segment) String() string {
	text := strings.Join(s.Argv, " ") + " (" + s.Risk.String() + " risk"
	if s.Why != "" {
		text += ": " + s.Why
	}
	if s.Maybe {
		return "may run " + text + ")"
	}
	return "runs " + text + ")"
}

// Line is a command line that was read.
type Line struct {
	// Segments are the simple commands in the order of the text. Commands in wrappers (env, sh -c,
	// xargs) and in substitutions come after the command that runs them.
	Segments []Segment
	// Problems are the parts that cannot be read or are not simple commands. A line with a problem
	// may run more than its segments.
	Problems []Problem
	// Forbidden is why the line must never run; "" if it may.
	Forbidden string
	// Unread reports that the line holds more than could be read, or a construct that bash may read
	// differently: it may run commands that are not segments.
	Unread bool
	// Deferred reports that parts which are known only at run time are judged then.
	Deferred bool
	// Files are the files of redirections without a command, as written.
	Files []string
	// Writes are the files to which output is redirected, as written.
	Writes []string
	// Directories are the directories that the line changes to, as written.
	Directories []string

	// Mentions are all words that may name files, without quotes, and the parts of words that may.
	Mentions []Mention

	// moves reports that a command changes the directory. relative is a permitted output file that
	// is relative to the first directory.
	moves    bool
	relative string

	text string       // the whole line
	tree *syntax.File // of it; nil if it could not be parsed
	rest bool         // its last segment was added by [reader.rest]
}

// Problem is why a line is not fully known.
type Problem struct {
	Risk Risk   `json:"risk"`
	Why  string `json:"why"`
}

// Segment is one simple command.
type Segment struct {
	// Argv are its words as the program gets them. A word that is known only at run time is kept as
	// written.
	Argv []string `json:"argv"`
	// Name is the program's name without directories; "" if it is not known.
	Name string `json:"name,omitempty"`
	// Risk is how much harm it may do.
	Risk Risk `json:"risk"`
	// Why is the reason for the risk; "" if the command is known to be harmless.
	Why string `json:"why,omitempty"`
	// Files are the words that may name files, and the files of redirections, as
	// written.
	Files []string `json:"-"`

	// Dirs are the directories that the program changes to first, each relative to the one before,
	// as with git -C.
	Dirs []string `json:"-"`

	// Words are Argv without the program's own options that change nothing, such as those of git
	// before its command. An unknown word is "".
	Words []string `json:"-"`
	// Transparent reports that it only runs the next segment, as the shell would, or is part of the
	// language. No list has to name it.
	Transparent bool `json:"-"`
	// Clean reports that the only objection is that its program is not known.
	Clean bool `json:"-"`
	// Maybe reports that it may not be a command at all: it is an argument of a program that runs
	// others.
	Maybe bool `json:"maybe,omitempty"`
	// Unparsed reports that it is part of a text that is not read: any of Words may be the program.
	// [Break] separates commands.
	Unparsed bool `json:"-"`
	// Known reports that the host knows which options of the program are harmless.
	Known bool `json:"-"`
	// Loose reports an unknown option before the program's own command: any of Words may be that
	// command.
	Loose bool `json:"-"`
	// Literal reports that every word is known, and that the first is written without quotes.
	Literal bool `json:"-"`
	// Least is the number of Words that a [Pattern] must name to cover the command when further
	// words may follow: all that may change what the program does, such as options. It is larger
	// than len(Words) if no words may follow, and 0 if no pattern covers the command, because
	// something other than its words decides what it does.
	Least int `json:"-"`

	// Bulk is why it reads files that it does not name; "" if it does not, as far as is known.
	Bulk string `json:"-"`
	// Search is what it reads, if that is why Bulk is set and the words tell.
	Search *Search `json:"-"`
	// Builds reports that it builds or tests what is in the workspace, and so executes what the
	// workspace names.
	Builds bool `json:"-"`
	// Patches reports that it is git and prints changes of files that it may not name.
	Patches bool `json:"-"`

	// guess is what an unknown program may do.
	guess Problem
	// altered reports that a variable or a redirection changes what it does, fed that it reads
	// input from elsewhere, and runs that it runs other commands.
	altered, fed, runs bool
}

// Risk is the highest risk of the segments and problems.
func (l *Line) Risk() Risk {
	risk := Low
	for _, s := range l.Segments {
		if !s.Maybe {
			risk = max(risk, s.Risk)
		}
	}
	for _, p := range l.Problems {
		risk = max(risk, p.Risk)
	}
	return risk
}

// Parse reads a command line. The line's problems are what cannot be read.
func Parse(text string, opts Options) *Line {
	line := &Line{text: text}
	r := &reader{opts: opts, line: line}
	r.read(text, 0)
	r.settle()
	if line.moves && line.relative != "" {
		line.problem(Medium, "it changes the directory, and writes the file %s", line.relative)
	}
	if len(line.Segments) == 0 && len(line.Problems) == 0 {
		line.problem(Medium, "it holds no command")
	}
	return line
}

// settle completes the segments.
func (r *reader) settle() {
	for i := range r.line.Segments {
		s := &r.line.Segments[i]
		s.settle()
		s.Least, s.Builds = r.least(s), buildsWorkspace(s)
	}
}

// Doubt adds a problem of high risk: something other than the line's words decides what it does.
func (l *Line) Doubt(why string) { l.problem(High, "%s", why) }

// unread adds a problem, and marks the line as not fully read.
func (l *Line) unread(risk Risk, why string, args ...any) {
	l.Unread = true
	l.problem(risk, why, args...)
}

func (l *Line) problem(risk Risk, why string, args ...any) {
	p := Problem{risk, fmt.Sprintf(why, args...)}
	if slices.Contains(l.Problems, p) {
		return
	}
	if last := len(l.Problems) - 1; last+1 == maxProblems {
		if risk > l.Problems[last].Risk {
			l.Problems[last] = p
		}
		return
	}
	l.Problems = append(l.Problems, p)
}

// blame raises the risk of a segment. The first reason of the highest risk counts.
func (s *Segment) blame(risk Risk, why string, args ...any) {
	if risk > s.Risk || s.Why == "" {
		s.Risk, s.Why = max(s.Risk, risk), fmt.Sprintf(why, args...)
	}
}

// fear notes what an unknown program may do.
func (s *Segment) fear(risk Risk, why string, args ...any) {
	if risk > s.guess.Risk || s.guess.Why == "" {
		s.guess = Problem{max(s.guess.Risk, risk), fmt.Sprintf(why, args...)}
	}
}

// settle combines what is known and what is feared into one risk.
func (s *Segment) settle() {
	s.Clean = s.Why == ""
	if s.guess.Why != "" {
		s.blame(s.guess.Risk, "%s", s.guess.Why)
	}
}

// nameOf returns a program's name without directories.
func nameOf(word string) string {
	if !strings.Contains(word, "/") {
		return word
	}
	return path.Base(word)
}
