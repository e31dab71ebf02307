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

// Examination describes what a machine can enforce, and what each plugin would get.
type Examination struct {
	Machine sandbox.Machine `json:"machine"`
	// Plugins are the enabled plugins of the configuration.
	Plugins []ExaminedPlugin `json:"plugins"`
}

// ExaminedPlugin describes what one plugin would get.
type ExaminedPlugin struct {
	Name string `json:"name"`
	// Place is where its block begins, e.g. "config.hcl:12".
	Place string `json:"place"`
	// Isolation is the configured isolation.
	Isolation sandbox.Isolation `json:"isolation"`
	// Starts is set if it gets everything that its sandbox requires, or may start without
	// it.
	Starts bool `json:"starts"`
	// Sandbox is the confinement that it would get; if Starts is false, without the missing
	// layers; nil if it is not known.
	Sandbox *sandbox.Report `json:"sandbox,omitempty"`
	// Reader is the same for the process that serves read_only calls; nil without split_tiers.
	Reader *sandbox.Report `json:"reader,omitempty"`
	// Exposed are the host's own files in directories that the plugin may write. When one is
	// replaced, the plugin can change the new file until its process is replaced.
	Exposed []string `json:"exposed,omitempty"`
	// Protect are the words for protected names in a workspace that the plugin may write.
	// The kernel protects files that exist when the plugin's process starts, and not
	// repositories and files that appear later.
	Protect []string `json:"protect,omitempty"`
	// Forbidden are the patterns of forbidden paths of a plugin that executes programs. The
	// programs do not see files that exist when the plugin's process starts. They see files
	// that a pattern with wildcards covers and that appear later.
	Forbidden []string `json:"forbidden,omitempty"`
	// Problem explains why it would not start; "" if it would.
	Problem string `json:"problem,omitempty"`
}

// Examine tries each level of isolation on this machine, and the confinement of each plugin of
// a configuration, which may be nil. It starts no plugin and needs no state directory.
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
		if p.Supervisor.SplitTiers && err == nil {
			if report, err = supervisor.ConfinedReader(ctx, opts, p.Supervisor); err != nil {
				examined.Starts, examined.Problem = false, err.Error()
			} else {
				examined.Reader = &report
			}
		}
		e.Plugins = append(e.Plugins, examined)
	}
	return e, context.Cause(ctx)
}

// executes reports whether a plugin executes programs, which do not follow the policy.
func executes(c sandbox.Confinement) bool { return len(c.Exec) > 0 || c.Isolation == sandbox.Off }

// exposed returns the host's own files in directories that a plugin may write.
func exposed(cfg *config.Config, p supervisor.Plugin) []string {
	dirs := p.Confinement.Write
	if p.Confinement.Workspace == sandbox.WriteWorkspace {
		dirs = append(slices.Clone(dirs), cfg.Workspace.Top())
	}
	return slices.DeleteFunc(slices.Clone(p.Protected), func(path string) bool {
		return !slices.ContainsFunc(dirs, func(dir string) bool {
			rel, err := filepath.Rel(dir, path)
			return err == nil && filepath.IsLocal(rel)
		})
	})
}
