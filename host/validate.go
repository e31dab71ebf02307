package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// validation is what `toolhost validate --json` prints.
type validation struct {
	Valid    bool             `json:"valid"`
	Files    []string         `json:"files,omitempty"`
	Mistakes []config.Mistake `json:"mistakes"`
	// NotChecked lists plugins whose settings could not be checked, and rules and tests about
	// their tools, because the plugins were never started.
	NotChecked []string `json:"not_checked"`
	// Problems are mistakes outside the files: in a program, or in settings that only the
	// plugin can check.
	Problems []string `json:"problems"`
	// Warnings are settings that are valid but probably not intended.
	Warnings []string `json:"warnings,omitempty"`
	// Notes are limits of what the configuration enforces.
	Notes []string `json:"notes,omitempty"`
	// Plugins are the states of the plugins with --start.
	Plugins []httpapi.Plugin `json:"plugins,omitempty"`
}

// toStart is which plugins validate starts.
type toStart int

const (
	startUnknown toStart = iota // those that were never started with these settings
	startNone
	startAll
)

func (a *app) validateCommand() *cobra.Command {
	all, none := false, false
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration and report every mistake with its line",
		Long: `Check the configuration and report every mistake with its line. To check settings
and names of tools, the command starts plugins that were never started with these
settings, but none of a configuration that it finds in the working directory: that
may be a stranger's. --start starts every plugin and shows its tools; --no-start
starts none, and reports what it could not check.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			which := startUnknown
			switch {
			case all:
				which = startAll
			case none:
				which = startNone
			}
			return a.validate(cmd.Context(), which)
		},
	}
	cmd.Flags().BoolVar(&all, "start", false, "start every plugin and check that it works with its settings")
	cmd.Flags().BoolVar(&none, "no-start", false, "start no plugin, and check what is known from earlier starts")
	cmd.MarkFlagsMutuallyExclusive("start", "no-start")
	return cmd
}

func (a *app) validate(ctx context.Context, which toStart) (err error) {
	path, err := a.findConfig()
	if err != nil {
		return err
	}
	if which == startUnknown && a.foundHere(path) {
		which = startNone
	}
	v := &validator{app: a, which: which, validation: validation{Mistakes: []config.Mistake{}, NotChecked: []string{}, Problems: []string{}}}
	defer func() { err = errors.Join(err, v.close()) }()
	cfg, err := config.Load(path, config.LoadOptions{SettingsSchema: func(stateDir string, p supervisor.Plugin) (schema []byte, known bool) {
		return v.schema(ctx, stateDir, p)
	}})
	if mistakes, ok := errors.AsType[*config.Error](err); ok && a.json {
		v.Mistakes = mistakes.Mistakes
		return errors.Join(a.printJSON(v.validation), errReported)
	}
	if err != nil {
		return err
	}
	if err := v.check(ctx, cfg); err != nil {
		return err
	}
	return a.printValidation(v.validation)
}

// printValidation prints the result for a configuration without mistakes.
func (a *app) printValidation(result validation) error {
	result.Valid = len(result.Problems)+len(result.Mistakes) == 0
	for _, v := range result.Plugins {
		result.Valid = result.Valid && works(v.State) && !slices.ContainsFunc(v.RefusedTools, isMistake)
	}
	if err := a.printValid(result); err != nil {
		return err
	}
	if !result.Valid {
		return errReported
	}
	return nil
}

// works reports whether a plugin that was started works. If users or sessions have processes of
// their own, the process that described the plugin has ended.
func works(s supervisor.State) bool {
	return s.Phase == supervisor.Ready || s.Scope != supervisor.Shared && s.Phase != supervisor.Broken && s.LastCrash == nil
}

// isMistake reports whether a refused tool is a mistake in the configuration.
func isMistake(r httpapi.RefusedTool) bool { return r.Unknown }

// printCatalog prints the plugins' tools with their tiers in this configuration.
func (a *app) printCatalog(plugins []httpapi.Plugin) error {
	var all []httpapi.PluginTool
	for _, p := range plugins {
		all = append(all, p.Tools...)
	}
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(a.stdout)
	return a.printPluginTools(all)
}

// printWarnings prints warnings about a configuration.
func printWarnings(w io.Writer, warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintf(w, "warning: %s\n", paragraph(warning))
	}
}

func (a *app) printValid(result validation) error {
	if a.json {
		return a.printJSON(result)
	}
	files := strings.Join(result.Files, ", ")
	printWarnings(a.stderr, result.Warnings)
	for _, note := range result.Notes {
		fmt.Fprintf(a.stderr, "note: %s\n", paragraph(note))
	}
	for _, problem := range result.Problems {
		fmt.Fprintf(a.stderr, "toolhost: %s\n", paragraph(problem))
	}
	if len(result.Mistakes) > 0 {
		if err := (&config.Error{Mistakes: result.Mistakes}).WriteText(a.stderr, isTerminal(a.stderr)); err != nil {
			return err
		}
	}
	switch {
	case !result.Valid && len(result.Plugins) == 0:
		return nil
	case !result.Valid:
		fmt.Fprintf(a.stdout, "%s: not every plugin works with this configuration\n", files)
		return a.printPlugins(result.Plugins)
	}
	if len(result.NotChecked) > 0 && len(result.Plugins) == 0 {
		_, err := fmt.Fprintf(a.stdout, "%s: no mistakes in what could be checked\nnot checked: %s, because these plugins have never been started; %s starts them and checks the rest\n",
			files, line(strings.Join(result.NotChecked, ", ")), a.command("validate --start"))
		return err
	}
	fmt.Fprintf(a.stdout, "%s: no mistakes\n", files)
	if len(result.Plugins) > 0 {
		return errors.Join(a.printPlugins(result.Plugins), a.printCatalog(result.Plugins))
	}
	return nil
}
