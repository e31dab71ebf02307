package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// validator checks one configuration.
type validator struct {
	validation

	app   *app
	which toStart
	// trial is nil until a plugin is started.
	trial *daemon.Trial
}

// begin returns the trial. Unless asked, it leaves the state directory alone: a host may start
// meanwhile, or run as another account.
func (v *validator) begin(stateDir string) (_ *daemon.Trial, err error) {
	if v.trial == nil {
		v.trial, err = daemon.NewTrial(stateDir, v.which == startAll)
	}
	return v.trial, err
}

func (v *validator) close() error {
	if v.trial == nil {
		return nil
	}
	return v.trial.Close()
}

// schema returns the schema of a plugin's settings, and whether it is known.
func (v *validator) schema(ctx context.Context, stateDir string, p supervisor.Plugin) ([]byte, bool) {
	schema, known := supervisor.KnownSchema(stateDir, p)
	if !known && v.which != startNone {
		if trial, err := v.begin(stateDir); err == nil {
			schema, err = trial.Schema(ctx, stateDir, p)
			known = err == nil // the plugin's state explains an error later
		}
	}
	if !known {
		v.NotChecked = append(v.NotChecked, p.Name)
	}
	return schema, known
}

// check checks a configuration that loads.
func (v *validator) check(ctx context.Context, cfg *config.Config) (err error) {
	v.Files = cfg.Files
	v.Problems = append(v.Problems, checkBinaries(cfg)...)
	if len(v.Problems) == 0 {
		if err := v.start(ctx, cfg); err != nil {
			return err
		}
	}
	known := cfg
	if v.trial != nil {
		known = v.trial.Known(cfg)
	}
	check, err := daemon.CheckRules(known, version)
	if err != nil {
		return err
	}
	v.add(daemon.Mistakes(cfg, check))
	v.NotChecked = append(v.NotChecked, check.NotChecked...)
	v.Warnings, err = daemon.Warnings(known, version)
	v.Notes = daemon.Notes(cfg)
	if err != nil {
		return err
	}
	notes, err := v.app.lockNotes(known)
	v.Notes = append(v.Notes, notes...)
	return err
}

// add adds the mistakes of an error. Another error is a problem.
func (v *validator) add(err error) {
	if mistakes, ok := errors.AsType[*config.Error](err); ok {
		v.Mistakes = append(v.Mistakes, mistakes.Mistakes...)
	} else if err != nil {
		v.Problems = append(v.Problems, err.Error())
	}
}

// start starts plugins and reports those that do not start.
func (v *validator) start(ctx context.Context, cfg *config.Config) error {
	if v.which == startNone || v.which == startUnknown && !unknownPlugins(cfg) {
		return nil
	}
	log, logger, err := v.app.openLog(cfg)
	if err != nil {
		return err
	}
	defer log.Close()
	trial, err := v.begin(cfg.StateDir)
	if err != nil {
		return err
	}
	start, opts := trial.Learn, daemon.Options{Config: cfg, Version: version, Logger: logger}
	if v.which == startAll {
		start = trial.All
	}
	plugins, err := start(ctx, opts)
	v.add(err)
	var failed []config.Found
	for _, p := range plugins {
		i := slices.IndexFunc(cfg.Plugins, func(c config.Plugin) bool { return c.Supervisor.Name == p.Name })
		if why := problem(p.State); why != "" && i >= 0 {
			failed = append(failed, config.Found{Place: cfg.Plugins[i].Place, Word: p.Name, Summary: "Plugin that does not start", Detail: why})
		}
	}
	if len(failed) > 0 {
		v.add(cfg.Mistaken(failed))
	}
	if v.which == startAll {
		v.Plugins = plugins
	}
	return nil
}

// unknownPlugins reports whether the tools of a plugin are not known.
func unknownPlugins(cfg *config.Config) bool {
	return slices.ContainsFunc(cfg.Plugins, func(p config.Plugin) bool {
		_, known := supervisor.KnownTools(cfg.StateDir, p.Supervisor)
		return p.Enabled && !known
	})
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
