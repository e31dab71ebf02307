package command

import (
	"slices"
	"strings"
)

// options are those of a program that change nothing beside what it prints.
type options struct {
	// flags are letters without a value, values such with one.
	flags, values string
	// long are names, separated by spaces; those that take a value end with "=".
	long string
	// single says that long names begin with one dash, too, and letters are names
	// like others.
	single bool
	// numbers says that a number is an option: -5.
	numbers bool
}

// operands returns the words after the options up to the first operand, and false if
// an option is not known.
func (o *options) operands(words []word) (rest []word, ok bool) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !w.static {
			return words[i:], true
		}
		if w.text == "--" {
			return words[i+1:], true
		}
		if !strings.HasPrefix(w.text, "-") || w.text == "-" {
			return words[i:], true
		}
		taken, ok := o.option(w.text)
		if !ok || i+taken >= len(words) && taken > 0 {
			return nil, false
		}
		i += taken
	}
	return nil, true
}

// split separates a program's options from its operands, wherever they stand. It
// returns the first option that is not known, or word that may be one.
func (o *options) split(words []word) (operands []word, unknown string) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w.pipe:
			operands = append(operands, w)
			continue
		case w.static && w.text == "--":
			return append(operands, words[i+1:]...), unknown
		case !w.static:
			operands = append(operands, w)
			continue
		case !strings.HasPrefix(w.text, "-") || w.text == "-":
			operands = append(operands, w)
			continue
		}
		taken, ok := o.option(w.text)
		if !ok || taken > 0 && (i+taken >= len(words) || !words[i+taken].static) {
			return operands, w.text
		}
		i += taken
	}
	return operands, ""
}

// option reports whether an option is known, and how many further words it takes.
func (o *options) option(text string) (taken int, ok bool) {
	if o.numbers && digits(text[1:]) {
		return 0, true
	}
	if name, long := strings.CutPrefix(text, "--"); long || o.single {
		if !long {
			name = text[1:]
		}
		name, _, valued := strings.Cut(name, "=")
		if name == "" {
			return 0, false
		}
		all := strings.Fields(o.long)
		switch {
		case slices.Contains(all, name+"="):
			if valued {
				return 0, true
			}
			return 1, true
		case slices.Contains(all, name):
			return 0, !valued
		}
		return 0, false
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case strings.IndexByte(o.flags, c) >= 0:
		case strings.IndexByte(o.values, c) < 0:
			return 0, false
		case i+1 < len(text):
			return 0, true // the rest is its value
		default:
			return 1, true
		}
	}
	return 0, true
}
