package command

import (
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/lazyregexp"
)

// echo checks echo, which prints its words unchanged.
func (r *reader) echo(s *Segment, words []word) {
	for _, w := range words {
		if !w.whole {
			s.blame(High, "%s may become the names of files, or other words", w.text)
		}
	}
}

// printf checks printf: words after a format that must not be an option, because one option sets a
// variable.
func (r *reader) printf(s *Segment, words []word) {
	if len(words) > 0 && words[0].static && words[0].text == "--" {
		words = words[1:]
	}
	if len(words) > 0 && words[0].flag() {
		s.blame(High, "%s may be an option of printf", words[0].text)
	}
	if len(words) > 0 && counting().MatchString(strings.ReplaceAll(words[0].text, "%%", "")) {
		s.blame(High, "%%n of printf sets a variable")
	}
	r.echo(s, words)
}

// counting matches the directive of printf that stores the number of printed characters in a
// variable, which may be PATH.
var counting = lazyregexp.New(`%[-#' +0-9*.hjlqLtz]*n`)

// tests are the operators of test for files and texts. Operators for variables evaluate names.
//
//nolint:gochecknoglobals // a table
var tests = set("-e -f -d -r -w -x -s -L -h -n -z -t -S -p -b -c -g -u -k -O -G -N -nt -ot -ef -eq -ne -lt -le -gt -ge -a -o = == != < > ! ( ) ]")

// fileTests are the operators for files; the first three compare two files.
//
//nolint:gochecknoglobals // a table
var fileTests = []string{"-ef", "-nt", "-ot", "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-S", "-p", "-O", "-G", "-N"}

// bracket checks test and [.
func (r *reader) bracket(s *Segment, words []word) {
	for i, w := range words {
		switch {
		case !w.static:
			// Where an operator may be, it could be one.
			s.blame(High, "%s is known only when it runs", w.text)
		case strings.HasPrefix(w.text, "-") && !tests[w.text] && !digits(w.text[1:]):
			s.blame(High, "the test %s is not known to be harmless", w.text)
		case !tests[w.text] && (i > 0 && slices.Contains(fileTests, words[i-1].text) || i+1 < len(words) && slices.Contains(fileTests[:3], words[i+1].text)):
			r.path(s, w)
		}
	}
}

// changeDir checks cd. Later paths are relative to that directory.
func (r *reader) changeDir(s *Segment, words []word) {
	p := program{options: options{flags: "LPe"}, operands: paths, most: 1}
	r.line.moves = true
	r.uses(s, p, words)
	if rest := p.split(words).operands; len(rest) != 1 || rest[0].text == "-" {
		s.blame(High, "cd leads to where a variable says")
	}
}

// date checks date, which prints the time and can set it.
func (r *reader) date(s *Segment, words []word) {
	p := program{options: options{flags: "uR", values: "d", optional: "I", long: "utc universal rfc-email date= iso-8601 rfc-3339="}, operands: anything}
	r.uses(s, p, words)
	for _, w := range p.split(words).operands {
		if !strings.HasPrefix(w.text, "+") {
			s.blame(High, "%s sets the time", w.text)
		}
	}
}

// plainName matches the names of variables that neither shells nor programs obey: those are upper
// case, but for http_proxy and the like.
var plainName = lazyregexp.New(`^[a-z_][a-z0-9_]*$`)

// variables checks read, which sets variables to what it reads.
func (r *reader) variables(s *Segment, words []word) {
	o := options{flags: "r"}
	a := o.split(words)
	switch {
	case a.unknown != "":
		s.blame(High, "the option %s of read is not known to be harmless", a.unknown)
	case len(a.operands) == 0:
		s.blame(Medium, "it sets REPLY for what follows")
	}
	for _, w := range a.operands {
		if !w.static || !plainName().MatchString(w.text) || strings.HasSuffix(w.text, "_proxy") {
			s.blame(High, "it sets %s for what follows", w.text)
		}
	}
}

// keepsBlanks reports whether a variable of a command is the empty IFS of read.
func keepsBlanks(program, name, value string) bool {
	return program == "read" && name == "IFS" && value == ""
}

