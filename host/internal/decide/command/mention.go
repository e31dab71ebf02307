package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Mention is a part of a line that may name a file, however it is used.
type Mention struct {
	// Text is the part without quotes and without what is known only at run time.
	Text string
	// Glob reports that Text holds wildcards, with a backslash before each character that is not
	// one.
	Glob bool
}

// maxMentions limits the mentions of a line; the rest is unread.
const maxMentions = 20_000

// mentions adds all words: arguments, redirections, the words of a loop, assignments, and defaults
// in expansions.
func (r *reader) mentions(file *syntax.File) {
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Redirect:
			if n.Hdoc == nil {
				return true
			}
			for _, part := range n.Hdoc.Parts { // the text itself names nothing
				if _, text := part.(*syntax.Lit); !text {
					syntax.Walk(part, r.mentioned)
				}
			}
			return false
		case *syntax.CallExpr:
			r.leaveOut(n.Args)
		}
		return r.mentioned(n)
	})
}

// leaveOut notes the words of a command that only name files which it does not read.
func (r *reader) leaveOut(args []*syntax.Word) {
	if len(args) == 0 || args[0].Lit() != "grep" {
		return
	}
	words := make([]word, len(args))
	for i, arg := range args {
		words[i] = r.evaluate(arg)
	}
	for _, i := range excluded(words) {
		r.leftOut = append(r.leftOut, args[i])
	}
}

// excluded returns the indexes of the words of grep that only name files which it does not read.
func excluded(words []word) (at []int) {
	grep := programs["grep"]
	a := grep.split(words[1:])
	for _, o := range a.options {
		if a.unknown == "" && (o.name == "exclude" || o.name == "exclude-dir") {
			at = append(at, o.at+1)
		}
	}
	return at
}

// mentioned adds a word.
func (r *reader) mentioned(n syntax.Node) bool {
	w, ok := n.(*syntax.Word)
	if !ok || slices.Contains(r.leftOut, w) {
		return true
	}
	var s shape
	for _, part := range w.Parts {
		s.add(part)
	}
	texts := []string{s.text.String()}
	if s.wild {
		texts[0] = s.glob.String()
	}
	if s.brace {
		texts = append(texts, r.source(w))
	}
	for _, text := range texts {
		r.mentionParts(text, s.wild)
	}
	return true
}

// mentionParts adds a word and the parts of it that may be names.
func (r *reader) mentionParts(text string, glob bool) {
	r.mention(text, glob)
	if strings.HasPrefix(text, "-") && len(text) > 2 {
		r.mention(text[2:], glob)
	}
	if parts := strings.FieldsFunc(text, separates); len(parts) != 1 || parts[0] != text {
		for _, part := range parts {
			r.mention(part, glob)
		}
	}
}

// separates reports whether a character in a word may have names on both sides, as in HEAD:a,
// --file=a, @a and {a,b}.
func separates(c rune) bool { return strings.ContainsRune("=:,@{}", c) }

func (r *reader) mention(text string, glob bool) {
	m := Mention{text, glob}
	switch {
	case text == "" || len(r.line.Mentions) > 0 && slices.Contains(r.line.Mentions[max(0, len(r.line.Mentions)-8):], m):
	case len(r.line.Mentions) >= maxMentions:
		r.line.unread(High, "it holds more than %d words", maxMentions)
	default:
		r.line.Mentions = append(r.line.Mentions, m)
	}
}

// shape collects a word without its quotes and expansions.
type shape struct {
	text, glob  strings.Builder
	wild, brace bool
}

func (s *shape) literal(c byte) {
	s.text.WriteByte(c)
	if strings.IndexByte(`*?[\`, c) >= 0 {
		s.glob.WriteByte('\\')
	}
	s.glob.WriteByte(c)
}

func (s *shape) wildcard(c byte) {
	s.wild = true
	s.text.WriteByte(c)
	s.glob.WriteByte(c)
}

func (s *shape) add(part syntax.WordPart) {
	switch part := part.(type) {
	case *syntax.Lit:
		s.unquoted(part.Value)
	case *syntax.SglQuoted:
		for i := range len(part.Value) {
			s.literal(part.Value[i])
		}
	case *syntax.DblQuoted:
		for _, inner := range part.Parts {
			if lit, ok := inner.(*syntax.Lit); ok {
				s.quoted(lit.Value)
			}
		}
	}
}

// unquoted adds text outside of quotes. Braces may expand to anything.
func (s *shape) unquoted(value string) {
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '\\':
			if i++; i < len(value) && value[i] != '\n' {
				s.literal(value[i])
			}
		case '*', '?', '[':
			s.wildcard(c)
		case '{':
			end := strings.LastIndexByte(value, '}')
			if end < i || !braces(value[i:end+1]) {
				s.literal(c)
				continue
			}
			s.brace, i = true, end
			s.wildcard('*')
		default:
			s.literal(c)
		}
	}
}

// quoted adds text in double quotes.
func (s *shape) quoted(value string) {
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' && i+1 < len(value) && strings.IndexByte("$`\"\\\n", value[i+1]) >= 0 {
			if i++; value[i] == '\n' {
				continue
			}
		}
		s.literal(value[i])
	}
}
