package main

import "strings"

// runArguments is a script that runs what it gets as arguments, joined: one
// argument cannot hold a long command. The command finds no arguments, and what
// it asks about itself (BASH_EXECUTION_STRING) is as if it had been given to
// bash -c. The last program of it does not take the place of bash (exec), whose
// directory is the command's.
const runArguments = `IFS=; BASH_EXECUTION_STRING=$*; IFS=$' \t\n'; set --; eval "$BASH_EXECUTION_STRING"`

// maxPart is how much of a command one argument holds: less than 128 KiB, which
// is the most that Linux lets it have.
const maxPart = 100 << 10

// bashArgs are the arguments of a bash that reads no file of the user's before
// the command.
func bashArgs(args ...string) []string { return append([]string{"--noprofile", "--norc"}, args...) }

// runBash makes a command run text with bash: that of the settings, whatever PATH
// the command is given.
func runBash(p *program, text string) {
	c := &p.command
	c.Path, c.SearchPath, c.Args = "bash", p.settings.path(), bashArgs("-c", runArguments, "bash")
	for len(text) > maxPart {
		c.Args = append(c.Args, text[:maxPart])
		text = text[maxPart:]
	}
	c.Args = append(c.Args, text)
}

// quoted returns text as one word of bash.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
