package command

import (
	_ "embed"
	"fmt"
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
				"attached": &o.attached, "apart": &o.apart, "single": &o.single, "alone": &o.alone, "numbers": &o.numbers, "leading": &o.leading,
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
