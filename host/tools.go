package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

func (a *app) toolsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tools [NAME]",
		Short: "List the available tools, or show one",
		Example: `  toolhost tools
  toolhost tools read_file`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.complete(toolNames),
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
	fmt.Fprintf(a.stdout, "no plugin offers a tool; to see why: %s\n", a.command("plugins list"))
	return nil
}

func (a *app) showTool(ctx context.Context, c *client.Client, name string) error {
	view, err := c.Tool(ctx, name)
	if err != nil {
		a.printProblems(ctx)
		if missing, ok := errors.AsType[*httpapi.Problem](err); ok && missing.Status == http.StatusNotFound && !strings.HasPrefix(missing.Hint, "did you mean") {
			return &hintError{errors.New(missing.Detail), a.command("tools") + " lists them"}
		}
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
	for _, usual := range view.Approval {
		text := fmt.Sprintf("%s, by %s", usual.Verdict, line(usual.Rule))
		if usual.Where != "" {
			text += " at " + line(usual.Where)
		}
		fmt.Fprintf(a.stdout, "Calls that are %s: %s\n", usual.Tier, text)
	}
	if len(view.Rules) > 0 {
		fmt.Fprintf(a.stdout, "Rules that may decide otherwise: %s\n", line(strings.Join(view.Rules, ", ")))
	}
	fmt.Fprintf(a.stdout, "What happens to one call: %s\n", a.command("explain "+view.Name+" KEY=VALUE..."))
	if err := a.printProperties("Arguments", view.Arguments); err != nil || len(view.Result) == 0 {
		return err
	}
	return a.printProperties("Structured result", view.Result)
}

// printProperties prints a table of arguments, settings or fields, without columns that are empty.
func (a *app) printProperties(title string, properties []schema.Property) error {
	if len(properties) == 0 {
		_, err := fmt.Fprintf(a.stdout, "\n%s: none\n", title)
		return err
	}
	fmt.Fprintf(a.stdout, "\n%s:\n", title)
	columns := []struct {
		name string
		of   func(schema.Property) string
	}{
		{"NAME", func(p schema.Property) string {
			if p.Required {
				return p.Name + " (required)"
			}
			return p.Name
		}},
		{"TYPE", func(p schema.Property) string { return p.Type }},
		{"DEFAULT", func(p schema.Property) string { return string(p.Default) }},
		{"ROLE", func(p schema.Property) string {
			var roles []string
			for _, role := range p.Roles {
				roles = append(roles, string(role))
			}
			return strings.Join(roles, ", ")
		}},
		{"ALSO CALLED", func(p schema.Property) string { return strings.Join(p.Aliases, ", ") }},
		{"DESCRIPTION", func(p schema.Property) string { return p.Description }},
	}
	table := newTable(a.stdout)
	rows := make([][]string, len(properties)+1)
	for _, column := range columns {
		if !slices.ContainsFunc(properties, func(p schema.Property) bool { return column.of(p) != "" }) {
			continue
		}
		rows[0] = append(rows[0], column.name)
		for i, p := range properties {
			rows[i+1] = append(rows[i+1], orDash(head(line(column.of(p)), 200)))
		}
	}
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
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
