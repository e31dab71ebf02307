package command

import (
	"regexp"
	"strings"
)

// find checks find: first where it looks, then its expression.
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

// sedPattern has no escapes, and in brackets only what cannot be taken for their end
// or, by one sed or the other, for that of the pattern, as in [/].
const sedPattern = `(?:[^/\\\n\[]|\[\^?(?:[\w .,:;@%+-]|\[:[a-z]+:\])+\])*`

// sedAddress is a line number, "$", or a pattern.
const sedAddress = `(?:\d+|\$|/` + sedPattern + `/)`

// sedScripts are those that print, leave out and replace: none that writes, reads
// or executes.
var sedScripts = regexp.MustCompile(`^(?:` + sedCommand + `)(?:;\s*(?:` + sedCommand + `))*;?$`)

const sedCommand = `\s*(?:` + sedAddress + `(?:,` + sedAddress + `)?\s*!?\s*)?(?:[pdq=l]|s/` + sedPattern + `/[^/\\\n]*/[gpI0-9]*)\s*`

// sed checks sed: one script, then files.
func (r *reader) sed(s *Segment, words []word) {
	p := program{options: options{flags: "nErsuz", long: "quiet silent regexp-extended separate unbuffered null-data sandbox posix debug"}, operands: paths}
	rest, unknown := p.split(words)
	switch {
	case unknown != "":
		s.blame(High, "the option %s of sed is not known to be harmless", unknown)
	case len(rest) == 0:
		s.blame(High, "sed has no script")
	case !rest[0].static || !sedScripts.MatchString(rest[0].text):
		s.blame(High, "the script %s may write or execute", rest[0].text)
	default:
		for _, w := range rest[1:] {
			r.path(s, w)
		}
	}
}
