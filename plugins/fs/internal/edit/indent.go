package edit

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// indentation maps the indentation that a caller wrote to the one in the file.
type indentation struct {
	// known maps each indentation of the caller to the file's.
	known map[string]string
	// from and to are the characters that the two indentations consist of; 0 if there are none.
	from, to byte
	// least is the shortest of the known.
	least string
	// When the caller's indentation changes by run characters, the file's changes by
	// rise; run is 0 if that is not known.
	rise, run int
}

// maxUnit is how many spaces one step has at most if nothing else shows it.
const maxUnit = 4

// indenting indents a text like a file.
type indenting struct {
	text string
	// given are the indentations in the text, each once.
	given []string
	// style returns how the file is indented.
	style func() indentStyle
}

func newIndenting(text, file string) *indenting {
	in := &indenting{text: text, style: sync.OnceValue(func() indentStyle { return styleOf(file) })}
	seen := map[string]bool{}
	for l := range strings.Lines(text) {
		if indent := indentOf(l); strings.TrimSpace(l) != "" && !seen[indent] {
			seen[indent] = true
			in.given = append(in.given, indent)
		}
	}
	return in
}

// like returns the text with the indentation of the region, which was found as old. It
// reports false if the indentation is ambiguous.
func (in *indenting) like(old, region textLines) (text string, ok bool) {
	learned, ok := learn(old, region)
	if !ok || !learned.guess(in) {
		return "", false
	}
	for _, from := range in.given {
		if learned.known[from], ok = learned.of(from); !ok {
			return "", false
		}
	}
	var b strings.Builder
	for l := range strings.Lines(in.text) {
		if strings.TrimSpace(l) != "" {
			from := indentOf(l)
			b.WriteString(learned.known[from])
			l = l[len(from):]
		}
		b.WriteString(l)
	}
	return b.String(), true
}

// learn compares the indentation of old with that of the region. It reports false if one
// indentation has two meanings.
func learn(old, region textLines) (in indentation, ok bool) {
	in.known = map[string]string{}
	for i := range old.count() {
		given := old.line(i)
		if strings.TrimSpace(given) == "" {
			continue
		}
		from, to := indentOf(given), indentOf(region.line(i))
		if before, seen := in.known[from]; seen && before != to {
			return in, false
		}
		if len(in.known) == 0 || len(from) < len(in.least) {
			in.least = from
		}
		in.known[from] = to
	}
	return in, true
}

// guess determines the size of a step if the text has indentations that are not known. It
// reports false if that is ambiguous.
func (in *indentation) guess(text *indenting) (ok bool) {
	var news []string
	for _, from := range text.given {
		if _, seen := in.known[from]; !seen {
			news = append(news, from)
		}
	}
	if len(news) == 0 {
		return true
	}
	if in.from, ok = only(slices.Concat(news, slices.Collect(maps.Keys(in.known)))); !ok {
		return false
	}
	if in.to, ok = only(slices.Collect(maps.Values(in.known))); !ok {
		return false
	}
	if len(in.known) > 1 {
		return in.slope()
	}
	style := text.style()
	if in.to == 0 {
		if in.to = style.of; style.mixed {
			return false
		}
	}
	first := in.known[in.least]
	switch {
	case in.to == 0, in.from == in.to:
		in.to, in.rise, in.run = in.from, 1, 1 // moved to the side
	case in.from == '\t':
		in.rise, in.run = style.unit, 1
		return style.unit >= 2
	case len(first) > 0 && len(in.least)%len(first) == 0 && len(in.least) > len(first):
		in.rise, in.run = 1, len(in.least)/len(first)
	default:
		unit := 0
		for _, from := range news {
			unit = gcd(unit, max(len(from)-len(in.least), len(in.least)-len(from)))
		}
		in.rise, in.run = 1, unit
		return unit >= 2 && unit <= maxUnit
	}
	return true
}

// slope learns from several known indentations. It reports false if they are not
// proportional.
func (in *indentation) slope() (ok bool) {
	base := len(in.known[in.least])
	for from, to := range in.known {
		run, rise := len(from)-len(in.least), len(to)-base
		if in.run == 0 {
			in.rise, in.run = rise, run
		}
		if run > 0 && (rise <= 0 || rise*in.run != in.rise*run) {
			return false
		}
	}
	return true
}

// of returns the file's indentation for one of the caller's.
func (in *indentation) of(from string) (to string, ok bool) {
	if to, ok := in.known[from]; ok {
		return to, true
	}
	if in.run == 0 {
		return "", false
	}
	steps := (len(from) - len(in.least)) * in.rise
	length := len(in.known[in.least]) + steps/in.run
	if steps%in.run != 0 || length < 0 {
		return "", false
	}
	return strings.Repeat(string(in.to), length), true
}

// indentStyle describes how the lines of a text are indented.
type indentStyle struct {
	of    byte // space or tab; 0 if no line is indented
	mixed bool // some lines by tabs, others by spaces
	unit  int  // spaces of a step; 0 if that is ambiguous
}

// styleOf returns how a text is indented. It ignores a single space, as in the lines of a
// comment.
func styleOf(text string) (s indentStyle) {
	for l := range strings.Lines(text) {
		indent := indentOf(l)
		if indent == "" || len(indent) == len(strings.TrimRight(l, "\r\n")) || strings.TrimLeft(indent, "\t") == " " {
			continue
		}
		of, ok := only([]string{indent})
		if s.mixed = s.mixed || !ok || s.of != 0 && s.of != of; s.mixed {
			return s
		}
		if s.of = of; of == ' ' && len(indent)%2 == 0 {
			s.unit = gcd(s.unit, len(indent))
		}
	}
	return s
}

// only returns the character that all texts consist of, 0 if all are empty. It reports
// false if there are several.
func only(texts []string) (c byte, ok bool) {
	for _, text := range texts {
		if text == "" {
			continue
		}
		if c == 0 {
			c = text[0]
		}
		if strings.Trim(text, string(c)) != "" {
			return 0, false
		}
	}
	return c, true
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }
