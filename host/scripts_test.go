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

// ran matches the commands that a script runs, except those that must fail, whose lines begin
// with an exclamation mark.
var ran = regexp.MustCompile(`(?m)^exec (?:.*\bexec )?toolhost([^>\n]*)`)

// TestScriptsRunEverything reports commands that no script in testdata runs successfully, and
// flags that no such command uses.
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

// flagOf returns the flag that a word sets, or nil.
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

// called matches the tools that a script calls successfully.
var called = regexp.MustCompile(`(?m)^exec toolhost call ([a-z_]+)`)

// shippedTool holds the fields of a tool that the tests read.
type shippedTool struct {
	Name, Plugin, Description, Category string
	Aliases                             []string
}

// shippedTools lists the tools of the default configuration.
func shippedTools(t *testing.T) (tools []shippedTool) {
	t.Helper()
	blocks, err := shippedBlocks()
	if err != nil {
		t.Fatal(err)
	}
	out, stderr, code := cli(writeConfig(t, blocks), "tools", "--json")
	if err := json.Unmarshal([]byte(out), &tools); err != nil || code != 0 || len(tools) < 10 {
		t.Fatalf("tools --json = %.200q, %q, exit code %d", out, stderr, code)
	}
	return tools
}

func TestShippedToolsAreDescribed(t *testing.T) {
	t.Parallel()
	for _, tool := range shippedTools(t) {
		if tool.Description == "" || tool.Category == "" {
			t.Errorf("%s has the description %.40q and the category %q", tool.Name, tool.Description, tool.Category)
		}
	}
}

// TestScriptsCallEveryTool reports tools of the default configuration that no script calls
// successfully, through the host and in the sandbox. The host's own tools need values that
// only a program can pass on: TestLongResultIsReadOn and TestApprovalWaitOverMCP call them.
func TestScriptsCallEveryTool(t *testing.T) {
	t.Parallel()
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
