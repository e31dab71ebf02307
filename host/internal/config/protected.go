package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/sdk/tool"
)

// protected returns the paths that no tool may change, sorted: whatever makes
// the host do what it does. Each is told as it is spelled and as it is where
// symbolic links lead, for a call may name either.
func (d *decoder) protected(cfg *Config) ([]string, error) {
	paths := []string{cfg.StateDir}
	for _, name := range append(d.src.names(), d.read...) {
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, fmt.Errorf("configuration %s: %w", name, err)
		}
		paths = append(paths, path)
	}
	if d.src.isDir() { // a new file in it would be read too
		paths = append(paths, d.src.dir)
	}
	// Where no plugin_dir is given it is the directory of the configuration,
	// often the workspace itself; then only the programs count.
	if !within(cfg.PluginDir, cfg.Workspace) {
		paths = append(paths, cfg.PluginDir)
	}
	for _, p := range cfg.Plugins {
		paths = append(paths, p.Supervisor.Path)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program of this host, which no tool may change: %w", err)
	}
	paths = append(paths, self)

	return spellings(paths...), nil
}

// spellings returns paths as they are spelled and as they are where symbolic
// links lead, sorted.
func spellings(paths ...string) []string {
	var both []string
	for _, path := range paths {
		both = append(both, filepath.Clean(path), resolve(path))
	}
	slices.Sort(both)
	return slices.Compact(both)
}

// checkReach refuses a workspace in which nothing could be changed, if there is
// a plugin to change something.
func (d *decoder) checkReach(cfg *Config, workspace, pluginDir *hcl.Attribute) {
	writes := func(p Plugin) bool { return p.Enabled && p.Catalog.Ceiling > tool.ReadOnly }
	if cfg.Workspace == "" || !slices.ContainsFunc(cfg.Plugins, writes) {
		return
	}
	switch {
	case d.src.isDir() && within(d.src.dir, cfg.Workspace):
		d.mistake(workspace.Expr.Range(), "Workspace in the configuration",
			"The workspace (%s) is in the directory of the configuration (%s), in which no tool may change anything. "+
				"Name a single file with --config, or choose another workspace.", cfg.Workspace, d.src.dir)
	case !d.absent(pluginDir) && !d.is(pluginDir, "") && cfg.PluginDir != "" && within(cfg.PluginDir, cfg.Workspace):
		d.mistake(pluginDir.Expr.Range(), "Workspace in plugin_dir",
			"The workspace (%s) is in plugin_dir (%s), in which no tool may change anything. Choose a directory for the plugins alone.",
			cfg.Workspace, cfg.PluginDir)
	}
}
