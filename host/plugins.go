package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
)

func (a *app) pluginsCommand() *cobra.Command {
	list := &cobra.Command{
		Use:   "list",
		Short: "List plugins with their state, limits and refused tools",
		Long: `List plugins with their state, limits and refused tools. Without a running host, the
command starts each plugin.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plugins, err := a.findPlugins(cmd.Context())
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(plugins)
			}
			return a.printPlugins(plugins)
		},
	}
	restart := &cobra.Command{
		Use:               "restart NAME",
		Short:             "Restart a plugin and reset its crash count",
		Example:           `  toolhost plugins restart NAME`,
		Args:              a.oneArgument("the NAME of a plugin", "plugins list"),
		ValidArgsFunction: a.complete(pluginNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asRunning(cmd.Context(), func(c *client.Client) error {
				p, err := c.RestartPlugin(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(p)
				}
				return a.printPlugins([]httpapi.Plugin{p})
			})
		},
	}
	return group("plugins", "List, inspect and restart plugins, and accept their tools", list, a.inspectCommand(), restart, a.diffCommand(), a.acceptCommand())
}

// findPlugins returns the plugins of the running host. Without a host, it starts each plugin
// and returns its state.
func (a *app) findPlugins(ctx context.Context) (plugins []httpapi.Plugin, err error) {
	stateDir, runs, err := a.running(ctx)
	if err != nil {
		return nil, err
	}
	if runs {
		err = a.asApprover(ctx, func(c *client.Client) error {
			if plugins, err = c.Plugins(ctx); err != nil {
				return err
			}
			health, err := c.Readiness(ctx)
			for _, problem := range health.Problems {
				fmt.Fprintf(a.stderr, "toolhost: %s\n", line(problem))
			}
			return err
		})
		return plugins, err
	}
	a.tellOthers(stateDir)
	cfg, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	return a.tryPlugins(ctx, cfg)
}

// printPlugins prints a table, and below it first the plugins' problems and then their limits.
func (a *app) printPlugins(views []httpapi.Plugin) error {
	if len(views) == 0 {
		fmt.Fprint(a.stdout, "no plugins; a plugin block in the configuration enables one\n")
		return nil
	}
	table := newTable(a.stdout)
	fmt.Fprint(table, "NAME\tVERSION\tPHASE\tTOOLS\n")
	for _, v := range views {
		phase := v.Phase.String()
		if slices.ContainsFunc(v.Stops, func(s killswitch.Stop) bool { return s.User == "" }) {
			phase = "stopped by an admin"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\n", v.Name, orDash(line(v.Version)), phase, len(v.Tools))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	a.printStopsOf(views)
	for _, v := range views { // before what is long and as usual
		a.printTrouble(v, false)
	}
	for _, v := range views {
		if v.Sandbox != nil {
			fmt.Fprintf(a.stdout, "\n%s: limits: %s\n%s: sandbox: %s\n", v.Name, v.Limits, v.Name, line(v.Sandbox.String()))
		}
		if v.Scope != supervisor.Shared {
			fmt.Fprintf(a.stdout, "%s: processes: %s\n", v.Name, countInstances(v.State))
		}
	}
	return a.printOwners(views)
}

// printStopsOf prints the stops that cover calls to plugins, each once.
func (a *app) printStopsOf(views []httpapi.Plugin) {
	printed := map[string]bool{}
	for _, v := range views {
		for _, stop := range v.Stops {
			if !printed[stop.ID] {
				fmt.Fprintf(a.stdout, "\nstopped: %s\n    to resume: %s\n", line(stop.String()), a.resumeOf(stop.Scope))
			}
			printed[stop.ID] = true
		}
	}
}

// printTrouble prints the problems of a plugin, its refused tools, and its last change. Unless whole
// is set, a problem that is over takes a line.
func (a *app) printTrouble(v httpapi.Plugin, whole bool) {
	why := problem(v.State)
	if !whole && v.Phase == supervisor.Ready { // it is over
		why, _, _ = strings.Cut(why, "\n")
	}
	if why != "" {
		fmt.Fprintf(a.stdout, "\n%s\n", why)
	}
	if !v.RetryAt.IsZero() {
		fmt.Fprintf(a.stdout, "\n%s is started again at the first call after %s, or by: %s\n",
			v.Name, v.RetryAt.Format(time.RFC3339), a.command("plugins restart "+v.Name))
	}
	a.printPending(v)
	for _, r := range v.RefusedTools {
		if r.Unavailable || r.Pending { // not trouble: inspect shows it; and told above
			continue
		}
		if r.Gone {
			fmt.Fprintf(a.stdout, "\n%s: tool %s is gone: %s\n", v.Name, line(r.Name), line(r.Reason))
			continue
		}
		fmt.Fprintf(a.stdout, "\n%s: tool %s is refused: %s\n", v.Name, line(r.Name), line(r.Reason))
	}
	for _, b := range v.BrokenClaims {
		fmt.Fprintf(a.stdout, "\n%s: tool %s claims to be read_only and may have tried to change something %d times, last at %s (%s)\n",
			v.Name, line(b.Tool), b.Count, b.Last.Local().Format(time.DateTime), line(b.Sign))
	}
	if v.Changed != nil {
		fmt.Fprintf(a.stdout, "\n%s: changed since %s:\n", v.Name, v.Changed.Since.Local().Format(time.DateTime))
		for _, change := range v.Changed.Changes {
			fmt.Fprintf(a.stdout, "    %s\n", line(change))
		}
	}
}

// problem describes what is wrong with a plugin, or returns "".
func problem(s supervisor.State) string {
	crash := s.LastCrash
	switch {
	case s.Refused != "":
		return fmt.Sprintf("%s is refused: %s", s.Name, paragraph(s.Refused))
	case crash == nil, crash.During != "" && s.Phase == supervisor.Ready: // it has started since
		return ""
	case crash.During == supervisor.BeforeStart:
		return fmt.Sprintf("%s %s (%s)", s.Name, crash.Cause, line(crash.Detail))
	case crash.During != "":
		return fmt.Sprintf("%s did not start: it %s during %s (%s)%s", s.Name, crash.Cause, crash.During, line(crash.Detail), lastLines(crash.Stderr))
	case s.Phase == supervisor.Ready:
		return fmt.Sprintf("%s crashed at %s and was started again: it %s (%s)%s", s.Name, crash.Time.Local().Format(time.DateTime), crash.Cause, line(crash.Detail), lastLines(crash.Stderr))
	default:
		return fmt.Sprintf("%s crashed: it %s (%s)%s", s.Name, crash.Cause, line(crash.Detail), lastLines(crash.Stderr))
	}
}

// lastLines returns the last lines of a program's standard error, indented. It returns "" if
// there is only the line that the detail already shows.
func lastLines(stderr string) string {
	const most = 20
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if len(lines) < 2 {
		return ""
	}
	return "\n    " + paragraph(strings.Join(lines[max(0, len(lines)-most):], "\n"))
}

// problemLine describes in one line what is wrong with a plugin, or returns "".
func problemLine(s supervisor.State) string {
	why := problem(s)
	if why == "" {
		return ""
	}
	first, _, _ := strings.Cut(why, "\n")
	return "plugin " + first
}

// brokenPlugins describes the plugins that do not run, in a line for each. It returns none if the
// client may not know.
func brokenPlugins(ctx context.Context, c *client.Client) (lines []string) {
	plugins, err := c.Plugins(ctx)
	if err != nil { // not worth an error
		return nil
	}
	for _, p := range plugins {
		if why := problemLine(p.State); why != "" && p.Phase != supervisor.Ready {
			lines = append(lines, why)
		}
	}
	return lines
}

// printProblems prints the plugins that do not run, in case a person misses a tool.
func (a *app) printProblems(ctx context.Context) {
	_ = a.asApprover(ctx, func(c *client.Client) error {
		for _, why := range brokenPlugins(ctx, c) {
			fmt.Fprintf(a.stderr, "toolhost: %s\n", why)
		}
		return nil
	})
}

func orDash(s string) string {
	if strings.TrimSpace(s) == "" {
		return "-"
	}
	return s
}

func (a *app) inspectCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect NAME",
		Short: "Show everything about a plugin",
		Long: `Show everything about a plugin: its program, its tools and their tiers, its limits,
the sandbox layers in force, the missing layers and how to get them, and its last
crash. Without a running host, the command starts the plugin.`,
		Example: `  toolhost plugins inspect NAME
  toolhost plugins inspect NAME --json`,
		Args:              a.oneArgument("the NAME of a plugin", "plugins list"),
		ValidArgsFunction: a.complete(pluginNames),
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

// findPlugin returns a plugin of the running host. Without a host, it starts the plugin and
// returns its state.
func (a *app) findPlugin(ctx context.Context, name string) (p httpapi.Plugin, err error) {
	_, runs, err := a.running(ctx)
	if err != nil {
		return httpapi.Plugin{}, err
	}
	if runs {
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
	table := newTable(a.stdout)
	row := func(name, value string) { fmt.Fprintf(table, "%s:\t%s\n", name, value) }
	row("Plugin", p.Name)
	row("Phase", fmt.Sprintf("%s, since %s", p.Phase, p.Since.UTC().Format(time.RFC3339)))
	if p.PID != 0 {
		row("Process", fmt.Sprintf("%d, with %d calls in progress", p.PID, p.Calls))
	}
	if p.Scope != supervisor.Shared {
		row("Processes", countInstances(p.State))
	}
	row("Version", orDash(line(p.Version)))
	row("SHA-256", orDash(p.Digest))
	row("Limits", p.Limits.String())
	row("Isolation", p.Isolation.String())
	if p.Sandbox == nil && p.Refused != "" {
		row("In force", "nothing: the plugin is refused; what a start would give: "+a.command("doctor"))
	}
	if p.Sandbox != nil {
		row("In force", strings.Join(p.Sandbox.Layers, ", "))
		for _, text := range gapLines(*p.Sandbox) {
			row("Missing", text)
		}
	}
	if p.SplitTiers {
		row("Split tiers", "read_only calls run in a process that can change nothing (reader)")
	}
	if p.ReaderSandbox != nil {
		row("Reader", strings.Join(p.ReaderSandbox.Layers, ", "))
	}
	for _, stop := range p.Stops {
		row("Stopped", line(stop.String())+"; to resume: "+a.resumeOf(stop.Scope))
	}
	row("Crashes", fmt.Sprint(p.Crashes))
	if err := table.Flush(); err != nil {
		return err
	}
	if len(p.Instances) > 0 {
		fmt.Fprintln(a.stdout)
		if err := a.printInstances(p.Instances); err != nil {
			return err
		}
	}
	if len(p.Tools) > 0 {
		fmt.Fprintln(a.stdout)
		if err := a.printPluginTools(p.Tools); err != nil {
			return err
		}
	}
	if settings := schema.Describe(p.SettingsSchema); len(settings) > 0 {
		if err := a.printProperties("Settings (config block)", settings); err != nil {
			return err
		}
	}
	a.printTrouble(p, true)
	for _, r := range p.RefusedTools {
		if r.Unavailable {
			fmt.Fprintf(a.stdout, "\n%s: tool %s is not available: %s\n", p.Name, line(r.Name), line(r.Reason))
		}
	}
	return nil
}

func (a *app) printPluginTools(tools []httpapi.PluginTool) error {
	table := newTable(a.stdout)
	fmt.Fprint(table, "TOOL\tTIER\tROLES OF ARGUMENTS\n")
	for _, t := range tools {
		tier := t.Tier.String()
		if t.HighestTier != 0 {
			tier += ", by its arguments up to " + t.HighestTier.String()
		}
		var roles []string
		for _, role := range slices.Sorted(maps.Keys(t.Roles)) {
			roles = append(roles, string(role)+": "+line(strings.Join(t.Roles[role], ", ")))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", t.Name, tier, orDash(strings.Join(roles, "; ")))
	}
	return table.Flush()
}

// gapLines returns the missing layers with reasons and remedies, each once.
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
			text += "; remedy: " + line(first.Remedy)
		}
		lines = append(lines, text)
	}
	return lines
}
