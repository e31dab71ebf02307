package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ran finds the commands that a script runs: not those that it wants refused,
// whose lines begin with an exclamation mark.
var ran = regexp.MustCompile(`(?m)^exec (?:.*\bexec )?toolhost([^>\n]*)`)

// TestScriptsRunEverything finds commands that no script in testdata runs with
// success, and flags that none gives then.
func TestScriptsRunEverything(t *testing.T) {
	root := (&app{}).root(func() {})
	root.InitDefaultCompletionCmd()
	root.InitDefaultVersionFlag()
	if ran.MatchString("! exec toolhost tools --json") || !ran.MatchString("exec sh -c 'exec toolhost tools'") {
		t.Fatal("what is refused counts as run, or what a shell runs does not")
	}
	run, given := map[string]bool{}, map[*pflag.Flag]bool{}
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range ran.FindAllStringSubmatch(string(text), -1) {
			words := strings.Fields(command[1])
			cmd, _, err := root.Find(words)
			if err != nil {
				continue // a script of mistakes
			}
			run[cmd.CommandPath()] = true
			for _, word := range words {
				if flag := flagOf(cmd, word); flag != nil {
					given[flag] = true
				}
			}
		}
	}
	if len(run) < 10 {
		t.Fatalf("%d commands found in %d scripts: the test would prove nothing", len(run), len(scripts))
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if !run[cmd.CommandPath()] {
			t.Errorf("no script runs %s", cmd.CommandPath())
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if !given[flag] && flag.Name != "help" && cmd.Parent().Name() != "completion" {
				t.Errorf("no script runs %s --%s", cmd.CommandPath(), flag.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// flagOf is the flag of a command that a word gives, or nil.
func flagOf(cmd *cobra.Command, word string) *pflag.Flag {
	if name, ok := strings.CutPrefix(word, "--"); ok {
		name, _, _ = strings.Cut(name, "=")
		return cmd.Flag(name)
	}
	if name, ok := strings.CutPrefix(word, "-"); ok && len(name) == 1 {
		return cmd.Flags().ShorthandLookup(name)
	}
	return nil
}
