package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/state/journal"
)

func (a *app) journalCommand() *cobra.Command {
	return group("journal", "Read the record of all calls and verify that it was not changed",
		a.journalTailCommand(), a.journalQueryCommand(), a.journalVerifyCommand())
}

func (a *app) journalTailCommand() *cobra.Command {
	lines := 10
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print the newest rows, then follow until Ctrl-C",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.tailJournal(cmd.Context(), lines)
		},
	}
	cmd.Flags().IntVarP(&lines, "lines", "n", lines, "the number of rows to start with")
	return cmd
}

// tailJournal prints the last rows, and then new rows until ctx ends, even if the host
// changes. It waits while no host runs, so that another process can become the host.
func (a *app) tailJournal(ctx context.Context, lines int) error {
	if _, _, err := a.running(ctx); err != nil {
		return err
	}
	var after int64
	err := a.asReader(ctx, func(c *client.Client) error {
		last, err := c.Journal(ctx, journal.Query{Limit: max(1, lines)})
		if err != nil {
			return err
		}
		if len(last) > 0 {
			after = last[0].Seq
		}
		for _, row := range slices.Backward(last[:min(max(0, lines), len(last))]) {
			if err := a.printRow(row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && a.remote != "" {
		return err // it may be the wrong address
	}
	for (err == nil || hostGone(err)) && pause(ctx, a.betweenTries()) == nil {
		if _, runs, _ := a.running(ctx); runs {
			err = a.asApprover(ctx, func(c *client.Client) error { return a.followJournal(ctx, c, &after) })
		}
	}
	if hostGone(err) {
		err = nil // Ctrl-C came while no host ran
	}
	return err
}

// followJournal prints the rows after a given one until the host is gone.
func (a *app) followJournal(ctx context.Context, c *client.Client, after *int64) error {
	for row, err := range c.TailJournal(ctx, *after) {
		if errors.Is(err, client.ErrEnded) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := a.printRow(row); err != nil {
			return err
		}
		*after = row.Seq
	}
	return nil
}

// printRow prints a row on one line, or as JSON Lines with --json.
func (a *app) printRow(r journal.Record) error {
	if a.json {
		return a.printJSONLine(r)
	}
	_, err := fmt.Fprintln(a.stdout, rowLine(r))
	return err
}

// rowLine returns a row for people.
func rowLine(r journal.Record) string {
	text := fmt.Sprintf("%d %s %-6s %s %s %s", r.Seq, r.Time.Local().Format(time.DateTime), r.Kind, r.Call, line(r.User), line(cmp.Or(r.Tool, r.Plugin)))
	if r.About != "" {
		text += fmt.Sprintf(" %q", line(r.About))
	}
	if r.Status != "" {
		text += " " + r.Status
	}
	if r.Code != "" {
		text += " " + r.Code
	}
	if r.ApprovedBy != "" {
		text += " approved_by=" + r.ApprovedBy
	}
	if r.Approver != "" {
		text += " approver=" + line(r.Approver)
	}
	if r.Via != "" {
		text += " via=" + line(r.Via)
	}
	if r.Notice != "" {
		text += " " + line(r.Notice)
	}
	return text
}

func (a *app) journalQueryCommand() *cobra.Command {
	var q journal.Query
	var since, until string
	cmd := &cobra.Command{
		Use:   "query",
		Short: "Print matching rows, newest first",
		Example: `  toolhost journal query --status error --since 24h
  toolhost journal query --call tc_... --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if q.Since, q.Until, err = period(since, until); err != nil {
				return err
			}
			var rows []journal.Record
			err = a.asReader(cmd.Context(), func(c *client.Client) (err error) {
				rows, err = c.Journal(cmd.Context(), q)
				return err
			})
			if err == nil && len(rows) == 0 {
				err = a.foundNone(cmd.Context(), "there are no matching rows")
			}
			if err != nil {
				return err
			}
			return a.printRows(rows)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.Call, "call", "", "only this call")
	flags.StringVar(&q.Tool, "tool", "", "only this tool")
	flags.StringVar(&q.Plugin, "plugin", "", "only this plugin")
	flags.StringVar(&q.User, "user", "", "only this user")
	flags.StringVar(&q.Session, "session", "", "only this session")
	flags.StringVar(&q.Status, "status", "", "only this status: success, error or rejected")
	flags.StringVar(&since, "since", "", "only rows since this time: RFC 3339, or an age such as 24h")
	flags.StringVar(&until, "until", "", "only rows before this time")
	flags.Int64Var(&q.Before, "before", 0, "only rows before this row number")
	flags.IntVar(&q.Limit, "limit", 100, "the maximum number of rows")
	a.completeFlag(cmd, "tool", toolNames)
	a.completeFlag(cmd, "plugin", pluginNames)
	a.completeFlag(cmd, "user", userNames)
	a.completeFlag(cmd, "status", oneOfNames("success", "error", "rejected"))
	return cmd
}

// period parses the flags --since and --until.
func period(since, until string) (from, to time.Time, err error) {
	if from, err = moment(since); err != nil {
		return from, to, &usageError{fmt.Errorf("--since: %w", err)}
	}
	if to, err = moment(until); err != nil {
		return from, to, &usageError{fmt.Errorf("--until: %w", err)}
	}
	return from, to, nil
}

// moment parses a time or an age.
func moment(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a time; expected RFC 3339, such as 2026-01-31T15:04:05Z, or an age, such as 24h", text)
	}
	return t, nil
}

// printRows prints a table of rows, or JSON Lines with --json.
func (a *app) printRows(rows []journal.Record) error {
	if a.json {
		for _, r := range rows {
			if err := a.printJSONLine(r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		_, err := fmt.Fprint(a.stdout, "no matching rows\n")
		return err
	}
	table := newTable(a.stdout)
	fmt.Fprint(table, "ROW\tTIME\tUSER\tTOOL\tABOUT\tSTATUS\tDECIDED BY\tCALL\n")
	for _, r := range rows {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Seq, r.Time.Local().Format(time.DateTime), orDash(line(r.User)),
			orDash(line(cmp.Or(r.Tool, r.Plugin))), orDash(head(line(r.About), 60)), rowStatus(r), decidedBy(r), orDash(cmp.Or(r.Call, head(line(r.Notice), maxNoticeShown))))
	}
	return table.Flush()
}

// maxNoticeShown bounds what a row tells that is not about a call, in characters. It stands in the last
// column, which widens no other.
const maxNoticeShown = 200

// rowStatus returns how a row's call ended or that it began, or the kind of another row.
func rowStatus(r journal.Record) string {
	switch {
	case r.Kind == journal.Start:
		return "started"
	case r.Status == "":
		return string(r.Kind) + overChannel(r.Via)
	case r.BrokenClaim != "":
		return r.Status + " " + r.Code + ", broken claim"
	case r.Code != "" && r.Code != r.Status:
		return r.Status + " " + r.Code
	}
	return r.Status
}

// overChannel returns the channel of a request or an answer, in parentheses, or "".
func overChannel(via string) string {
	if via == "" {
		return ""
	}
	return " (" + line(via) + ")"
}

// decidedBy returns who let the call run or rejected it: a person and the channel of the answer, or
// what allowed it without one.
func decidedBy(r journal.Record) string {
	by := line(cmp.Or(r.Approver, r.ApprovedBy))
	switch {
	case r.Notice != "": // not about a call
		return "-"
	case by == "":
		return orDash(line(r.Via))
	}
	return by + overChannel(r.Via)
}

func (a *app) journalVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check that no row was changed, removed, added or moved",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := a.verifyJournal(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				report.Problems = append([]journal.Problem{}, report.Problems...) // an empty list, never null
				err = a.printJSON(report)
			} else {
				err = a.printReport(report)
			}
			if err == nil && len(report.Problems) > 0 {
				err = errReported
			}
			return err
		},
	}
}

// verifyJournal has the running host verify the journal, or verifies it itself, because a host
// does not start with a journal that was changed.
func (a *app) verifyJournal(ctx context.Context) (report journal.Report, err error) {
	stateDir, runs, err := a.running(ctx)
	if err != nil {
		return report, err
	}
	if !runs {
		return daemon.VerifyJournal(ctx, stateDir)
	}
	err = a.asApprover(ctx, func(c *client.Client) error {
		report, err = c.VerifyJournal(ctx)
		return err
	})
	return report, err
}

func (a *app) printReport(report journal.Report) error {
	for _, p := range report.Problems {
		fmt.Fprintf(a.stdout, "%s\n", line(p.String()))
	}
	if n := len(report.Problems); n > 0 {
		_, err := fmt.Fprintf(a.stdout, "the journal was changed; problems: %d, rows: %d\n", n, report.Rows)
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%d rows, from %d to %d: unchanged\n", report.Rows, report.First, report.Last)
	return err
}
