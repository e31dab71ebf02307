package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/approval"
	"github.com/toolhost/toolhost/host/internal/client"
)

func (a *app) approvalsCommand() *cobra.Command {
	approvals := &cobra.Command{
		Use:   "approvals",
		Short: "See which calls wait for a person, and decide about them",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	approvals.AddCommand(a.approvalsListCommand(), a.approvalsShowCommand(), a.approveCommand(), a.rejectCommand())
	return approvals
}

func (a *app) approvalsListCommand() *cobra.Command {
	wait, all := false, false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the calls that wait for a person",
		Example: `  toolhost approvals list
  toolhost approvals list --wait`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter := client.ApprovalFilter{States: []approval.State{approval.Open}}
			if all {
				filter.States = nil
			}
			for {
				records, err := a.listApprovals(cmd.Context(), filter, wait)
				switch {
				case err != nil:
					return err
				case len(records) > 0 || !wait:
					return a.printApprovals(records)
				}
			}
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until there is one")
	cmd.Flags().BoolVar(&all, "all", false, "list those that are decided too, as long as they are kept")
	return cmd
}

const (
	// oneLook is how long one question for approvals waits for one.
	oneLook = 30 * time.Second
	// betweenHosts is how often it is looked for a host while none runs: who
	// waits must not be the host, and so keep others from being it.
	betweenHosts = 200 * time.Millisecond
)

// listApprovals lists approvals. If there is none, and wait is set, it waits
// for some time.
func (a *app) listApprovals(ctx context.Context, filter client.ApprovalFilter, wait bool) (records []approval.Record, err error) {
	stateDir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	running := answers(ctx, stateDir)
	if running && wait {
		filter.Wait = oneLook
	}
	err = a.asApprover(ctx, func(c *client.Client) error {
		records, err = c.Approvals(ctx, filter)
		return err
	})
	if wait && hostGone(err) {
		return nil, nil
	}
	if err == nil && wait && !running && len(records) == 0 {
		err = pause(ctx, betweenHosts)
	}
	return records, err
}

func (a *app) printApprovals(records []approval.Record) error {
	if a.json {
		return a.printJSON(records)
	}
	if len(records) == 0 {
		_, err := fmt.Fprint(a.stdout, "no call waits for a person; toolhost approvals list --wait waits for one\n")
		return err
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "ID\tTOOL\tUSER\tSTATE\tEXPIRES\tWHAT\n")
	for _, r := range records {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Tool, line(r.User), r.State, until(r), head(line(r.Summary), 100))
	}
	return table.Flush()
}

// until says how long a record can still be decided.
func until(r approval.Record) string {
	if r.State.Closed() {
		return "-"
	}
	return "in " + max(0, time.Until(r.Expires)).Round(time.Second).String()
}

func (a *app) approvalsShowCommand() *cobra.Command {
	last := false
	cmd := &cobra.Command{
		Use:     "show [ID]",
		Short:   "Show all that there is to know about a call before it is decided",
		Long:    "Show all that there is to know about a call before it is decided. Without an\nID, the one that waits.",
		Example: `  toolhost approvals show --last`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asApprover(cmd.Context(), func(c *client.Client) error {
				id, err := chooseApproval(cmd.Context(), c, args, last)
				if err != nil {
					return err
				}
				record, err := c.Approval(cmd.Context(), id)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(record)
				}
				if _, err = fmt.Fprint(a.stdout, approval.Show(record.Record).Text(a.columns())); err == nil && record.State == approval.Open {
					_, err = fmt.Fprintf(a.stderr, "hint: %s\nhint: %s\n", a.command("approvals approve "+id), a.command("approvals reject "+id))
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&last, "last", false, "show the one that was asked last")
	return cmd
}

func (a *app) approveCommand() *cobra.Command {
	var answer client.Answer
	last := false
	cmd := &cobra.Command{
		Use:   "approve [ID]",
		Short: "Let a call run, once",
		Long:  "Let a call run, once. Without an ID, the one that waits.",
		Example: `  toolhost approvals approve --last
  toolhost approvals approve ID --always`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), args, last, answer.Always, func(c *client.Client, id string) (approval.Record, error) {
				return c.Approve(cmd.Context(), id, answer)
			})
		},
	}
	cmd.Flags().BoolVar(&last, "last", false, "approve the one that was asked last")
	cmd.Flags().BoolVar(&answer.Always, "always", false, "also let later calls of this tool run unasked; toolhost grants revokes that")
	cmd.Flags().StringVar(&answer.Message, "message", "", "a remark, which is kept with the decision")
	return cmd
}

func (a *app) rejectCommand() *cobra.Command {
	var answer client.Answer
	last := false
	cmd := &cobra.Command{
		Use:     "reject [ID]",
		Short:   "Refuse a call",
		Long:    "Refuse a call. Without an ID, the one that waits.",
		Example: `  toolhost approvals reject --last --message "wrong file"`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), args, last, false, func(c *client.Client, id string) (approval.Record, error) {
				return c.Reject(cmd.Context(), id, answer)
			})
		},
	}
	cmd.Flags().BoolVar(&last, "last", false, "refuse the one that was asked last")
	cmd.Flags().StringVar(&answer.Message, "message", "", "what to tell the model")
	return cmd
}

// decide carries a decision out and prints what was decided.
func (a *app) decide(ctx context.Context, args []string, last, always bool, answer func(*client.Client, string) (approval.Record, error)) error {
	return a.asApprover(ctx, func(c *client.Client) error {
		id, err := chooseApproval(ctx, c, args, last)
		if err != nil {
			return err
		}
		record, err := answer(c, id)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(record)
		}
		_, err = fmt.Fprintf(a.stdout, "%s %s: %s\n", record.State, record.ID, line(record.Summary))
		if always && err == nil {
			_, err = fmt.Fprintf(a.stdout, "%s runs unasked for %s from now on\nhint: %s takes that back\n",
				record.Tool, line(record.User), a.command("grants revoke ID"))
		}
		return err
	})
}

// chooseApproval returns the id that a command is about: the one that it names,
// the last one that was asked, or the only one that is open.
func chooseApproval(ctx context.Context, c *client.Client, args []string, last bool) (string, error) {
	switch {
	case len(args) == 1 && last:
		return "", &usageError{errors.New("an ID and --last exclude each other")}
	case len(args) == 1:
		return args[0], nil
	}
	open, err := c.Approvals(ctx, client.ApprovalFilter{States: []approval.State{approval.Open}})
	switch {
	case err != nil:
		return "", err
	case len(open) == 0:
		return "", errors.New("no call waits for a person")
	case len(open) == 1 || last:
		return open[0].ID, nil
	}
	return "", &usageError{fmt.Errorf("%d calls wait for a person: give the ID of one, which toolhost approvals list shows, or --last", len(open))}
}
