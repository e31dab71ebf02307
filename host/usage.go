package main

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/sdk/tool"
)

func (a *app) usageCommand() *cobra.Command {
	var q journal.UsageQuery
	var since, until string
	asCSV := false
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Sum up the calls of each user and tool",
		Long: `Sum up the calls of each user and tool: how many, how many failed or were rejected, how
long they took with the wait for a person, and the size of their results. It counts the
calls that have ended and that the journal still has.`,
		Example: `  toolhost usage --since 24h
  toolhost usage --user ada --csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if q.Since, q.Until, err = period(since, until); err != nil {
				return err
			}
			all := []journal.Usage{} // never null in JSON
			err = a.asReader(cmd.Context(), func(c *client.Client) (err error) {
				all, err = c.Usage(cmd.Context(), q)
				return err
			})
			if err == nil && len(all) == 0 {
				err = a.foundNone(cmd.Context(), "there are no calls")
			}
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(all)
			case asCSV:
				return a.printUsageCSV(all)
			}
			return a.printUsage(all)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.User, "user", "", "only this user")
	flags.StringVar(&since, "since", "", "only calls that ended since this time: RFC 3339, or an age such as 24h")
	flags.StringVar(&until, "until", "", "only calls that ended before this time")
	flags.BoolVar(&asCSV, "csv", false, "print CSV")
	a.completeFlag(cmd, "user", userNames)
	return cmd
}

func (a *app) printUsage(all []journal.Usage) error {
	if len(all) == 0 {
		_, err := fmt.Fprint(a.stdout, "no calls\n")
		return err
	}
	table := newTable(a.stdout)
	fmt.Fprint(table, "USER\tTOOL\tCALLS\tERRORS\tREJECTED\tTIME\tRESULTS\n")
	var sum journal.Usage
	row := func(user, name string, u journal.Usage) {
		took := time.Duration(u.Milliseconds * float64(time.Millisecond)).Round(time.Millisecond)
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%v\t%v\n", user, name, u.Calls, u.Errors, u.Rejected, took, tool.ByteSize(u.Bytes))
	}
	for _, u := range all {
		row(orDash(line(u.User)), orDash(line(u.Tool)), u)
		sum.Calls += u.Calls
		sum.Errors += u.Errors
		sum.Rejected += u.Rejected
		sum.Milliseconds += u.Milliseconds
		sum.Bytes += u.Bytes
	}
	row("all", "-", sum)
	return table.Flush()
}

// printUsageCSV prints the columns of the JSON.
func (a *app) printUsageCSV(all []journal.Usage) error {
	w := csv.NewWriter(a.stdout)
	rows := [][]string{{"user", "plugin", "tool", "calls", "errors", "rejected", "duration_ms", "bytes"}}
	for _, u := range all {
		rows = append(rows, []string{
			tool.Visible(u.User), u.Plugin, u.Tool, fmt.Sprint(u.Calls), fmt.Sprint(u.Errors), fmt.Sprint(u.Rejected),
			strconv.FormatFloat(u.Milliseconds, 'f', -1, 64), fmt.Sprint(u.Bytes),
		})
	}
	return w.WriteAll(rows)
}
