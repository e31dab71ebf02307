package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/front/client"
)

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain TOOL [KEY=VALUE... | JSON | -]",
		Short: "Explain what would happen to a call, by which rule, and how to change it",
		Example: `  toolhost explain TOOL path=README.md
  toolhost explain TOOL '{"path": "README.md"}' --json`,
		Args: namesATool,
		RunE: func(cmd *cobra.Command, args []string) error {
			arguments, err := a.arguments(args[1:])
			if err != nil {
				return wrongArguments(err)
			}
			hideArguments(args[1:])
			return a.asAgent(cmd.Context(), func(c *client.Client) error {
				return a.explain(cmd.Context(), c, client.Call{Tool: args[0], Arguments: arguments})
			})
		},
	}
}

func (a *app) explain(ctx context.Context, c *client.Client, call client.Call) error {
	e, err := c.Explain(ctx, call)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(e)
	}
	_, err = fmt.Fprint(a.stdout, explanation(e))
	return err
}

// explanation is an explanation for people.
func explanation(e pipeline.Explanation) string {
	rule := line(e.Rule)
	if e.Where != "" {
		rule += " at " + line(e.Where)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, by %s\n", e.Verdict, e.Tool, rule)
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
	if e.NoGrant != "" {
		fmt.Fprintf(&b, "  no grant   %s\n", line(e.NoGrant))
	}
	if e.Change != "" {
		fmt.Fprintf(&b, "  to change  %s\n", line(e.Change))
	}
	return b.String()
}
