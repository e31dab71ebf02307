package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/daemon"
)

func (a *app) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve the tools to an MCP client on standard input and output",
		Long: `Serve the tools to an MCP client on standard input and output, one JSON-RPC
message a line. An MCP client starts this command itself; all revisions of the
protocol are spoken. Logs go to standard error.`,
		Example: `  toolhost mcp --config /etc/toolhost/`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.logLevel = cmp.Or(a.logLevel, "warn") // nobody but the log tells what happens between calls
			return a.withDaemon(func(d *daemon.Daemon) error {
				if isTerminal(a.stdin) {
					fmt.Fprint(a.stderr, "toolhost: waiting for an MCP client on standard input; to try a tool by hand: toolhost call --help\n")
				}
				return d.ServeMCP(cmd.Context(), a.stdin, a.stdout)
			})
		},
	}
}
