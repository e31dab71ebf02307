package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	t.Parallel()
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

// called finds the tools that a script calls with success.
var called = regexp.MustCompile(`(?m)^exec toolhost call ([a-z_]+)`)

// shippedTool is what a program reads of a tool.
type shippedTool struct {
	Name, Plugin, Description, Category string
	Aliases                             []string
}

// shippedTools lists the tools of the configuration that ships.
func shippedTools(t *testing.T) (tools []shippedTool) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir, _ := checkout(t)
	out, stderr, code := cli(filepath.Join(dir, "config.hcl"), "tools", "--json")
	if err := json.Unmarshal([]byte(out), &tools); err != nil || code != 0 || len(tools) < 10 {
		t.Fatalf("tools --json = %.200q, %q, exit code %d", out, stderr, code)
	}
	return tools
}

func TestShippedToolsAreDescribed(t *testing.T) {
	for _, tool := range shippedTools(t) {
		if tool.Description == "" || tool.Category == "" {
			t.Errorf("%s has the description %.40q and the category %q", tool.Name, tool.Description, tool.Category)
		}
	}
}

// TestScriptsCallEveryTool finds tools of the configuration that ships which no
// script calls with success, through the host and in the sandbox. The host's own
// need what only a program can pass on: TestLongResultIsReadOn and TestApprovalWaitOverMCP call them.
func TestScriptsCallEveryTool(t *testing.T) {
	all := map[string]bool{}
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		for _, name := range called.FindAllStringSubmatch(readFile(t, script), -1) {
			all[name[1]] = true
		}
	}
	for _, tool := range shippedTools(t) {
		names := append(tool.Aliases, tool.Name)
		if tool.Plugin != "toolhost" && !slices.ContainsFunc(names, func(name string) bool { return all[name] }) {
			t.Errorf("no script calls %s", tool.Name)
		}
	}
}
