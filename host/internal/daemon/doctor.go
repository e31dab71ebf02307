package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// Examination is what a machine can enforce, and what of it each plugin would get.
type Examination struct {
	Machine sandbox.Machine `json:"machine"`
	// Plugins are those of the configuration that are enabled.
	Plugins []ExaminedPlugin `json:"plugins"`
}

// ExaminedPlugin is what one plugin would get.
type ExaminedPlugin struct {
	Name string `json:"name"`
	// Place is where its block begins, e.g. "config.hcl:12".
	Place string `json:"place"`
	// Isolation is how far the configuration wants it kept apart.
	Isolation sandbox.Isolation `json:"isolation"`
	// Starts says that it gets all that its sandbox requires, or is to start
	// without it.
	Starts bool `json:"starts"`
	// Sandbox is what would be in force, with Starts false for a program that
	// does without what is missing; nil if there is no telling.
	Sandbox *sandbox.Report `json:"sandbox,omitempty"`
	// Exposed are files of the host's own that lie where the plugin may write: when
	// one is replaced, the plugin can change the new one until its process is
	// replaced, too.
	Exposed []string `json:"exposed,omitempty"`
	// Protect are the words for what is protected by its name in a workspace that the
	// plugin may write. The kernel holds what bears such a name when the plugin's
	// process starts; repositories and files that appear later it does not hold.
	Protect []string `json:"protect,omitempty"`
	// Forbidden are the patterns of paths that it is not to see, if it executes programs.
	// They do not see what is there when the plugin's process starts; what a pattern with
	// wildcards covers and is made later, they see.
	Forbidden []string `json:"forbidden,omitempty"`
	// Problem says why it would not start; "" if it would.
	Problem string `json:"problem,omitempty"`
}

// Examine tries what the machine can enforce for each level of isolation, and for
// each plugin of a configuration, if it is not nil. It starts no plugin and needs no
// state directory.
func Examine(ctx context.Context, cfg *config.Config) (e Examination, err error) {
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		return Examination{}, err
	}
	defer func() { err = errors.Join(err, launcher.Close()) }()
	e.Plugins = []ExaminedPlugin{}
	if e.Machine, err = launcher.Examine(ctx); err != nil || cfg == nil {
		return e, err
	}
	opts := supervisor.Options{
		Launcher: launcher, StateDir: cfg.StateDir, Workspace: cfg.Workspace,
		Hidden: cfg.Hidden, Redact: cfg.Hide,
	}
	for _, p := range cfg.Plugins {
		if !p.Enabled {
			continue
		}
		examined := ExaminedPlugin{
			Name: p.Supervisor.Name, Place: p.Place, Isolation: p.Supervisor.Confinement.Isolation, Starts: true,
			Exposed: exposed(cfg, p.Supervisor),
		}
		if p.Supervisor.Confinement.Workspace == sandbox.WriteWorkspace {
			examined.Protect = p.Supervisor.Confinement.Presets
		}
		if executes(p.Supervisor.Confinement) {
			examined.Forbidden = p.Supervisor.Forbidden
		}
		report, err := supervisor.Confined(ctx, opts, p.Supervisor)
		if err != nil {
			examined.Starts, examined.Problem = false, err.Error()
		}
		if len(report.Layers) > 0 {
			examined.Sandbox = &report
		}
		e.Plugins = append(e.Plugins, examined)
	}
	return e, context.Cause(ctx)
}

// executes reports whether a plugin executes programs, which know no policy.
func executes(c sandbox.Confinement) bool { return len(c.Exec) > 0 || c.Isolation == sandbox.Off }

// exposed returns the host's own files that lie where a plugin may write.
func exposed(cfg *config.Config, p supervisor.Plugin) []string {
	dirs := p.Confinement.Write
	if p.Confinement.Workspace == sandbox.WriteWorkspace {
		dirs = append(slices.Clone(dirs), cfg.Workspace)
	}
	return slices.DeleteFunc(slices.Clone(p.Protected), func(path string) bool {
		return !slices.ContainsFunc(dirs, func(dir string) bool {
			rel, err := filepath.Rel(dir, path)
			return err == nil && filepath.IsLocal(rel)
		})
	})
}
