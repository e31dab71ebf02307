package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

func (a *app) approvalsCommand() *cobra.Command {
	cmd := group("approvals", "Watch, list, show, approve and reject waiting calls",
		a.approvalsWatchCommand(), a.approvalsListCommand(), a.approvalsShowCommand(), a.approveCommand(), a.rejectCommand())
	cmd.Long = "Watch, list, show, approve and reject calls that wait for a person. On a terminal, toolhost\napprovals alone is toolhost approvals watch."
	help := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if a.onTerminal() && !a.json {
			return a.watchApprovals(cmd.Context(), false)
		}
		return help(cmd, args)
	}
	return cmd
}

func (a *app) approvalsListCommand() *cobra.Command {
	wait, all := false, false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List calls that wait for approval",
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
				case len(records) > 0:
					return a.printApprovals(records)
				case !wait:
					if err := a.foundNone(cmd.Context(), noneWaits); err != nil {
						return err
					}
					return a.printApprovals(records)
				}
			}
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until a call needs approval")
	cmd.Flags().BoolVar(&all, "all", false, "include decided approvals that are still kept")
	return cmd
}

const (
	// oneLook is how long one request for approvals waits.
	oneLook = 30 * time.Second
	// betweenHosts is the interval of checks for a host while none runs. A waiting command
	// must not become the host, since then another process could not.
	betweenHosts = 200 * time.Millisecond
)

// listApprovals lists approvals. If there are none and wait is set, it waits for one request.
func (a *app) listApprovals(ctx context.Context, filter client.ApprovalFilter, wait bool) (records []httpapi.Approval, err error) {
	_, running, err := a.running(ctx)
	if err != nil {
		return nil, err
	}
	if running && wait {
		filter.Wait = oneLook
	}
	records = []httpapi.Approval{} // never null in JSON
	err = a.asReader(ctx, func(c *client.Client) error {
		records, err = c.Approvals(ctx, filter)
		return err
	})
	if wait && hostGone(err) && a.remote == "" {
		return nil, nil
	}
	if err == nil && wait && !running && len(records) == 0 {
		err = pause(ctx, betweenHosts)
	}
	return records, err
}

func (a *app) printApprovals(records []httpapi.Approval) error {
	if a.json {
		return a.printJSON(records)
	}
	if len(records) == 0 {
		_, err := fmt.Fprintf(a.stdout, "no call waits for approval; to wait for the next one: %s\n", a.command("approvals list --wait"))
		return err
	}
	table := newTable(a.stdout)
	fmt.Fprint(table, "ID\tTOOL\tUSER\tSTATE\tEXPIRES\tWHAT\n")
	for _, r := range records {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Tool, line(r.User), openState(r.Record), until(r.Record), head(line(r.Summary), 100))
	}
	return table.Flush()
}

// until returns how long a record can still be decided.
func until(r approval.Record) string {
	if r.State.Closed() {
		return "-"
	}
	return "in " + max(0, time.Until(r.Expires)).Round(time.Second).String()
}

