package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/approval"
	"github.com/toolhost/toolhost/host/internal/client"
)

func (a *app) grantsCommand() *cobra.Command {
	all := false
	list := &cobra.Command{
		Use:   "list",
		Short: "List the grants: which calls run unasked, for how long, and when that was last used",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.asApprover(cmd.Context(), func(c *client.Client) error {
				grants, err := c.Grants(cmd.Context(), all)
				if err != nil {
					return err
				}
				return a.printGrants(grants)
			})
		},
	}
	list.Flags().BoolVar(&all, "all", false, "list those that have ended too, for 90 days")
	revoke := &cobra.Command{
		Use:     "revoke ID",
		Short:   "Take a grant back: the next call is asked about",
		Example: `  toolhost grants revoke gr_01a1fba8-9cda-7077-9c56-f67d36fb3daf`,
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
				_, err = fmt.Fprintf(a.stdout, "revoked %s: %s, for %s\n", grant.ID, line(grant.Covers), line(grant.User))
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
	fmt.Fprint(table, "ID\tUSER\tCOVERS\tLASTS\tUSES\tLAST USE\tBY\tSINCE\n")
	for _, g := range grants {
		last := "-"
		if !g.LastUsed.IsZero() {
			last = g.LastUsed.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", g.ID, line(g.User), head(line(g.Covers), 100), line(lasts(g)),
			g.Uses, last, line(g.CreatedBy), g.Created.Local().Format(time.DateTime))
	}
	return table.Flush()
}

// lasts says how long a grant lasts, or why it has ended.
func lasts(g approval.Grant) string {
	if g.State != approval.GrantActive {
		return string(g.State)
	}
	var all []string
	if g.Session != "" {
		all = append(all, "for session "+g.Session)
	}
	if !g.Expires.IsZero() {
		all = append(all, "until "+g.Expires.Local().Format(time.DateTime))
	}
	if g.MaxUses > 0 {
		all = append(all, fmt.Sprintf("for %d of %d uses", g.MaxUses-g.Uses, g.MaxUses))
	}
	if len(all) == 0 {
		return "always"
	}
	return strings.Join(all, ", ")
}
