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
	runsInput := shells[name] || strings.HasPrefix(name, "python") || readInput[name]
	if len(rest) == 0 {
		return runsInput
	}
	for _, option := range rest[:len(rest)-1] {
		if !strings.HasPrefix(option, "-") {
			return false // a subcommand, or the program that it runs
		}
	}
	if rest[len(rest)-1] != "*" {
		return false
	}
	if _, known := programs[name]; known && !subcommands[name] {
		return false // each use is judged by itself
	}
	return runsInput || runners[name] || interpreters[name] || subcommands[name] || len(wrappers[name].long) > 0 || name == "source" || name == "."
}

// readInput are the interpreters that run their input if they get no arguments.
//
//nolint:gochecknoglobals // a table
var readInput = set("perl ruby node nodejs deno php lua tclsh Rscript")
