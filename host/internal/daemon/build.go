package daemon

import (
	"fmt"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/catalog"
	"github.com/toolhost/toolhost/host/internal/mcpserver"
	"github.com/toolhost/toolhost/host/internal/pipeline"
	"github.com/toolhost/toolhost/host/internal/sandbox"
	"github.com/toolhost/toolhost/host/internal/supervisor"
	"github.com/toolhost/toolhost/sdk/tool"
)

// build makes the parts, each from those below it. What it has made when it
// fails, stop takes down.
func (d *Daemon) build(opts Options) (err error) {
	cfg := opts.Config
	d.user = auth.LocalUser(cfg.LocalUser)
	if d.launcher, err = sandbox.NewLauncher(); err != nil {
		return fmt.Errorf("set up the launcher: %w", err)
	}
	var toRun []supervisor.Plugin
	var toList []catalog.Plugin
	for _, p := range cfg.Plugins {
		if !p.Enabled {
			continue
		}
		toRun = append(toRun, p.Supervisor)
		toList = append(toList, p.Catalog)
	}
	// Calls with effects need approvals, which this version does not have.
	if d.catalog, err = catalog.New(catalog.Options{Plugins: toList, Offered: tool.ReadOnly}); err != nil {
		return fmt.Errorf("set up the catalog: %w", err)
	}
	d.supervisor, err = supervisor.New(supervisor.Options{
		Plugins:   toRun,
		Launcher:  d.launcher,
		StateDir:  cfg.StateDir,
		Workspace: cfg.Workspace,
		Version:   opts.Version,
		Logger:    opts.Logger,
		Redact:    cfg.Hide,
		Publish: func(plugin, digest string, tools []tool.Spec) {
			if err := d.catalog.Publish(plugin, digest, tools); err != nil {
				opts.Logger.Error("tools are not listed", "error", err)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("set up the plugins: %w", err)
	}
	d.pipeline, err = pipeline.New(pipeline.Options{
		Catalog: d.catalog, Runner: d.supervisor, Logger: opts.Logger, Roots: []string{cfg.Workspace},
	})
	if err != nil {
		return fmt.Errorf("set up the pipeline: %w", err)
	}
	d.mcp = mcpserver.New(mcpserver.Options{
		Catalog: d.catalog, Pipeline: d.pipeline, Ready: d.ready,
		User: d.user, Version: opts.Version, Logger: opts.Logger.Named("mcp"),
	})
	return nil
}
