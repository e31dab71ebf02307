package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/supervisor"
)

// pluginView is a plugin as `toolhost plugins list --json` prints it.
type pluginView struct {
	supervisor.State

	Tools        []string      `json:"tools"`
	RefusedTools []refusedTool `json:"refused_tools"`
}

type refusedTool struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

func (a *app) pluginsCommand() *cobra.Command {
	list := &cobra.Command{
		Use:   "list",
		Short: "Start every plugin and list its state, its limits and what was refused",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withDaemon(cmd.Context(), func(d *daemon.Daemon) error {
				d.StartPlugins(cmd.Context())
				return a.listPlugins(d)
			})
		},
	}
	plugins := &cobra.Command{Use: "plugins", Short: "See the plugins"}
	plugins.AddCommand(list)
	return plugins
}

func (a *app) listPlugins(d *daemon.Daemon) error {
	views := viewPlugins(d)
	if a.json {
		return a.printJSON(views)
	}
	return a.printPlugins(views)
}

// printPlugins prints a table, and below it what is wrong.
func (a *app) printPlugins(views []pluginView) error {
	if len(views) == 0 {
		fmt.Fprint(a.stdout, "no plugins; a plugin block in the configuration enables one\n")
		return nil
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "NAME\tVERSION\tSTATE\tTOOLS\tSANDBOX\n")
	for _, v := range views {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", v.Name, orDash(v.Version), v.Phase, len(v.Tools), orDash(v.Sandbox))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, v := range views {
		if why := problem(v.State); why != "" {
			fmt.Fprintf(a.stdout, "\n%s\n", why)
		}
		for _, r := range v.RefusedTools {
			fmt.Fprintf(a.stdout, "\n%s: tool %s is refused: %s\n", v.Name, r.Name, r.Reason)
		}
	}
	return nil
}

// problem says what is wrong with a plugin, or "".
func problem(s supervisor.State) string {
	switch {
	case s.Refused != "":
		return fmt.Sprintf("%s is refused: %s", s.Name, s.Refused)
	case s.LastCrash != nil && s.LastCrash.During != "":
		return fmt.Sprintf("%s did not start: it %s during %s (%s)", s.Name, s.LastCrash.Cause, s.LastCrash.During, s.LastCrash.Detail)
	case s.LastCrash != nil:
		return fmt.Sprintf("%s crashed: it %s (%s)", s.Name, s.LastCrash.Cause, s.LastCrash.Detail)
	}
	return ""
}

// printProblems says which plugins do not run, to somebody who misses a tool.
func (a *app) printProblems(d *daemon.Daemon) {
	for _, s := range d.Plugins() {
		if why := problem(s); why != "" {
			fmt.Fprintf(a.stderr, "toolhost: plugin %s\n", why)
		}
	}
}

func viewPlugins(d *daemon.Daemon) []pluginView {
	states := d.Plugins()
	views := make([]pluginView, 0, len(states))
	for _, s := range states {
		v := pluginView{State: s, Tools: []string{}, RefusedTools: []refusedTool{}}
		for _, e := range d.Tools() {
			if e.Plugin == s.Name {
				v.Tools = append(v.Tools, e.Spec.Name)
			}
		}
		for _, r := range d.Refused() {
			if r.Plugin == s.Name {
				v.RefusedTools = append(v.RefusedTools, refusedTool{r.Tool, r.Reason})
			}
		}
		views = append(views, v)
	}
	return views
}

func orDash(s string) string {
	if strings.TrimSpace(s) == "" {
		return "-"
	}
	return s
}
