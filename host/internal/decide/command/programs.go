package command

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed programs.txt
var programsText string

// table holds what programs.txt says. It never changes.
//
//nolint:gochecknoglobals // a table
var table = readTables(programsText)

//nolint:gochecknoglobals // tables
var (
	programs      = withChecks(table.programs["program"])
	gits, gos     = table.programs["git"], table.programs["go"]
	wrappers      = table.wrappers
	runners       = table.set("runners")
	shells        = table.set("shells")
	interpreters  = table.set("interpreters")
	readInput     = table.set("input-readers")
	subcommands   = table.set("subcommands")
	gitMedium     = table.set("git-changes")
	gitPatches    = table.set("git-patches")
	gitPatch      = table.set("git-patch-options")
	gitSummary    = table.set("git-summary-options")
	goMedium      = table.set("go-changes")
	finders       = table.set("find-words")
	valuedFinders = table.set("find-words-with-value")
	builds        = table.set("builds")
	ownVariables  = table.set("bash-variables")
)

// checks are the programs whose words a table cannot describe.
//
//nolint:gochecknoglobals // a table
var checks = map[string]func(r *reader, s *Segment, words []word){
	"echo": (*reader).echo, "printf": (*reader).printf, "test": (*reader).bracket, "[": (*reader).bracket,
	"cd": (*reader).changeDir, "date": (*reader).date, "find": (*reader).find, "sed": (*reader).sed,
	"git": (*reader).git, "go": (*reader).golang, "read": (*reader).variables,
}

func withChecks(all map[string]program) map[string]program {
	for name, check := range checks {
		p := all[name]
		p.check = check
		all[name] = p
	}
	return all
}

// tables are the entries of programs.txt.
type tables struct {
	programs map[string]map[string]program // by kind and name
	wrappers map[string]wrapper
	sets     map[string]map[string]bool
}

// set returns a set. A missing one is a programming error.
func (t *tables) set(name string) map[string]bool {
	if t.sets[name] == nil {
		panic("programs.txt has no set " + name)
	}
	return t.sets[name]
}

// readTables reads the text of programs.txt. It panics if a line is wrong: the text is
// part of the program.
func readTables(text string) *tables {
	t := &tables{
		programs: map[string]map[string]program{"program": {}, "git": {}, "go": {}},
		wrappers: map[string]wrapper{}, sets: map[string]map[string]bool{},
	}
	kind, name := "", ""
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || line[0] == '#':
		case line[0] == ' ' && kind == "set":
			for _, word := range words {
				t.sets[name][word] = true
			}
		case line[0] == ' ':
			if err := t.add(kind, name, words[0], words[1:]); err != nil {
				panic(fmt.Sprintf("programs.txt: %s %s: %v", kind, name, err))
			}
		default:
			kind, name = words[0], words[1]
			t.begin(kind, name)
		}
	}
	return t
}

// begin adds an empty entry.
func (t *tables) begin(kind, name string) {
	switch kind {
	case "set":
		t.sets[name] = map[string]bool{}
	case "wrapper":
		t.wrappers[name] = wrapper{}
	default:
		t.programs[kind][name] = program{}
	}
}

// add adds a line to an entry.
func (t *tables) add(kind, name, key string, words []string) error {
	w, p := t.wrappers[name], t.programs[kind][name]
	o := &p.options
	if kind == "wrapper" {
		o = &w.options
	}
	var err error
	switch key {
	case "flags":
		o.flags = words[0]
	case "values":
		o.values = words[0]
	case "optional":
		o.optional = words[0]
	case "long":
		o.long += " " + strings.Join(words, " ")
	case "also":
		o.long += t.programs[words[0]][words[1]].long
	case "operands":
		known := map[string]operands{"anything": anything, "paths": paths, "pattern": patternPaths, "filter": filterPaths}
		if p.operands = known[words[0]]; p.operands == nothing {
			err = fmt.Errorf("unknown word %q", words[0])
		}
	case "most":
		p.most, err = strconv.Atoi(words[0])
	case "before":
		w.before, err = strconv.Atoi(words[0])
	case "are":
		for _, word := range words {
			flag := map[string]*bool{
				"attached": &o.attached, "apart": &o.apart, "single": &o.single, "alone": &o.alone, "numbers": &o.numbers,
				"assigns": &w.assigns, "plain": &w.plain, "adds": &w.adds,
			}[word]
			if flag == nil {
				return fmt.Errorf("unknown word %q", word)
			}
			*flag = true
		}
	default:
		err = fmt.Errorf("unknown key %q", key)
	}
	if kind == "wrapper" {
		t.wrappers[name] = w
	} else {
		t.programs[kind][name] = p
	}
	return err
}

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
}

// operands returns the words from the first operand on, and false if an option is unknown.
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

// split separates options from operands, in any order. unknown is the first word that may be an
// unknown option.
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

// valueAt reports whether a word can only be the value of the option before it. An unknown word may
// become several words. A word with a dash would be an option if the table were wrong.
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
		case strings.IndexByte(o.flags, c) >= 0 && o.alone && len(text) > 2:
			return 0, false
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
