package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/approval"
	"github.com/toolhost/toolhost/host/internal/client"
)

func (a *app) grantsCommand() *cobra.Command {
	revoked := false
	list := &cobra.Command{
		Use:   "list",
		Short: "List the grants: which calls run unasked, and since when",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.asApprover(cmd.Context(), func(c *client.Client) error {
				grants, err := c.Grants(cmd.Context(), revoked)
				if err != nil {
					return err
				}
				return a.printGrants(grants)
			})
		},
	}
	list.Flags().BoolVar(&revoked, "revoked", false, "list those that were revoked too")
	revoke := &cobra.Command{
		Use:     "revoke ID",
		Short:   "Take a grant back: the next call is asked about",
		Example: `  toolhost grants revoke ID`,
		Args:    oneArgument("the ID of a grant; toolhost grants list shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asApprover(cmd.Context(), func(c *client.Client) error {
				grant, err := c.Revoke(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(grant)
				}
				_, err = fmt.Fprintf(a.stdout, "revoked %s: %s of %s\n", grant.ID, grant.Tool, line(grant.User))
				return err
			})
		},
	}
	grants := &cobra.Command{
		Use:   "grants",
		Short: "See the grants, the answers that stand, and take them back",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	grants.AddCommand(list, revoke)
	return grants
}

func (a *app) printGrants(grants []approval.Grant) error {
	if a.json {
		return a.printJSON(grants)
	}
	if len(grants) == 0 {
		_, err := fmt.Fprint(a.stdout, "no grants; toolhost approvals approve ID --always gives one\n")
		return err
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "ID\tTOOL\tUSER\tBY\tSINCE\tUSES\tLAST USE\n")
	for _, g := range grants {
		last := "-"
		if !g.LastUsed.IsZero() {
			last = g.LastUsed.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n",
			g.ID, g.Tool, line(g.User), line(g.CreatedBy), g.Created.Local().Format(time.DateTime), g.Uses, last)
	}
	return table.Flush()
}