func (a *app) approvalsShowCommand() *cobra.Command {
	last, shown := false, false
	cmd := &cobra.Command{
		Use:               "show [ID]",
		Short:             "Show everything an approver needs to know about a call",
		Long:              "Show everything an approver needs to know about a call. Without an ID, show the\none that waits.",
		Example:           `  toolhost approvals show --last`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.complete(openApprovals),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asDecider(cmd.Context(), func(c *client.Client) error {
				id, err := a.chooseApproval(cmd.Context(), c, args, last, false)
				if err != nil {
					return err
				}
				record, err := c.Approval(cmd.Context(), id)
				if err != nil {
					return err
				}
				switch {
				case a.json && shown:
					err = a.printJSON(asShown(record))
				case a.json:
					err = a.printJSON(record)
				default:
					err = a.printApproval(record)
				}
				if err != nil || record.State != approval.Open || record.MayNotDecide {
					return err
				}
				if err := a.noteShown(shownOf(record.Record)); err != nil {
					return fmt.Errorf("record what was shown (without it, only a terminal can decide): %w", err)
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&last, "last", false, "show the newest one")
	cmd.Flags().BoolVar(&shown, "shown", false, "with --json: leave out what agent and plugin have sent, which the lines in display show")
	return cmd
}

// asShown returns an approval without what its agent and its plugin have sent. A program that shows
// display needs no parser that withstands any JSON.
func asShown(whole httpapi.Approval) httpapi.Approval {
	whole.Arguments, whole.Preview, whole.Context, whole.Description = nil, nil, "", ""
	return whole
}

// printApproval prints everything about a call, and the commands to decide on it or who may.
func (a *app) printApproval(whole httpapi.Approval) error {
	r := whole.Record
	if _, err := fmt.Fprint(a.stdout, viewText(approval.Show(r), a.stdout)); err != nil || r.State != approval.Open {
		return err
	}
	if whole.MayNotDecide {
		why := "you may not decide about calls of " + line(r.User)
		if len(r.Assents) > 0 {
			why = "it waits for another person (" + line(r.Progress()) + ")"
		}
		_, err := fmt.Fprintf(a.stderr, "hint: %s; who may: %s\n", why, line(whole.Approvers.String()))
		return err
	}
	hints := fmt.Sprintf("hint: %s\nhint: %s\n", a.command("approvals approve "+r.ID), a.command("approvals reject "+r.ID))
	if r.Standing {
		hints += fmt.Sprintf("hint: %s # lets later calls run unasked, too; or with %s--for 8h, --uses 3\n",
			a.command("approvals approve "+r.ID+" --always"), ofSession(r))
	}
	_, err := fmt.Fprint(a.stderr, hints)
	return err
}

// ofSession returns the flag of a grant for the session of a call, if there is one that ends.
func ofSession(r approval.Record) string {
	if auth.SessionEnds(r.Session) {
		return "--session, "
	}
	return ""
}

func (a *app) approveCommand() *cobra.Command {
	var answer client.Answer
	var grant grantFlags
	last := false
	cmd := &cobra.Command{
		Use:   "approve [ID]",
		Short: "Let a call run once, or grant later calls too",
		Long: `Let a call run once. Without an ID, approve the one that waits. On a terminal, the
command shows the call and asks. Elsewhere it accepts only the call that this account
last looked at with toolhost approvals show.

With --always, --session, --for or --uses, the answer becomes a grant: later calls of
the tool by the same user run unasked. A grant covers every call of the tool or, for a
shell command, calls with exactly these commands. --plugin widens it; --path and
--command narrow it. toolhost grants list shows it.`,
		Example: `  toolhost approvals approve --last
  toolhost approvals approve ID --always
  toolhost approvals approve ID --for 8h --path src
  toolhost approvals approve ID --uses 20 --command "npm test *"`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.complete(openApprovals),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if answer.Grant, err = grant.terms(cmd.Flags()); err != nil {
				return err
			}
			question := approveQuestion(cmd.Flags(), answer.Grant != nil)
			return a.decide(cmd.Context(), args, last, true, question, answer)
		},
	}
	cmd.Flags().BoolVar(&last, "last", false, "approve the newest one")
	cmd.Flags().StringVar(&answer.Message, "message", "", "a comment that is stored with the decision")
	registerSeen(cmd.Flags(), &answer)
	grant.register(cmd.Flags())
	return cmd
}

// grantFlags describe the later calls that need no approval.
type grantFlags struct {
	client.Terms

	always bool
	lasts  time.Duration
}

func (g *grantFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&g.always, "always", false, "let later calls run unasked until toolhost grants revoke")
	flags.BoolVar(&g.Session, "session", false, "let later calls of the same MCP session run unasked")
	flags.DurationVar(&g.lasts, "for", 0, "let later calls run unasked for a duration, such as 8h")
	flags.Int64Var(&g.Uses, "uses", 0, "let this many later calls run unasked")
	flags.BoolVar(&g.Plugin, "plugin", false, "cover every tool of the plugin")
	flags.StringVar(&g.Path, "path", "", "cover only this path of the workspace and paths below it")
	flags.StringArrayVar(&g.Commands, "command", nil, "cover only this shell command; a final \" *\" allows any plain words after it")
}

// terms returns the terms that the flags set, or nil if there are none.
func (g *grantFlags) terms(flags *pflag.FlagSet) (*client.Terms, error) {
	ends := g.Session || flags.Changed("for") || flags.Changed("uses")
	switch {
	case flags.Changed("path") && g.Path == "", flags.Changed("command") && slices.Contains(g.Commands, ""):
		return nil, &usageError{errors.New("--path and --command need a value; leave them out to cover everything")}
	case g.always && ends:
		return nil, &usageError{errors.New("--always excludes --session, --for and --uses")}
	case flags.Changed("for") && g.lasts <= 0, flags.Changed("uses") && g.Uses <= 0:
		return nil, &usageError{errors.New("--for and --uses must be greater than zero")}
	case !g.always && !ends && (g.Plugin || g.Path != "" || len(g.Commands) > 0):
		return nil, &usageError{errors.New("say how long later calls run unasked: --always, --session, --for 8h or --uses 3")}
	case !g.always && !ends:
		return nil, nil
	}
	if g.lasts > 0 {
		g.For = g.lasts.String()
	}
	return &g.Terms, nil
}

func (a *app) rejectCommand() *cobra.Command {
	var answer client.Answer
	last := false
	cmd := &cobra.Command{
		Use:   "reject [ID]",
		Short: "Reject a call",
		Long: `Reject a call. Without an ID, reject the one that waits. On a terminal, the command
shows the call and asks. Elsewhere it accepts only the call that this account last
looked at with toolhost approvals show.`,
		Example:           `  toolhost approvals reject --last --message "wrong file"`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.complete(openApprovals),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), args, last, false, "Reject this call?", answer)
		},
	}
	cmd.Flags().BoolVar(&last, "last", false, "reject the newest one")
	cmd.Flags().StringVar(&answer.Message, "message", "", "what to tell the model")
	registerSeen(cmd.Flags(), &answer)
	return cmd
}

// openState returns the state of an approval, and how many of several people have approved it.
func openState(r approval.Record) string {
	if progress := r.Progress(); progress != "" && r.State == approval.Open {
		return "open (" + line(progress) + ")"
	}
	return string(r.State)
}
