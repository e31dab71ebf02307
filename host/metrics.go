package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/state/metrics"
)

func (a *app) metricsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "metrics",
		Short: "Show how many calls of each tool ended, and how, since the host started",
		Long: `Show how many calls of each tool ended, and how, since the host started. AVERAGE is how
long the tool worked on a call, without the wait for a person. toolhost usage sums up the
journal instead: by user, and for any time.`,
		Example: `  toolhost metrics
  toolhost metrics --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := a.findMetrics(cmd.Context())
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(all)
			}
			return a.printMetrics(all)
		},
	}
}

// findMetrics asks the running host. Any other would have counted nothing.
func (a *app) findMetrics(ctx context.Context) (all []metrics.Tool, err error) {
	_, runs, err := a.running(ctx)
	if err != nil {
		return nil, err
	}
	if !runs {
		return nil, &hintError{errors.New("no host is running with this configuration, and only a running one counts"), a.command("usage") + " sums up the journal"}
	}
	err = a.asApprover(ctx, func(c *client.Client) (err error) {
		all, err = c.Metrics(ctx)
		return err
	})
	return all, err
}

func (a *app) printMetrics(all []metrics.Tool) error {
	if len(all) == 0 {
		_, err := fmt.Fprint(a.stdout, "no calls since the host started\n")
		return err
	}
	table := newTable(a.stdout)
	fmt.Fprint(table, "PLUGIN\tTOOL\tCALLS\tSUCCESS\tERRORS\tREJECTED\tAVERAGE\n")
	for _, t := range all {
		average := "-"
		if t.AverageMS > 0 {
			average = time.Duration(t.AverageMS * float64(time.Millisecond)).Round(10 * time.Microsecond).String()
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%s\n", orDash(line(t.Plugin)), line(t.Name), t.TotalCalls, t.SuccessCount, t.ErrorCount, t.RejectedCount, average)
	}
	return table.Flush()
}