// find checks find: first the places where it looks, then its expression.
func (r *reader) find(s *Segment, words []word) {
	if r.line.Deferred && r.depth == 0 {
		words = unbuilt(words) // each command is judged when it is built
	}
	start := true
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case !w.static:
			s.blame(High, "%s is known only when it runs", w.text)
		case start && (w.text == "-H" || w.text == "-L" || w.text == "-P"):
		case start && !strings.HasPrefix(w.text, "-") && !finders[w.text]:
			r.path(s, w)
		case finders[w.text]:
			start = false
		case valuedFinders[w.text] && i+1 < len(words):
			start = false
			i++
			r.literal(s, words[i])
		default:
			s.blame(High, "%s of find is not known to be harmless", w.text)
		}
	}
}

// sedPattern has no escapes, and in brackets only characters that no sed reads as the end of the
// brackets or of the pattern, as in [/].
const sedPattern = `(?:[^/\\\n\[]|\[\^?(?:[\w .,:;@%+-]|\[:[a-z]+:\])+\])*`

// sedAddress is a line number, "$", or a pattern.
const sedAddress = `(?:\d+|\$|/` + sedPattern + `/)`

// sedScripts matches scripts that print, delete and replace. None writes, reads or executes.
var sedScripts = lazyregexp.New(`^(?:` + sedCommand + `)(?:;\s*(?:` + sedCommand + `))*;?$`)

const sedCommand = `\s*(?:` + sedAddress + `(?:,` + sedAddress + `)?\s*!?\s*)?(?:[pdq=l]|s/` + sedPattern + `/[^/\\\n]*/[gpI0-9]*)\s*`

// sed checks sed: one script, then files.
func (r *reader) sed(s *Segment, words []word) {
	p := program{options: options{flags: "nErsuz", long: "quiet silent regexp-extended separate unbuffered null-data sandbox posix debug"}, operands: paths}
	a := p.split(words)
	rest := a.operands
	switch {
	case a.unknown != "":
		s.blame(High, "the option %s of sed is not known to be harmless", a.unknown)
	case len(rest) == 0:
		s.blame(High, "sed has no script")
	case !rest[0].static || !sedScripts().MatchString(rest[0].text):
		s.blame(High, "the script %s may write or execute", rest[0].text)
	default:
		for _, w := range rest[1:] {
			r.path(s, w)
		}
	}
}

// git checks git: its own options, its command, and the options of that.
func (r *reader) git(s *Segment, words []word) {
	rest := words
	for len(rest) > 0 && rest[0].static && strings.HasPrefix(rest[0].text, "-") {
		switch {
		case rest[0].text == "-C" && len(rest) > 1:
			r.path(s, rest[1])
			s.Dirs = append(s.Dirs, rest[1].text)
			rest = rest[2:]
		case rest[0].text == "--no-pager" || rest[0].text == "--no-optional-locks" || rest[0].text == "--literal-pathspecs":
			rest = rest[1:]
		default:
			s.blame(High, "the option %s of git is not known to be harmless", rest[0].text)
			s.Known, s.Loose = false, true
			return
		}
	}
	if len(rest) == 0 || !rest[0].static {
		s.blame(High, "git without a command that is known")
		return
	}
	s.Words = append(s.Words[:1:1], known(rest)...)
	name := rest[0].text
	s.Patches = patches(name, rest[1:])
	p, looks := gits[name]
	switch {
	case looks && (!gitMedium[name] || p.covers(rest[1:])):
		r.uses(s, p, rest[1:])
		for _, w := range rest[1:] {
			if strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "%G") {
				s.blame(High, "%s runs a program that checks signatures", w.text)
			}
		}
	case gitMedium[name]:
		s.Known = false
		s.fear(Medium, "git %s changes the repository", name)
	default:
		s.Known = false
		s.fear(High, "git %s may send away, execute or remove", name)
	}
}

// golang checks the go command.
func (r *reader) golang(s *Segment, words []word) {
	if len(words) == 0 || !words[0].static {
		s.blame(High, "go without a command that is known")
		return
	}
	name := words[0].text
	p, harmless := gos[name]
	switch {
	case harmless:
		r.uses(s, p, words[1:])
		for _, w := range words[1:] {
			if strings.Contains(w.text, "@") {
				s.blame(High, "%s may be fetched", w.text)
			}
		}
	case goMedium[name]:
		s.Known = false
		s.fear(Medium, "go %s changes files", name)
	default:
		s.Known = false
		s.fear(High, "go %s may execute or fetch anything", name)
	}
}
