package command

import (
	"slices"
	"strings"
)

// options are those of a program that change nothing beside what it prints.
type options struct {
	// flags are letters without a value, values such with one. Those in optional have
	// one only if it stands in the same word.
	flags, values, optional string
	// long are names, separated by spaces; those that take a value end with "=". One
	// that stands there in both ways never takes the next word for its value.
	long string
	// attached says that no long name takes the next word for its value, and apart
	// that no letter takes the rest of its word.
	attached, apart bool
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
		if !ok || taken > 0 && !valueAt(words, i+taken) {
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
		if !ok || taken > 0 && !valueAt(words, i+taken) {
			return operands, w.text
		}
		i += taken
	}
	return operands, ""
}

// valueAt reports whether a word can only be the value of the option before it. One
// that is not known may become several words; one with a dash would be an option if
// the table were wrong about the one before.
func valueAt(words []word, i int) bool {
	if i >= len(words) || !words[i].static {
		return false
	}
	text, dash := strings.CutPrefix(words[i].text, "-")
	return !dash || digits(text)
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
		case valued:
			return 0, slices.Contains(all, name+"=")
		case slices.Contains(all, name):
			return 0, true
		case slices.Contains(all, name+"=") && !o.attached:
			return 1, true
		}
		return 0, false
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case strings.IndexByte(o.flags, c) >= 0:
		case strings.IndexByte(o.optional, c) >= 0:
			return 0, true
		case strings.IndexByte(o.values, c) < 0:
			return 0, false
		case i+1 < len(text):
			return 0, !o.apart // the rest is its value
		default:
			return 1, true
		}
	}
	return 0, true
}
