package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

func (a *app) toolsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tools [NAME]",
		Short: "List the available tools, or show one",
		Example: `  toolhost tools
  toolhost tools read_file`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asAgent(cmd.Context(), func(c *client.Client) error {
				if len(args) == 1 {
					return a.showTool(cmd.Context(), c, args[0])
				}
				return a.listTools(cmd.Context(), c)
			})
		},
	}
}

func (a *app) listTools(ctx context.Context, c *client.Client) error {
	tools, err := c.Tools(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(tools)
	}
	a.printProblems(ctx)
	table := newTable(a.stdout)
	fmt.Fprint(table, "NAME\tPLUGIN\tTIER\tDESCRIPTION\n")
	for _, t := range tools {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", t.Name, t.Plugin, t.Tier, head(excerpt.Sentence(line(t.Description)), 100))
	}
	if err := table.Flush(); err != nil || slices.ContainsFunc(tools, func(t httpapi.Tool) bool { return t.Plugin != catalog.HostPlugin }) {
		return err
	}
	fmt.Fprint(a.stdout, "no plugin offers a tool; toolhost plugins list says why\n")
	return nil
}

func (a *app) showTool(ctx context.Context, c *client.Client, name string) error {
	view, err := c.Tool(ctx, name)
	if err != nil {
		a.printProblems(ctx)
		return err
	}
	if a.json {
		return a.printJSON(view)
	}
	fmt.Fprintf(a.stdout, "%s (%s, of plugin %s, time-out %s, at most %s of text)\n\n", view.Name, view.Tier, view.Plugin, view.Timeout, view.MaxOutput)
	fmt.Fprintf(a.stdout, "%s\n\n", strings.TrimSpace(tool.Visible(view.Description)))
	if len(view.Aliases) > 0 {
		fmt.Fprintf(a.stdout, "Also called: %s\n\n", strings.Join(view.Aliases, ", "))
	}
	fmt.Fprint(a.stdout, "Arguments:\n")
	if err := a.printJSON(view.InputSchema); err != nil || view.OutputSchema == nil {
		return err
	}
	fmt.Fprint(a.stdout, "\nStructured result:\n")
	return a.printJSON(view.OutputSchema)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if a.json {
				return a.printJSON(map[string]string{"version": version, "go": runtime.Version(), "platform": platform})
			}
			fmt.Fprintf(a.stdout, "toolhost %s (%s, %s)\n", version, runtime.Version(), platform)
			return nil
		},
	}
}
