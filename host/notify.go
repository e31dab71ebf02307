package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/front/client"
)

func (a *app) notifyCommand() *cobra.Command {
	test := &cobra.Command{
		Use:   "test NAME",
		Short: "Deliver a test message",
		Long: `Deliver a test message of a notify block, in one attempt. The exit code is 1 if its
webhook or command does not take it.`,
		Example: `  toolhost notify test phone`,
		Args:    a.oneArgument("the name of a notify block", ""),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.testNotifier(cmd.Context(), args[0]) },
	}
	return group("notify", "Try how people are told of waiting calls", test)
}

func (a *app) testNotifier(ctx context.Context, name string) error {
	return a.asApprover(ctx, func(c *client.Client) error {
		notified, err := c.TestNotifier(ctx, name)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(notified)
		}
		_, err = fmt.Fprintf(a.stdout, "delivered a test message of %s\n", line(notified.Name))
		return err
	})
}
