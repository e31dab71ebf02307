package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

func (a *app) inspectCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect NAME",
		Short: "Show everything about a plugin",
		Long: `Show everything about a plugin: its program, its tools and their tiers, its limits,
the sandbox layers in force, the missing layers and how to get them, and its last
crash. Without a running host, the command starts the plugin.`,
		Example: `  toolhost plugins inspect NAME
  toolhost plugins inspect NAME --json`,
		Args: oneArgument("the NAME of a plugin; toolhost plugins list shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.findPlugin(cmd.Context(), args[0])
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(p)
			}
			return a.printPlugin(p)
		},
	}
}

// findPlugin returns a plugin of the host that runs; without one, what becomes of
// it when it is started.
func (a *app) findPlugin(ctx context.Context, name string) (p httpapi.Plugin, err error) {
	stateDir, err := a.stateDir()
	if err != nil {
		return httpapi.Plugin{}, err
	}
	if answers(ctx, stateDir) {
		err = a.asApprover(ctx, func(c *client.Client) error {
			p, err = c.Plugin(ctx, name)
			return err
		})
		if problem, ok := errors.AsType[*httpapi.Problem](err); ok && problem.Status == http.StatusNotFound {
			err = a.noPlugin(name)
		}
		return p, err
	}
	cfg, err := a.loadConfig()
	if err != nil {
		return httpapi.Plugin{}, err
	}
	i := slices.IndexFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Supervisor.Name == name })
	switch {
	case i < 0:
		return httpapi.Plugin{}, a.noPlugin(name)
	case !cfg.Plugins[i].Enabled:
		return httpapi.Plugin{}, fmt.Errorf("plugin %q is not enabled (%s)", name, cfg.Plugins[i].Place)
	}
	for other := range cfg.Plugins {
		cfg.Plugins[other].Enabled = other == i
	}
	plugins, err := a.tryPlugins(ctx, cfg)
	if err != nil || len(plugins) == 0 {
		return httpapi.Plugin{}, err
	}
	return plugins[0], nil
}

func (a *app) noPlugin(name string) error {
	return &hintError{fmt.Errorf("there is no plugin %q", name), a.command("plugins list") + " shows them"}
}

func (a *app) printPlugin(p httpapi.Plugin) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	row := func(name, value string) { fmt.Fprintf(table, "%s:\t%s\n", name, value) }
	row("Plugin", p.Name)
	row("Phase", fmt.Sprintf("%s, since %s", p.Phase, p.Since.UTC().Format(time.RFC3339)))
	if p.PID != 0 {
		row("Process", fmt.Sprintf("%d, with %d calls in progress", p.PID, p.Calls))
	}
	row("Version", orDash(line(p.Version)))
	row("SHA-256", orDash(p.Digest))
	row("Limits", p.Limits.String())
	row("Isolation", p.Isolation.String())
	if p.Sandbox == nil && p.Refused != "" {
		row("In force", "nothing: the plugin is refused; toolhost doctor shows what a start would give")
	}
	if p.Sandbox != nil {
		row("In force", strings.Join(p.Sandbox.Layers, ", "))
		for _, text := range gapLines(*p.Sandbox) {
			row("Missing", text)
		}
	}
	row("Crashes", fmt.Sprint(p.Crashes))
	if err := table.Flush(); err != nil {
		return err
	}
	if len(p.Tools) > 0 {
		fmt.Fprintln(a.stdout)
		if err := a.printPluginTools(p.Tools); err != nil {
			return err
		}
	}
	a.printTrouble(p)
	return nil
}

func (a *app) printPluginTools(tools []httpapi.PluginTool) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "TOOL\tTIER\n")
	for _, t := range tools {
		tier := t.Tier.String()
		if t.HighestTier != 0 {
			tier += ", by its arguments up to " + t.HighestTier.String()
		}
		fmt.Fprintf(table, "%s\t%s\n", t.Name, tier)
	}
	return table.Flush()
}

// gapLines say which layers are missing, why, and how to have them; each reason
// and each remedy once.
func gapLines(r sandbox.Report) []string {
	var lines, told []string
	for i := 0; i < len(r.Missing); {
		first := r.Missing[i]
		var layers []string
		for ; i < len(r.Missing) && r.Missing[i].Reason == first.Reason && r.Missing[i].Required == first.Required; i++ {
			layers = append(layers, string(r.Missing[i].Layer))
		}
		text := strings.Join(layers, ", ")
		if first.Required {
			text += ", which the sandbox requires"
		}
		text += ": " + line(first.Reason)
		if first.Remedy != "" && !slices.Contains(told, first.Remedy) {
			told = append(told, first.Remedy)
			text += "; to have it: " + line(first.Remedy)
		}
		lines = append(lines, text)
	}
	return lines
}
