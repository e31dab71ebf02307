package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/client"
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
	return group("policy", "Check the rules in the configuration", test)
}

// printRuleCheck prints each test and each mistake. It fails if there is a mistake, or if
// something could not be checked.
func (a *app) printRuleCheck(check pipeline.RuleCheck) error {
	print := a.printTests
	if a.json {
		print = func(check pipeline.RuleCheck) error { return a.printJSON(check) }
	}
	if err := print(check); err != nil {
		return err
	}
	if len(check.Mistakes) > 0 || len(check.NotChecked) > 0 {
		return errReported // a test that did not run does not pass
	}
	return nil
}

func (a *app) printTests(check pipeline.RuleCheck) error {
	passed := 0
	table := newTable(a.stdout)
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

func (a *app) explainCommand() *cobra.Command {
	var user, by string
	network := false
	cmd := &cobra.Command{
		Use:   "explain TOOL [KEY=VALUE... | JSON | -]",
		Short: "Explain what would happen to a call, by which rule, and how to change it",
		Long: `Explain what would happen to a call, by which rule, and how to change it. Nothing runs.
The call is yours, unless --user names another user. Grants of that user count; limits
of single tokens to some tools do not.

With --network, explain what would happen to a connection of a plugin to a host, by the
configuration: toolhost explain --network PLUGIN HOST[:PORT]. Grants do not count.`,
		Example: `  toolhost explain TOOL path=README.md
  toolhost explain TOOL '{"path": "README.md"}' --user ada
  toolhost explain --network PLUGIN api.example.com:443`,
		Args:              a.namesATool,
		ValidArgsFunction: a.completeCall,
		RunE: func(cmd *cobra.Command, args []string) error {
			if network {
				return a.explainConnection(args)
			}
			arguments, err := a.arguments(args[1:])
			if err != nil {
				return wrongArguments(err)
			}
			hideArguments(args[1:])
			as := a.asAgent
			if user != "" {
				as = a.asApprover
			}
			return as(cmd.Context(), func(c *client.Client) error {
				e, err := c.ExplainAs(cmd.Context(), client.Call{Tool: args[0], Arguments: arguments}, user, by)
				if err != nil {
					return err
				}
				return a.printExplanation(e)
			})
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "the user who would make the call, instead of you")
	cmd.Flags().BoolVar(&network, "network", false, "explain a connection of a plugin to a host instead of a call")
	cmd.Flags().StringVar(&by, "client", "", "the client that would make the call, such as claude-code")
	a.completeFlag(cmd, "user", userNames)
	return cmd
}

func (a *app) printExplanation(e pipeline.Explanation) error {
	if a.json {
		return a.printJSON(e)
	}
	_, err := fmt.Fprint(a.stdout, a.explanation(e))
	return err
}

// explanation returns an explanation for people.
func (a *app) explanation(e pipeline.Explanation) string {
	rule := line(e.Rule)
	if e.Where != "" {
		rule += " at " + line(e.Where)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, by %s\n", e.Verdict, e.Tool, rule)
	if e.Stopped != "" {
		fmt.Fprintf(&b, "  stopped    the call would not run now: %s\n", line(e.Stopped))
	}
	fmt.Fprintf(&b, "  tier       %s\n  arguments  %s\n", e.Tier, head(line(string(e.Arguments)), 200))
	for _, r := range e.Repairs {
		fmt.Fprintf(&b, "  repaired   %s\n", line(r.Place+": "+r.Change))
	}
	for _, c := range e.Commands {
		fmt.Fprintf(&b, "  %s\n", head(line(c.String()), 300))
	}
	for _, problem := range e.Problems {
		fmt.Fprintf(&b, "  %s\n", line(problem.String()))
	}
	for _, note := range e.Notes {
		fmt.Fprintf(&b, "  note       %s\n", line(note))
	}
	if e.Reason != "" {
		fmt.Fprintf(&b, "  reason     %s\n", line(e.Reason))
	}
	if e.Approvers > 1 {
		fmt.Fprintf(&b, "  approvers  %d different people\n", e.Approvers)
	}
	if e.NoGrant != "" {
		fmt.Fprintf(&b, "  no grant   %s\n", line(e.NoGrant))
	}
	if words, ok := strings.CutPrefix(e.Change, "toolhost "); ok { // such as toolhost grants revoke
		e.Change = a.command(words)
	}
	if e.Change != "" {
		fmt.Fprintf(&b, "  to change  %s\n", line(e.Change))
	}
	return b.String()
}
