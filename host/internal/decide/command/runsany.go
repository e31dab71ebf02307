package command

import (
	"path"
	"strings"
)

// RunsAny reports whether an entry, the words that commands begin with, allows nearly any
// command: it names no more than a program that runs others, or what it reads, and "*".
// Alone, a shell or an interpreter is such an entry, since it runs its input.
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

// interprets reports whether a program runs its input if nothing else is given.
func interprets(name string) bool {
	return shells[name] || strings.HasPrefix(name, "python") || readInput[name]
}

// runsInput reports whether a command runs what it reads from its input, be it a pipe, a
// here-document or a file: no word of it is a script or a text to run.
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

// takesValue are the options of shells and interpreters whose value is no script.
//
//nolint:gochecknoglobals // a table
var takesValue = set("-o +o -O +O --rcfile --init-file -W -X -r --require -I")
