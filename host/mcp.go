package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/client"
	"github.com/toolhost/toolhost/host/internal/daemon"
)

func (a *app) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve the tools to an MCP client on standard input and output",
		Long: `Serve the tools to an MCP client on standard input and output, one JSON-RPC
message a line. An MCP client starts this command itself; all revisions of the
protocol are spoken. If a host runs with the same configuration, the client is
connected to that one. Logs go to standard error.`,
		Example: `  toolhost mcp --config /etc/toolhost/`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.logLevel = cmp.Or(a.logLevel, "warn") // nobody but the log tells what happens between calls
			if isTerminal(a.stdin) {
				fmt.Fprint(a.stderr, "toolhost: waiting for an MCP client on standard input; to try a tool by hand: toolhost call --help\n")
			}
			return a.serveMCP(cmd.Context())
		},
	}
}

// serveMCP connects the client to the host that holds the state directory, or
// becomes that host.
func (a *app) serveMCP(ctx context.Context) error {
	stateDir, err := a.stateDir()
	if err != nil {
		return err
	}
	return a.takeTurns(ctx, stateDir, func() error { return a.relayMCP(ctx, stateDir) }, func(d *daemon.Daemon) error {
		if err := d.ServeControl(ctx); err != nil {
			return err
		}
		return d.ServeMCP(ctx, a.stdin, a.stdout)
	})
}

func (a *app) relayMCP(ctx context.Context, stateDir string) error {
	c, err := client.New(client.Options{StateDir: stateDir})
	if err != nil {
		return err
	}
	defer c.Close()
	return c.RelayMCP(ctx, a.stdin, a.stdout)
}
