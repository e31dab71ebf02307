package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/daemon"
)

func (a *app) policyCommand() *cobra.Command {
	test := &cobra.Command{
		Use:   "test",
		Short: "Run the tests of the rules in the configuration",
		Long: `Run the tests of the rules in the configuration, and check that the rules fit the
tools and arguments they name. The command calls no tool and ignores grants. It knows
the tools of plugins that were started before.`,
		Example: `  toolhost policy test
  toolhost policy test --json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.loadConfig()
			if err != nil {
				return err
			}
			check, err := daemon.CheckRules(cfg, version)
			if err != nil {
				return err
			}
			return a.printRuleCheck(check)
		},
	}
	policy := &cobra.Command{
		Use:   "policy",
		Short: "Check the rules in the configuration",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	policy.AddCommand(test)
	return policy
}

// printRuleCheck prints each test and each mistake. With a mistake it fails, and if not
// all could be checked.
func (a *app) printRuleCheck(check pipeline.RuleCheck) error {
	print := a.printTests
	if a.json {
		print = func(check pipeline.RuleCheck) error { return a.printJSON(check) }
	}
	if err := print(check); err != nil {
		return err
	}
	if len(check.Mistakes) > 0 || len(check.NotChecked) > 0 {
		return errReported // a test that was not made does not pass
	}
	return nil
}

func (a *app) printTests(check pipeline.RuleCheck) error {
	passed := 0
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, t := range check.Tests {
		state := "ok"
		switch {
		case t.Problem != "":
			state = "FAIL"
		case t.NotChecked:
			state = "not checked"
		default:
			passed++
		}
		by := ""
		if t.Decision != nil {
			by = t.Decision.Verdict.String() + " by " + line(t.Decision.Rule)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", state, line(t.Rule), line(t.Name), by)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, m := range check.Mistakes {
		fmt.Fprintf(a.stderr, "toolhost: %s: %s\n", m.Place, line(m.Text))
	}
	if len(check.NotChecked) > 0 {
		fmt.Fprintf(a.stderr, "toolhost: not checked: %s: no plugin that was started offers such tools; %s starts all\n",
			line(strings.Join(check.NotChecked, ", ")), a.command("validate --start"))
	}
	if len(check.Tests) == 0 {
		_, err := fmt.Fprint(a.stdout, "no rule has a test; add a test block to a rule to state what happens to a call\n")
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%d of %d tests pass\n", passed, len(check.Tests))
	return err
}
