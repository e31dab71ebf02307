package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a command, as far as it is known before it runs.
type word struct {
	// text is what the program gets, or what is written if that is not known.
	text string
	// static says that text is what the program gets.
	static bool
	// plain says that it is written without quotes and escapes.
	plain bool
	// whole says that it becomes exactly one word: nothing in it is expanded outside
	// of quotes.
	whole bool
	// pipe says that it is the name of a pipe from another command: <(...).
	pipe bool
}

// flag reports whether a program could take the word for an option.
func (w word) flag() bool { return !w.static || strings.HasPrefix(w.text, "-") }

// evaluate finds out what a word is. The commands in it are read by the walk.
func (r *reader) evaluate(w *syntax.Word) word {
	if w == nil {
		return word{static: true, plain: true, whole: true}
	}
	e := evaluation{word: word{static: true, plain: len(w.Parts) == 1, whole: true}, alone: len(w.Parts) == 1}
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			e.literal(part.Value, i == 0)
		case *syntax.SglQuoted:
			e.plain = false
			if part.Dollar && strings.Contains(part.Value, `\`) {
				e.static = false // escapes that only the shell itself reads for sure
			}
			e.text.WriteString(part.Value)
		case *syntax.DblQuoted:
			e.plain = false
			e.quoted(part)
		case *syntax.ProcSubst:
			e.plain, e.static = false, false
			e.pipe = len(w.Parts) == 1 && part.Op == syntax.CmdIn
			e.whole = e.whole && e.pipe
		default:
			e.plain, e.static, e.whole = false, false, false
		}
	}
	e.word.text = e.text.String()
	if e.brace && braces(e.unquoted.String()) {
		e.static, e.plain, e.whole = false, false, false
	}
	if !e.static {
		e.word.text = r.source(w)
	}
	return e.word
}

// evaluation is a word while it is evaluated.
type evaluation struct {
	word

	text     strings.Builder
	unquoted strings.Builder
	brace    bool
	alone    bool // there is no other part
}

// literal adds what is written outside of quotes.
func (e *evaluation) literal(value string, first bool) {
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '\\':
			e.plain = false
			switch i++; {
			case i == len(value): // the end of the line, where bash keeps it
				e.static = false
			case value[i] != '\n':
				e.text.WriteByte(value[i])
			}
			continue
		case '*', '?':
			e.static, e.plain, e.whole = false, false, false
		case '[':
			if len(value) > 1 || !e.alone { // alone it is the name of test
				e.static, e.plain, e.whole = false, false, false
			}
		case '{':
			e.brace = true
		case '~':
			// Also after the '=' and the ':' of what looks like an assignment.
			if before := e.text.String(); before == "" && first || strings.HasSuffix(before, "=") || strings.HasSuffix(before, ":") {
				e.static, e.plain = false, false
			}
		}
		e.unquoted.WriteByte(value[i])
		e.text.WriteByte(value[i])
	}
}

// quoted adds what is written in double quotes.
func (e *evaluation) quoted(q *syntax.DblQuoted) {
	if q.Dollar { // translated by a file that is found through the environment
		e.static, e.whole = false, false
	}
	for _, part := range q.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			value := part.Value
			for i := 0; i < len(value); i++ {
				if value[i] == '\\' && i+1 < len(value) && strings.IndexByte("$`\"\\\n", value[i+1]) >= 0 {
					i++
					if value[i] == '\n' {
						continue
					}
				}
				e.text.WriteByte(value[i])
			}
		case *syntax.ParamExp:
			e.static = false
			if several(part) {
				e.whole = false
			}
		default:
			e.static = false
		}
	}
}

// braces reports whether text may be a brace expansion: {a,b} or {1..9}.
func braces(text string) bool {
	return strings.Contains(text, "}") && (strings.Contains(text, ",") || strings.Contains(text, ".."))
}

// several reports whether an expansion becomes several words even in quotes.
func several(p *syntax.ParamExp) bool {
	return p.Param == nil || p.Param.Value == "@" || p.Index != nil || p.Names != 0 || p.Excl
}

// texts returns what is known of words.
func texts(words []word) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = w.text
	}
	return all
}

// known returns the texts of words, "" for those that are not known.
func known(words []word) []string {
	all := texts(words)
	for i, w := range words {
		if !w.static {
			all[i] = ""
		}
	}
	return all
}

func allStatic(words []word) bool {
	return !slices.ContainsFunc(words, func(w word) bool { return !w.static })
}
