package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestCasesTexts checks the texts of the table that the policy writes.
func TestCasesTexts(t *testing.T) {
	var table struct {
		Texts []struct {
			When, Text string
			Reasons    []string
		}
	}
	if err := json.Unmarshal(readCases(t, "texts.json"), &table); err != nil {
		t.Fatal(err)
	}
	denied := func(opts Options, in Input) string {
		t.Helper()
		rules, err := New(opts)
		if err != nil {
			t.Fatal(err)
		}
		in.Tool, in.Tier, in.Folders = "shell_exec", tool.Privileged, []string{"/ws"}
		d := rules.Decide(in)
		if d.Verdict != Deny {
			t.Errorf("%+v, want a denial", d)
		}
		return d.Reason
	}
	runs := func(text string) Input {
		return Input{Commands: []Command{{Line: command.Parse(text, command.Options{Workspace: "/ws"})}}}
	}
	private := Paths{Forbidden: []PathRule{{Pattern: "**/.ssh"}}}
	checks := map[string]func(text string, reasons []string){
		"mode read_only and the tool is not": func(text string, _ []string) {
			wantReason(t, denied(Options{Mode: ReadOnly}, Input{}), text, "{tool}", "shell_exec")
		},
		"a path that policy or the plugin forbids": func(text string, _ []string) {
			in := Input{Paths: []Path{{Name: "a/.ssh/id", Absolute: "/ws/a/.ssh/id"}}}
			wantReason(t, denied(Options{Paths: private}, in), text, "{path}", "a/.ssh/id")
		},
		"a forbidden path inside a command": func(text string, _ []string) {
			wantReason(t, denied(Options{Paths: private}, runs("cat a/.ssh/id")), text, "{path}", "a/.ssh/id")
		},
		"a command refused by policy": func(text string, reasons []string) {
			for _, c := range []struct {
				reason string
				opts   Options
			}{
				{"Command not in allowlist", Options{Commands: &Commands{Unlisted: Deny}}},
				{"High-risk commands are blocked", Options{Commands: &Commands{BlockHighRisk: true}}},
			} {
				if !slices.Contains(reasons, c.reason) {
					t.Errorf("the table does not know %q any more: %q", c.reason, reasons)
				}
				wantReason(t, denied(c.opts, runs("rm x")), text, "{reason}", c.reason)
			}
		},
	}
	ran := 0
	for _, row := range table.Texts {
		if check, ok := checks[row.When]; ok {
			check(row.Text, row.Reasons)
			ran++
		}
	}
	if t.Logf("%d of %d rows", ran, len(table.Texts)); ran != len(checks) {
		t.Errorf("%d rows ran, want the %d that this package knows", ran, len(checks))
	}
}

// wantReason checks the reason that the caller reads.
func wantReason(t *testing.T, got, text, placeholder, value string) {
	t.Helper()
	if want := strings.Replace(text, placeholder, value, 1); got != want {
		t.Errorf("the reason is %q, want %q", got, want)
	}
}
