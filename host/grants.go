package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
)

func (a *app) grantsCommand() *cobra.Command {
	all := false
	list := &cobra.Command{
		Use:   "list",
		Short: "List grants: the calls that run unasked, until when, and their last use",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			grants := []approval.Grant{} // never null in JSON
			err := a.asReader(cmd.Context(), func(c *client.Client) (err error) {
				grants, err = c.Grants(cmd.Context(), all)
				return err
			})
			if err == nil && len(grants) == 0 {
				err = a.foundNone(cmd.Context(), "there are no grants")
			}
			if err != nil {
				return err
			}
			return a.printGrants(grants)
		},
	}
	list.Flags().BoolVar(&all, "all", false, "include grants that ended within the last 90 days")
	revoke := &cobra.Command{
		Use:               "revoke ID",
		Short:             "Revoke a grant, so that the next call is asked about",
		Example:           `  toolhost grants revoke gr_01a1fba8-9cda-7077-9c56-f67d36fb3daf`,
		Args:              a.oneArgument("the ID of a grant", "grants list"),
		ValidArgsFunction: a.complete(grantIDs),
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
	return group("grants", "List, revoke and confirm grants, the standing approvals", list, revoke, a.confirmGrantCommand())
}

func (a *app) confirmGrantCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm ID",
		Short: "Resume a paused grant for the plugin's current program and tools",
		Long: `Resume a paused grant for the plugin's current program and tools. The command shows
what changed since the grant was given. On a terminal it asks; elsewhere, run the same
command again to confirm.`,
		Example:           `  toolhost grants confirm gr_01a1fba8-9cda-7077-9c56-f67d36fb3daf`,
		Args:              a.oneArgument("the ID of a grant", "grants list"),
		ValidArgsFunction: a.complete(grantIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asApprover(cmd.Context(), func(c *client.Client) error { return a.confirmGrant(cmd.Context(), c, args[0]) })
		},
	}
}

// confirmGrant shows why a grant is paused, and resumes it if the person agrees.
func (a *app) confirmGrant(ctx context.Context, c *client.Client, id string) error {
	grants, err := c.Grants(ctx, false)
	if err != nil {
		return err
	}
	grant := approval.Grant{ID: id} // for a grant that is not paused, the host explains why it cannot be confirmed
	if i := slices.IndexFunc(grants, func(g approval.Grant) bool { return g.ID == id }); i >= 0 {
		grant = grants[i]
	}
	if grant.Paused != nil && grant.Paused.Basis != "" {
		if err := a.agreeToGrant(ctx, grant); err != nil {
			return err
		}
	}
	if grant, err = c.ConfirmGrant(ctx, grant); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(grant)
	}
	_, err = fmt.Fprintf(a.stdout, "confirmed %s: %s, for %s\n", grant.ID, line(grant.Covers), line(grant.User))
	return err
}

// agreeToGrant shows a person what has changed before it resumes a grant.
func (a *app) agreeToGrant(ctx context.Context, g approval.Grant) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s, for %s\n", g.ID, line(g.Covers), line(g.User))
	for _, change := range g.Paused.Changes {
		fmt.Fprintf(&text, "  %s\n", line(change))
	}
	if a.onTerminal() {
		return a.askYes(ctx, text.String(), "Resume this grant?", "grant "+g.ID+" stays paused")
	}
	seen := shown{ID: g.ID, Basis: g.Paused.Basis}
	if a.wasShown(seen) {
		return nil
	}
	if _, err := fmt.Fprint(a.stderr, text.String()); err != nil {
		return err
	}
	if err := a.noteShown(seen); err != nil {
		return err
	}
	return &hintError{fmt.Errorf("grant %s stays paused until you confirm these changes", g.ID), "the same command again confirms it"}
}

func (a *app) printGrants(grants []approval.Grant) error {
	if a.json {
		return a.printJSON(grants)
	}
	if len(grants) == 0 {
		_, err := fmt.Fprintf(a.stdout, "no grants; to create one: %s\n", a.command("approvals approve ID --always"))
		return err
	}
	table := newTable(a.stdout)
	fmt.Fprint(table, "ID\tUSER\tCOVERS\tLASTS\tUSES\tLAST USE\tBY\tSINCE\n")
	for _, g := range grants {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", g.ID, line(g.User), head(line(g.Covers), 100), line(lasts(g)),
			g.Uses, timeOrDash(g.LastUsed), line(g.CreatedBy), g.Created.Local().Format(time.DateTime))
	}
	return table.Flush()
}

// lasts returns how long a grant lasts, or why it has ended.
func lasts(g approval.Grant) string {
	if g.Paused != nil && len(g.Paused.Changes) > 0 {
		text := "paused: " + g.Paused.Changes[0]
		if more := len(g.Paused.Changes) - 1; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
		return text
	}
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
