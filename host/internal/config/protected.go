package config

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/links"
	"github.com/toolhost/toolhost/sdk/tool"
)

// hostPaths are the host's own paths: its state, its configuration and the programs
// that it runs.
type hostPaths struct {
	workspace string
	stateDir  string
	key       string // of the TLS certificate; "" means none
	logins    string // see [LoginsDir]
	own       []ownPath
}

// ownPath is a path that no plugin and no call may change.
type ownPath struct {
	path string
	what string // for a person
}

// hostPaths returns the host's own paths of a configuration.
func (d *decoder) hostPaths(cfg *Config) hostPaths {
	h := hostPaths{workspace: cfg.Workspace.Top(), stateDir: cfg.StateDir, key: cfg.TLS.Key, logins: LoginsDir(d.opts.LookupEnv)}
	add := func(what string, paths ...string) {
		for _, path := range paths {
			if path != "" {
				h.own = append(h.own, ownPath{path: path, what: what})
			}
		}
	}
	if d.src.isDir() { // a new file in it would be read too
		add("the configuration", d.src.dir)
	}
	add("the configuration", d.src.paths()...)
	add("the lock file", d.src.lockPath())
	add("what the configuration reads with file() or registry()", d.read...)
	add("a program that prints a secret or a registry, or notifies people", d.programs()...)
	// Where no plugin_dir is given it is the directory of the configuration,
	// often the workspace itself; then only the programs count.
	if !within(cfg.PluginDir, cfg.Workspace.Top()) {
		add("plugin_dir", cfg.PluginDir)
	}
	for _, p := range cfg.Plugins {
		add(fmt.Sprintf("the program of plugin %q", p.Supervisor.Name), p.Supervisor.Path)
	}
	add("the program of this host", d.program)
	add("the TLS certificate of this host", cfg.TLS.Cert, cfg.TLS.Key)
	return h
}

// protected returns the paths that no call may change, except the state directory.
// Each is returned as written and with symbolic links resolved, since a call may
// name either.
func (h hostPaths) protected() []string {
	var paths []string
	for _, own := range h.own {
		paths = append(paths, own.path)
	}
	return spellings(paths...)
}

// privatePaths returns what belongs to the administrator and lies outside of the state directory,
// as written and with symbolic links resolved: the key of the TLS certificate, and the tokens
// for hosts on other machines, with which a tool could approve its own calls there. No call may
// name them.
func (d *decoder) privatePaths(cfg *Config) []string {
	var paths []string
	for _, path := range []string{cfg.TLS.Key, LoginsDir(d.opts.LookupEnv)} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return spellings(paths...)
}

// givenTo reports whether a sandbox gives a plugin a directory that a path is in. Programs with a
// network may read the system's certificates, which some systems keep beside keys.
func givenTo(c sandbox.Confinement, workspace, path string) bool {
	given := slices.Concat(c.Read, c.Write, c.Exec, []string{"/etc/ssl", "/etc/pki"})
	if c.Workspace != sandbox.NoWorkspace || slices.Contains(c.Exec, sandbox.ExecWorkspace) {
		given = append(given, workspace)
	}
	return slices.ContainsFunc(given, func(dir string) bool { return filepath.IsAbs(dir) && within(dir, path) })
}

// checkPaths reports paths that a sandbox cannot give to a plugin.
func (d *decoder) checkPaths(h hostPaths) {
	for _, p := range d.paths {
		if summary, detail := h.refusal(p.use, p.path); summary != "" {
			d.mistake(p.at, summary, "%s", detail)
		}
	}
}

// apartFrom reports whether a sandbox gives no path that it cannot give.
func (h hostPaths) apartFrom(c sandbox.Confinement) bool {
	for use, paths := range map[string][]string{useRead: c.Read, useWrite: c.Write, useExec: c.Exec} {
		for _, path := range paths {
			if !filepath.IsAbs(path) {
				continue // a word of exec
			}
			if summary, _ := h.refusal(use, path); summary != "" {
				return false
			}
		}
	}
	return true
}

// refusal returns why a path cannot be given to a plugin, or "".
func (h hostPaths) refusal(use, path string) (summary, detail string) {
	switch {
	case h.stateDir == "":
	case within(h.stateDir, path):
		return "Path in the state directory", fmt.Sprintf(
			"In the state directory (%s), a plugin reaches only its own directory, which it always has. Name another path.", h.stateDir)
	case within(path, h.stateDir):
		return "Path around the state directory", fmt.Sprintf(
			"It contains the state directory (%s), which no plugin may reach. Name the paths in it that the plugin needs, or set state_dir to another place.", h.stateDir)
	}
	if h.key != "" && within(path, h.key) {
		return "Path of the TLS key", fmt.Sprintf(
			"It is or contains the key of server.tls (%s), which no plugin may reach. Name the paths that the plugin needs, or keep the key elsewhere.", h.key)
	}
	if h.logins != "" && within(h.logins, path) {
		return "Path of the logins", fmt.Sprintf("It is in the directory of tokens for other hosts (%s), which no plugin may reach. Remove it.", h.logins)
	}
	if use != useWrite {
		return "", ""
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if within(dir, path) {
			return "Not a place to write", fmt.Sprintf(
				"Files in %s are the machine itself, not a place to store data. Name another path.", dir)
		}
	}
	for _, own := range h.own {
		in := within(own.path, path)
		// Host paths in the workspace are protected there.
		around := within(path, own.path) && !within(h.workspace, own.path)
		if !in && !around {
			continue
		}
		where := "this is in it"
		switch {
		case in && within(path, own.path):
			where = "this is it"
		case around:
			where = "this contains it"
		}
		return "Path of the host", fmt.Sprintf("No plugin may change %s, and %s. Name another path.", own.what, where)
	}
	return "", ""
}

// spellings returns paths as written and with symbolic links resolved, sorted.
func spellings(paths ...string) []string {
	var both []string
	for _, path := range paths {
		both = append(both, filepath.Clean(path), links.Resolve(path))
	}
	slices.Sort(both)
	return slices.Compact(both)
}

// checkReach reports a workspace in which no tool can change anything, if a plugin
// could change something.
func (d *decoder) checkReach(cfg *Config, workspace, pluginDir *hcl.Attribute) {
	writes := func(p Plugin) bool { return p.Enabled && p.Catalog.Ceiling > tool.ReadOnly }
	if cfg.Workspace.Top() == "" || !slices.ContainsFunc(cfg.Plugins, writes) {
		return
	}
	switch {
	case d.src.isDir() && within(d.src.dir, cfg.Workspace.Top()):
		d.mistake(workspace.Expr.Range(), "Workspace in the configuration",
			"The workspace (%s) is in the directory of the configuration (%s), in which no tool may change anything. "+
				"Name a single file with --config, or choose another workspace.", cfg.Workspace.Top(), d.src.dir)
	case !d.absent(pluginDir) && !d.is(pluginDir, "") && cfg.PluginDir != "" && within(cfg.PluginDir, cfg.Workspace.Top()):
		d.mistake(pluginDir.Expr.Range(), "Workspace in plugin_dir",
			"The workspace (%s) is in plugin_dir (%s), in which no tool may change anything. Choose a directory for the plugins alone.",
			cfg.Workspace.Top(), cfg.PluginDir)
	}
}
