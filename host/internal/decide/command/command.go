// Package command reads a shell command as bash would, without running anything:
// which programs it runs, with which arguments and files, and how much harm that may
// do. What it does not understand it says, and never guesses: a line that it calls
// clean runs nothing but what it lists.
//
// It decides nothing. Package policy does, by the administrator's lists.
package command

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of what is read. A longer or deeper line is a [Problem].
const (
	MaxLength = 64 << 10
	// maxSegments bounds the commands of a line, those that may be run included.
	maxSegments = 1000
	// maxOpen bounds how many constructs are opened in a line, one in the other or
	// not.
	maxOpen = 512
	// maxDepth bounds commands in strings that are commands: sh -c 'sh -c ...'.
	maxDepth = 8
	// maxProblems bounds how many of them are told, of which one has the highest risk.
	maxProblems = 32
	// maxCandidate bounds the words that are shown of what may be a command.
	maxCandidate = 32
)

// Break separates commands in the words of a [Segment] that holds a whole line. No shell
// word can contain it.
const Break = "\x00"

// Risk is how much harm a command may do.
type Risk int

// The risks.
const (
	// Low: it reads what lies in the workspace, or prints.
	Low Risk = iota
	// Medium: it changes something, or nobody knows.
	Medium
	// High: it may remove, execute or send away anything, or its words are known
	// only when it runs.
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

// Options are what a line is read for.
type Options struct {
	// Workspace is an absolute, clean path: what lies there may be read.
	Workspace string
	// Assign are the variables that may be set for a command.
	Assign []string
	// WriteRedirects are the files to which output may be redirected.
	WriteRedirects []string
}

// String is a problem for people.
func (p Problem) String() string { return "not clear: " + p.Why + " (" + p.Risk.String() + " risk)" }

// String is a command for people: its words, and how much harm it may do.
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

// Line is a command line as it was read.
type Line struct {
	// Segments are the simple commands, in the order in which they are written, those
	// in wrappers (env, sh -c, xargs) and in substitutions after what runs them.
	Segments []Segment
	// Problems are what cannot be read, or is no simple command. A line with one
	// cannot be said to run only what is listed.
	Problems []Problem
	// Forbidden says why nobody should run the line; "" if there is no reason.
	Forbidden string
	// Unread says that there is more in the line than could be read, or a construct
	// that bash may read differently: it may run commands that are not among the
	// segments.
	Unread bool
	// Deferred says that what is known only when the line runs is left to that moment.
	Deferred bool
	// Files are those that redirections without a command name, as they are written.
	Files []string
	// Writes are the files to which output is redirected, as they are written.
	Writes []string
	// Directories are those that the line changes to, as they are written.
	Directories []string

	// Mentions are all words that may name files, without quotes, and parts of words
	// that may.
	Mentions []Mention

	// moves says that a command changes the directory, and relative is a file to which
	// output may be redirected in the first one.
	moves    bool
	relative string

	text string       // the whole line
	tree *syntax.File // of it; nil if it could not be parsed
	rest bool         // its last segment is that of [reader.rest]
}

// Problem is why a line is not known as a whole.
type Problem struct {
	Risk Risk   `json:"risk"`
	Why  string `json:"why"`
}

// Segment is one simple command.
type Segment struct {
	// Argv are its words as the program gets them. One that is known only when it
	// runs is as it is written.
	Argv []string `json:"argv"`
	// Name is the program's name without directories, "" if it is not known.
	Name string `json:"name,omitempty"`
	// Risk is how much harm it may do.
	Risk Risk `json:"risk"`
	// Why says what makes the risk; "" for what is known to be harmless.
	Why string `json:"why,omitempty"`
	// Files are the words that may name files, and where input and output are
	// redirected, as they are written.
	Files []string `json:"-"`

	// Dirs are the directories that the program changes to before anything else, each
	// relative to the one before: those of git -C.
	Dirs []string `json:"-"`

	// Words are Argv without options of the program itself that change nothing, such
	// as those of git before its command; "" is a word that is not known.
	Words []string `json:"-"`
	// Transparent says that it only runs the next segment, in no other way than the
	// shell would, or belongs to the language: nobody need list it.
	Transparent bool `json:"-"`
	// Clean says that nothing speaks against it but that its program is not known.
	Clean bool `json:"-"`
	// Maybe says that it may run or may be no command at all: it is the argument of
	// a program that runs others.
	Maybe bool `json:"maybe,omitempty"`
	// Unparsed says that it is a part of a text that is not read: any of Words may be
	// the program. [Break] separates commands.
	Unparsed bool `json:"-"`
	// Known says that the program is known: which of its flags are harmless.
	Known bool `json:"-"`
	// Loose says that an option before the program's own command is not known: any of
	// Words may be that command.
	Loose bool `json:"-"`
	// Literal says that every word is known, and the first is written without
	// quotes.
	Literal bool `json:"-"`
	// Least is how many of Words a [Pattern] has to name at least to cover it when
	// further words may follow: all that may change what the program does, such as
	// options; more than there are if further words may not. 0 means that no pattern
	// covers it, since more than its words make what it does.
	Least int `json:"-"`

	// Bulk says why it reads files that it does not name; "" if it is not known to.
	Bulk string `json:"-"`
	// Patches says that it is git and prints what has changed in files that it need not
	// name.
	Patches bool `json:"-"`

	// guess is what is feared of a program that is not known.
	guess Problem
	// altered says that a variable or a redirection changes what it does, fed that it
	// reads what something else gives it, and runs that it runs other commands.
	altered, fed, runs bool
}

// Risk is the highest of what was found.
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

// Parse reads a command line. What cannot be read is in the line's problems.
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
		s.Least = r.least(s)
	}
}

// Doubt adds why the line is not known as a whole, of high risk: something beside its
// words makes what it does.
func (l *Line) Doubt(why string) { l.problem(High, "%s", why) }

// unread notes why there is more in the line than could be read.
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

// fear notes what a program may do that is not known.
func (s *Segment) fear(risk Risk, why string, args ...any) {
	if risk > s.guess.Risk || s.guess.Why == "" {
		s.guess = Problem{max(s.guess.Risk, risk), fmt.Sprintf(why, args...)}
	}
}

// settle makes one risk of what is known and what is feared.
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
