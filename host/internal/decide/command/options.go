package command

import (
	"slices"
	"strings"
)

// options are the options of a program that change only what it prints. programs.txt explains the
// fields.
type options struct {
	// Letters: flags have no value, values have one, and optional have one only in the same word.
	flags, values, optional string
	// long are names, separated by spaces; "=" ends those with a value. One that is listed both
	// ways never takes the next word as its value.
	long string
	// attached reports that no long option takes the next word as its value, and apart that no
	// letter takes the rest of its word.
	attached, apart bool
	// alone reports that a letter without a value is a word of its own.
	alone bool
	// single reports that long options also begin with one dash, and that letters are names.
	single bool
	// numbers reports that a number is an option, as in -5.
	numbers bool
	// leading reports that all words after the first operand are operands.
	leading bool
}

// arguments are the words after a program's name, as the program reads them.
type arguments struct {
	options  []option
	operands []word
	// unknown is the first word that may be an option which is not known; "" if there is none.
	// With one, the rest is a guess.
	unknown string
}

// option is one option of a command.
type option struct {
	// name is a letter or a long name, without dashes.
	name  string
	value string
	// at is the index of the word that holds the value, or else the option.
	at int
}

// has reports whether one of the options is given.
func (a *arguments) has(names ...string) bool {
	return slices.ContainsFunc(a.options, func(o option) bool { return slices.Contains(names, o.name) })
}

// hasIn reports whether an option of a set is given.
func (a *arguments) hasIn(names map[string]bool) bool {
	return slices.ContainsFunc(a.options, func(o option) bool { return names[o.name] })
}

// valuesOf returns the values of options, in their order.
func (a *arguments) valuesOf(names ...string) (values []string) {
	for _, o := range a.options {
		if slices.Contains(names, o.name) {
			values = append(values, o.value)
		}
	}
	return values
}

// beforeOperands returns the words from the first operand on, and false if an option is unknown.
func (o *options) beforeOperands(words []word) (rest []word, ok bool) {
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
		_, taken, ok := o.parse(nil, w.text, i)
		if !ok || taken > 0 && !valueAt(words, i+taken) {
			return nil, false
		}
		i += taken
	}
	return nil, true
}

// split reads the words after a program's name: options and operands, in any order. What decides
// about a known program's options looks only at what split returns.
func (o *options) split(words []word) arguments {
	var a arguments
	for i := 0; i < len(words); i++ {
		w := words[i]
		if o.leading && len(a.operands) > 0 {
			a.operands = append(a.operands, words[i:]...)
			break
		}
		if w.static && w.text == "--" {
			a.operands = append(a.operands, words[i+1:]...)
			break
		}
		if !mayBeOption(w) {
			a.operands = append(a.operands, w)
			continue
		}
		before := len(a.options)
		all, taken, ok := o.parse(a.options, w.text, i)
		if ok && w.static && (taken == 0 || valueAt(words, i+taken)) {
			a.options = all
			if i += taken; taken > 0 {
				last := &a.options[len(a.options)-1]
				last.value, last.at = words[i].text, i
			}
			continue
		}
		a.options = a.options[:before]
		if a.unknown == "" {
			a.unknown = w.text
		}
	}
	return a
}

// mayBeOption reports whether a word begins with a dash, as far as is known.
func mayBeOption(w word) bool {
	switch {
	case w.pipe || w.static && w.text == "-":
		return false
	case w.static:
		return strings.HasPrefix(w.text, "-")
	}
	return strings.HasPrefix(strings.TrimLeft(w.text, "\"'$\\"), "-")
}

// valueAt reports whether a word can only be the value of the option before it. An unknown word may
// become several words. A word with a dash would be an option if the table were wrong.
func valueAt(words []word, i int) bool {
	if i >= len(words) || !words[i].static {
		return false
	}
	text, dash := strings.CutPrefix(words[i].text, "-")
	return !dash || digits(text)
}

// parse adds the options in the word with index at. taken is how many further words belong to the
// last of them; ok is false if one is unknown.
func (o *options) parse(all []option, text string, at int) (_ []option, taken int, ok bool) {
	if o.numbers && digits(text[1:]) {
		return append(all, option{name: text[1:], at: at}), 0, true
	}
	if name, long := strings.CutPrefix(text, "--"); long || o.single {
		if !long {
			name = text[1:]
		}
		taken, ok = o.takes(name)
		name, value, _ := strings.Cut(name, "=")
		return append(all, option{name, value, at}), taken, ok
	}
	for i := 1; i < len(text); i++ {
		letter := option{name: text[i : i+1], at: at}
		switch c := text[i]; {
		case strings.IndexByte(o.flags, c) >= 0 && o.alone && len(text) > 2:
			return all, 0, false
		case strings.IndexByte(o.flags, c) >= 0:
			all = append(all, letter)
		case strings.IndexByte(o.optional, c) >= 0:
			letter.value = text[i+1:]
			return append(all, letter), 0, true
		case strings.IndexByte(o.values, c) < 0:
			return all, 0, false
		case i+1 < len(text): // the rest is its value
			letter.value = text[i+1:]
			return append(all, letter), 0, !o.apart
		default:
			return append(all, letter), 1, true
		}
	}
	return all, 0, true
}

// takes reports whether a long option, perhaps with its value, is known, and how many further words
// it takes.
func (o *options) takes(long string) (taken int, ok bool) {
	name, _, valued := strings.Cut(long, "=")
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
