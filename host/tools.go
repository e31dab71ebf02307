package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/catalog"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/sdk/tool"
)

// toolView is a tool as `toolhost tools --json` prints it.
type toolView struct {
	Name         string          `json:"name"`
	Plugin       string          `json:"plugin"`
	Tier         tool.Tier       `json:"tier"`
	TierWhen     []tool.TierRule `json:"tier_when,omitempty"`
	Title        string          `json:"title,omitempty"`
	Category     string          `json:"category,omitempty"`
	Description  string          `json:"description"`
	Aliases      []string        `json:"aliases,omitempty"`
	Idempotent   bool            `json:"idempotent"`
	OpenWorld    bool            `json:"open_world"`
	Destructive  bool            `json:"destructive"`
	Timeout      string          `json:"timeout"`
	MaxOutput    string          `json:"max_output"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

func (a *app) toolsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tools [NAME]",
		Short: "List the tools that can be called, or show one",
		Example: `  toolhost tools
  toolhost tools read_file`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTools(cmd.Context(), func(d *daemon.Daemon) error {
				if len(args) == 1 {
					return a.showTool(d, args[0])
				}
				return a.listTools(d)
			})
		},
	}
}

func (a *app) listTools(d *daemon.Daemon) error {
	entries := d.Tools()
	if a.json {
		views := make([]toolView, 0, len(entries))
		for _, e := range entries {
			views = append(views, viewTool(e))
		}
		return a.printJSON(views)
	}
	a.printProblems(d)
	if len(entries) == 0 {
		fmt.Fprint(a.stdout, "no tools; toolhost plugins list says why\n")
		return nil
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "NAME\tPLUGIN\tTIER\tDESCRIPTION\n")
	for _, e := range entries {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", e.Spec.Name, e.Plugin, e.Tier, head(firstSentence(e.Spec.Description), 100))
	}
	return table.Flush()
}

func (a *app) showTool(d *daemon.Daemon, name string) error {
	e, lookupErr := d.Tool(name)
	if lookupErr != nil {
		a.printProblems(d)
		return lookupErr
	}
	view := viewTool(e)
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

func viewTool(e *catalog.Entry) toolView {
	return toolView{
		Name: e.Spec.Name, Plugin: e.Plugin, Tier: e.Tier, TierWhen: e.Spec.TierWhen,
		Title: e.Spec.Title, Category: e.Spec.Category, Description: e.Spec.Description, Aliases: e.Aliases,
		Idempotent: e.Spec.Idempotent, OpenWorld: e.Spec.OpenWorld, Destructive: e.Spec.Destructive,
		Timeout: e.Timeout.String(), MaxOutput: e.MaxOutput.String(),
		InputSchema: e.Schema.Public(), OutputSchema: e.Output.Public(),
	}
}

// firstSentence is what fits into a table of a description.
func firstSentence(text string) string {
	text = line(text)
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i]
	}
	return strings.TrimSuffix(text, ".")
}
