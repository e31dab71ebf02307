package main

import "strings"

// runArguments is a script that joins its arguments and runs the result as a
// command, because one argument cannot hold a long command. The command sees no
// arguments, and BASH_EXECUTION_STRING is as if it had been passed to bash -c. Bash
// does not replace itself with the command's last program (exec), because its
// directory is the result's directory.
const runArguments = `IFS=; BASH_EXECUTION_STRING=$*; IFS=$' \t\n'; set --; eval "$BASH_EXECUTION_STRING"`

// maxPart is how much of a command one argument holds. Linux limits an argument to
// 128 KiB.
const maxPart = 100 << 10

// bashArgs returns arguments that keep bash from reading the user's start-up files.
func bashArgs(args ...string) []string { return append([]string{"--noprofile", "--norc"}, args...) }

// runBash makes p run text with bash. Bash is looked up in the PATH of the
// settings, whatever PATH the command is given.
func runBash(p *program, text string) {
	c := &p.command
	c.Path, c.SearchPath, c.Args = "bash", p.settings.path(), bashArgs("-c", runArguments, "bash")
	for len(text) > maxPart {
		c.Args = append(c.Args, text[:maxPart])
		text = text[maxPart:]
	}
	c.Args = append(c.Args, text)
}

// quoted returns text as one quoted word of bash.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
