package command

import (
	"path"
	"slices"
	"strings"
)

// wrapper is a program that runs the command in its arguments.
type wrapper struct {
	options
	// before is the number of operands before the command.
	before int
	// assigns reports that NAME=VALUE may come before the command.
	assigns bool
	// plain reports that the command runs as the shell would run it.
	plain bool
	// adds reports that the command gets further arguments.
	adds bool
}

// runsText are further builtins that run the text of their arguments or of a file.
//
//nolint:gochecknoglobals // a table
var runsText = set("eval trap source .")

func set(names string) map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		all[name] = true
	}
	return all
}

// unwrap finds the commands that a command runs, and returns a function that reads them.
func (r *reader) unwrap(s *Segment, words []word) (inner func()) {
	name := s.Name
	w, wraps := wrappers[name]
	s.runs = wraps || runners[name] || shells[name] || runsText[name] || name == "find" && slices.ContainsFunc(words, executes)
	switch {
	case wraps:
		return r.wrapped(s, w, words)
	case runners[name]:
		return func() { r.candidates(words[1:]) }
	case shells[name]:
		return func() { r.shell(words[1:]) }
	case name == "eval":
		return func() { r.evaluated(words[1:]) }
	case name == "trap":
		return func() { r.evaluated(words[1:min(2, len(words))]) }
	case name == "find":
		return func() { r.found(words[1:]) }
	}
	return func() {}
}

// wrapped finds the command in a wrapper's arguments.
func (r *reader) wrapped(s *Segment, w wrapper, words []word) (inner func()) {
	rest, clean := w.beforeOperands(words[1:])
	if !clean {
		return func() { r.candidates(words[1:]) }
	}
	why := ""
	for w.assigns && len(rest) > 0 {
		variable, value, ok := strings.Cut(rest[0].text, "=")
		if !ok || !rest[0].static {
			break
		}
		if reason := r.setting(variable, word{text: value, static: true}); reason != "" && why == "" {
			why = reason
		}
		rest = rest[1:]
	}
	if why != "" {
		s.blame(High, "%s", why)
	}
	before := rest[:min(w.before, len(rest))]
	rest = rest[len(before):]
	if len(rest) == 0 {
		s.Transparent = w.adds && len(words) == 1 // it prints what it reads
		return func() {}
	}
	s.Transparent = (w.plain || w.adds && r.buildsKnown(s.Name, words[1:len(words)-len(rest)])) && allStatic(before) && s.Why == ""
	if w.adds {
		rest = append(slices.Clone(rest), word{text: "...", whole: true})
	}
	return func() { r.run(rest, false) }
}

// candidates reads words that may be commands.
func (r *reader) candidates(words []word) {
	argv, all := texts(words), known(words) // shared: there may be thousands of words
	for i, w := range words {
		if !w.static || strings.HasPrefix(w.text, "-") {
			continue
		}
		if _, value, ok := strings.Cut(w.text, "="); ok && value != "" {
			continue
		}
		if strings.ContainsAny(w.text, " \t\n") {
			r.maybeText(w.text)
			continue
		}
		s := Segment{
			Argv: argv[i:min(i+maxCandidate, len(argv))], Words: all[i:], Name: nameOf(w.text), Risk: High, Why: "it may be run by the program before it", Maybe: true,
		}
		r.forbid(&s, words[i:])
		r.add(s)
	}
}

// maybeText reads a text that may be a command.
func (r *reader) maybeText(text string) {
	first := len(r.line.Segments)
	r.read(text, r.depth+1)
	for i := first; i < len(r.line.Segments); i++ {
		r.line.Segments[i].Maybe = true
	}
}

// shell reads the command that is passed to a shell.
func (r *reader) shell(words []word) {
	for i, w := range words {
		if !w.static {
			r.line.problem(High, "a shell runs text that is known only when it runs")
			return
		}
		if strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "c") {
			r.evaluated(words[i+1 : min(i+2, len(words))])
			return
		}
	}
}

// evaluated reads words that form one command.
func (r *reader) evaluated(words []word) {
	if !allStatic(words) {
		r.line.problem(High, "a shell runs text that is known only when it runs")
		return
	}
	if text := strings.Join(texts(words), " "); strings.TrimSpace(text) != "" {
		r.read(text, r.depth+1)
	}
}

// executes reports whether a word of find begins a command.
func executes(w word) bool {
	return slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, w.text)
}

// found reads the commands that find runs.
func (r *reader) found(words []word) {
	for i := 0; i < len(words); i++ {
		if !executes(words[i]) {
			continue
		}
		rest := words[i+1:]
		end := slices.IndexFunc(rest, func(w word) bool { return w.text == ";" || w.text == "+" })
		if end < 0 {
			end = len(rest)
		}
		command := slices.Clone(rest[:end])
		for j := range command {
			if strings.Contains(command[j].text, "{}") {
				command[j].static, command[j].plain = false, false
			}
		}
		r.run(command, false)
		i += end
	}
}

// RunsAny reports whether an entry, the words that commands begin with, allows nearly any command:
// it names only a program that runs others, or runs its input, and "*". A shell or an interpreter
// alone is such an entry, because it runs its input.
func RunsAny(entry []string) bool {
	if len(entry) == 0 {
		return false
	}
	name, rest := path.Base(entry[0]), entry[1:]
	if len(rest) == 0 {
		return interprets(name)
	}
	for _, option := range rest[:len(rest)-1] {
		if !strings.HasPrefix(option, "-") {
			return false // a subcommand, or the program that it runs
		}
	}
	if rest[len(rest)-1] != "*" {
		return false
	}
	if _, known := programs[name]; known && !subcommands[name] && !wrappers[name].adds {
		return false // each use is judged by itself
	}
	return interprets(name) || runners[name] || interpreters[name] || subcommands[name] || len(wrappers[name].long) > 0 || name == "source" || name == "."
}

// interprets reports whether a program runs its input if it has no arguments.
func interprets(name string) bool {
	return shells[name] || strings.HasPrefix(name, "python") || readInput[name]
}

// runsInput reports whether a command runs its input, be it a pipe, a here-document or a file: none
// of its words is a script or text to run.
func runsInput(name string, words []word) bool {
	if !interprets(name) {
		return false
	}
	given := false
	for i, w := range words[1:] {
		switch text := w.text; {
		case text == "-" || text == "-s" && shells[name]:
			return true
		case text == "/dev/stdin" || strings.HasPrefix(text, "/dev/fd/") || strings.HasPrefix(text, "/proc/self/fd/"):
			return true
		case takesValue[words[i].text]: // it belongs to the option before it
		case text == "--version" || text == "--help" || text == "-V":
			return false
		case !strings.HasPrefix(text, "-"):
			given = true
		}
	}
	return !given
}

// takesValue are the options of shells and interpreters whose value is not a script.
//
//nolint:gochecknoglobals // a table
var takesValue = set("-o +o -O +O --rcfile --init-file -W -X -r --require -I")
