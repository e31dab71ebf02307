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
	"github.com/toolhost/toolhost/host/internal/daemon"
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

func (a *app) validateCommand() *cobra.Command {
	start := false
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration and report every mistake with its line",
		Long: `Check the configuration and report every mistake with its line. The settings of a
plugin are checked if it was started before; --start starts each plugin to check its
settings and that it runs.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.validate(cmd.Context(), start)
		},
	}
	cmd.Flags().BoolVar(&start, "start", false, "start every plugin and check that it works with its settings")
	return cmd
}

func (a *app) validate(ctx context.Context, start bool) error {
	path, err := a.findConfig()
	if err != nil {
		return err
	}
	result := validation{Mistakes: []config.Mistake{}, NotChecked: []string{}, Problems: []string{}}
	cfg, err := config.Load(path, config.LoadOptions{SettingsSchema: func(stateDir string, p supervisor.Plugin) (schema []byte, known bool) {
		if start {
			var startErr error
			schema, startErr = daemon.LearnSchema(ctx, stateDir, p)
			known = startErr == nil // the plugin's state below explains an error
		} else {
			schema, known = supervisor.KnownSchema(stateDir, p)
		}
		if !known {
			result.NotChecked = append(result.NotChecked, p.Name)
		}
		return schema, known
	}})
	if mistakes, ok := errors.AsType[*config.Error](err); ok && a.json {
		result.Mistakes = mistakes.Mistakes
		return errors.Join(a.printJSON(result), errReported)
	}
	if err != nil {
		return err
	}
	result.Files = cfg.Files
	result.Problems = append(result.Problems, checkBinaries(cfg)...)
	if start && len(result.Problems) == 0 {
		if result.Plugins, err = a.tryPlugins(ctx, cfg); err != nil {
			result.Problems = append(result.Problems, err.Error())
		}
	}
	if err := result.checkRules(cfg); err != nil { // with the tools of the plugins that were started
		return err
	}
	if result.Warnings, err = daemon.Warnings(cfg, version); err != nil {
		return err
	}
	result.Notes = daemon.Notes(cfg)
	return a.printValidation(result)
}

// checkRules checks the rules against the known tools, and runs their tests.
func (v *validation) checkRules(cfg *config.Config) error {
	check, err := daemon.CheckRules(cfg, version)
	if err != nil {
		return err
	}
	if mistakes, ok := errors.AsType[*config.Error](daemon.Mistakes(cfg, check)); ok {
		v.Mistakes = mistakes.Mistakes
	}
	v.NotChecked = append(v.NotChecked, check.NotChecked...)
	return nil
}

// checkBinaries checks the programs of the plugins without starting them.
func checkBinaries(cfg *config.Config) []string {
	var problems []string
	for _, p := range cfg.Plugins {
		if !p.Enabled {
			continue
		}
		if err := supervisor.CheckBinary(p.Supervisor); err != nil {
			problems = append(problems, fmt.Sprintf("%s: plugin %q: %v", p.Place, p.Supervisor.Name, err))
		}
	}
	return problems
}

// tryPlugins starts every plugin, independently of a running host, and returns their states.
func (a *app) tryPlugins(ctx context.Context, cfg *config.Config) ([]httpapi.Plugin, error) {
	log, logger, err := a.openLog(cfg)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return daemon.Try(ctx, daemon.Options{Config: cfg, Version: version, Logger: logger})
}

// printValidation prints the result for a configuration without mistakes.
func (a *app) printValidation(result validation) error {
	result.Valid = len(result.Problems)+len(result.Mistakes) == 0
	for _, v := range result.Plugins {
		result.Valid = result.Valid && v.Phase == supervisor.Ready && !slices.ContainsFunc(v.RefusedTools, isMistake)
	}
	if err := a.printValid(result); err != nil {
		return err
	}
	if !result.Valid {
		return errReported
	}
	return nil
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
		return (&config.Error{Mistakes: result.Mistakes}).WriteText(a.stderr, isTerminal(a.stderr))
	}
	if len(result.Problems) > 0 {
		return nil
	}
	if !result.Valid {
		fmt.Fprintf(a.stdout, "%s: the file has no mistakes, but not every plugin works with it\n", files)
		return a.printPlugins(result.Plugins)
	}
	if len(result.NotChecked) > 0 && len(result.Plugins) == 0 {
		_, err := fmt.Fprintf(a.stdout, "%s: no mistakes in what could be checked\nnot checked: %s, since plugins were never started; %s starts them and checks the rest\n",
			files, line(strings.Join(result.NotChecked, ", ")), a.command("validate --start"))
		return err
	}
	fmt.Fprintf(a.stdout, "%s: no mistakes\n", files)
	if len(result.Plugins) > 0 {
		return errors.Join(a.printPlugins(result.Plugins), a.printCatalog(result.Plugins))
	}
	return nil
}
