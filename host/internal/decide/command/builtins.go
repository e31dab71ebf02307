package command

import (
	"regexp"
	"slices"
	"strings"
)

// echo prints its words, whatever they are.
func (r *reader) echo(s *Segment, words []word) {
	for _, w := range words {
		if !w.whole {
			s.blame(High, "%s may become the names of files, or other words", w.text)
		}
	}
}

// printf prints words after a format, which is no option: one of them would set a
// variable.
func (r *reader) printf(s *Segment, words []word) {
	if len(words) > 0 && words[0].static && words[0].text == "--" {
		words = words[1:]
	}
	if len(words) > 0 && words[0].flag() {
		s.blame(High, "%s may be an option of printf", words[0].text)
	}
	if len(words) > 0 && counting.MatchString(strings.ReplaceAll(words[0].text, "%%", "")) {
		s.blame(High, "%%n of printf sets a variable")
	}
	r.echo(s, words)
}

// counting is the directive of printf that sets a variable, which may be PATH, to how
// much was printed.
var counting = regexp.MustCompile(`%[-#' +0-9*.hjlqLtz]*n`)

// tests are the operators of test that look at files and texts. Those about
// variables evaluate names.
//
//nolint:gochecknoglobals // a table
var tests = set("-e -f -d -r -w -x -s -L -h -n -z -t -S -p -b -c -g -u -k -O -G -N -nt -ot -ef -eq -ne -lt -le -gt -ge -a -o = == != < > ! ( ) ]")

// fileTests are those about files; the first three about two of them.
//
//nolint:gochecknoglobals // a table
var fileTests = []string{"-ef", "-nt", "-ot", "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-S", "-p", "-O", "-G", "-N"}

// bracket checks test and [.
func (r *reader) bracket(s *Segment, words []word) {
	for i, w := range words {
		switch {
		case !w.static:
			// One that stands where an operator may stand could be one.
			s.blame(High, "%s is known only when it runs", w.text)
		case strings.HasPrefix(w.text, "-") && !tests[w.text] && !digits(w.text[1:]):
			s.blame(High, "the test %s is not known to be harmless", w.text)
		case !tests[w.text] && (i > 0 && slices.Contains(fileTests, words[i-1].text) || i+1 < len(words) && slices.Contains(fileTests[:3], words[i+1].text)):
			r.path(s, w)
		}
	}
}

// changeDir checks cd. What follows is read from there.
func (r *reader) changeDir(s *Segment, words []word) {
	p := program{options: options{flags: "LPe"}, operands: paths, most: 1}
	r.line.moves = true
	r.uses(s, p, words)
	if rest, _ := p.split(words); len(rest) != 1 || rest[0].text == "-" {
		s.blame(High, "cd leads to where a variable says")
	}
}

// date prints the time; it can set it, too.
func (r *reader) date(s *Segment, words []word) {
	p := program{options: options{flags: "uR", values: "d", optional: "I", long: "utc universal rfc-email date= iso-8601 rfc-3339="}, operands: anything}
	r.uses(s, p, words)
	rest, _ := p.split(words)
	for _, w := range rest {
		if !strings.HasPrefix(w.text, "+") {
			s.blame(High, "%s sets the time", w.text)
		}
	}
}
