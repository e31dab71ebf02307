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

// refusedTool is a tool that is not offered.
type refusedTool struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	// Unknown says that the configuration names it and the plugin has no such
	// tool.
	Unknown bool `json:"unknown"`
}

func (a *app) pluginsCommand() *cobra.Command {
	list := &cobra.Command{
		Use:   "list",
		Short: "Start every plugin and list its state, its limits and what was refused",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTools(cmd.Context(), func(d *daemon.Daemon) error {
				d.StartPlugins(cmd.Context())
				return a.listPlugins(d)
			})
		},
	}
	plugins := &cobra.Command{
		Use:   "plugins",
		Short: "See the plugins",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
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

// printPlugins prints a table, and below it what each may use and what is wrong
// with it.
func (a *app) printPlugins(views []pluginView) error {
	if len(views) == 0 {
		fmt.Fprint(a.stdout, "no plugins; a plugin block in the configuration enables one\n")
		return nil
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "NAME\tVERSION\tPHASE\tTOOLS\n")
	for _, v := range views {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\n", v.Name, orDash(line(v.Version)), v.Phase, len(v.Tools))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, v := range views {
		if v.Sandbox != "" {
			fmt.Fprintf(a.stdout, "\n%s: limits: %s\n%s: sandbox: %s\n", v.Name, v.Limits, v.Name, v.Sandbox)
		}
		if why := problem(v.State); why != "" {
			fmt.Fprintf(a.stdout, "\n%s\n", why)
		}
		for _, r := range v.RefusedTools {
			fmt.Fprintf(a.stdout, "\n%s: tool %s is refused: %s\n", v.Name, line(r.Name), line(r.Reason))
		}
	}
	return nil
}

// problem says what is wrong with a plugin, or "".
func problem(s supervisor.State) string {
	crash := s.LastCrash
	switch {
	case s.Refused != "":
		return fmt.Sprintf("%s is refused: %s", s.Name, paragraph(s.Refused))
	case crash == nil:
		return ""
	case crash.During != "":
		return fmt.Sprintf("%s did not start: it %s during %s (%s)%s", s.Name, crash.Cause, crash.During, line(crash.Detail), lastLines(crash.Stderr))
	default:
		return fmt.Sprintf("%s crashed: it %s (%s)%s", s.Name, crash.Cause, line(crash.Detail), lastLines(crash.Stderr))
	}
}

// lastLines is what a program said last, indented below the line that it
// explains, if that is more than the line in the detail.
func lastLines(stderr string) string {
	const most = 20
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if len(lines) < 2 {
		return ""
	}
	return "\n    " + paragraph(strings.Join(lines[max(0, len(lines)-most):], "\n"))
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
				v.RefusedTools = append(v.RefusedTools, refusedTool{r.Tool, r.Reason, r.Unknown})
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
