package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/command"
)

// shellCases is the table of commands and what is to become of them.
type shellCases struct {
	Policy struct {
		Workspace string
		Allow     []string
		Deny      []string
		Redirects []string `json:"redirect_write_auto"`
		Assign    []string `json:"safe_env_assign"`
	}
	Cases []struct {
		ID, Command, Why string
		Expect           Verdict
		Risk             command.Risk
	}
}

func readShellCases(tb testing.TB) (shellCases, *Commands) {
	tb.Helper()
	dir := os.Getenv("TOOLHOST_CASES")
	if dir == "" {
		dir = filepath.Join("testdata", "cases")
	}
	text, err := os.ReadFile(filepath.Join(dir, "shell.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var table shellCases
	if err := json.Unmarshal(text, &table); err != nil {
		tb.Fatal(err)
	}
	if len(table.Cases) == 0 {
		tb.Fatal("the table is empty")
	}
	c := &Commands{Assign: table.Policy.Assign, WriteRedirects: table.Policy.Redirects}
	for _, list := range []struct {
		from []string
		to   *[]CommandRule
	}{{table.Policy.Allow, &c.Allow}, {table.Policy.Deny, &c.Deny}} {
		for _, rule := range list.from {
			*list.to = append(*list.to, CommandRule{Words: strings.Fields(rule)})
		}
	}
	return table, c
}

func TestCasesShell(t *testing.T) {
	table, c := readShellCases(t)
	for _, tt := range table.Cases {
		t.Run(tt.ID, func(t *testing.T) {
			line := command.Parse(tt.Command, command.Options{Workspace: table.Policy.Workspace, Assign: c.Assign, WriteRedirects: c.WriteRedirects})
			d, _ := c.judge(Command{Line: line})
			if d.Verdict < tt.Expect || tt.Expect == Allow && d.Verdict != Allow {
				t.Errorf("%q: %v by %s, want %v (%s)\n%+v", tt.Command, d.Verdict, d.Rule, tt.Expect, tt.Why, line)
			}
			if line.Risk() != tt.Risk {
				t.Errorf("%q: risk %v, want %v\n%+v", tt.Command, line.Risk(), tt.Risk, line)
			}
		})
	}
	t.Logf("%d cases", len(table.Cases))
}
