// Package config reads config.hcl into the options of the host's parts.
//
// It reports every mistake of every file at once, each with its place and what
// was expected, and never a half-read configuration. It is the only package
// that knows HCL: what other parts need later, such as the evaluation of a
// plugin's own settings, they get as functions. What env() and file() return
// never appears in what it prints.
package config

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/protect"
)

// Config is a configuration without mistakes. Every path in it is absolute.
type Config struct {
	// Workspace is the directory that arguments of role path are relative to.
	Workspace string
	// PluginDir holds the plugins that are named by a relative path.
	PluginDir string
	// StateDir is where the host keeps what must outlive it. It may not exist
	// yet. It is neither in the workspace nor around it.
	StateDir string
	// LocalUser is the user of calls from this very account; "" means the
	// account's name.
	LocalUser string
	// Tokens are the credentials of callers over HTTP, in the order of the
	// files. Their names and hashes differ.
	Tokens []auth.Token
	// Listen is where HTTP is served: the number of a loopback address and a
	// port, e.g. "127.0.0.1:7780"; port 0 is any that is free, and "" is no
	// HTTP.
	Listen string
	// Grace is how long calls under way may take to finish when the host stops.
	Grace time.Duration
	// Policy is what runs unasked, what is asked about, and what is denied.
	Policy policy.Options
	// ActionsPerHour bounds the calls of each caller; 0 is no bound.
	ActionsPerHour int
	// Approvals say how long people have to answer.
	Approvals Approvals
	// Results say how much is kept of what was too long for its caller.
	Results Results
	// Journal says how much of the record of calls is kept.
	Journal Journal
	// Plugins are the plugin blocks, disabled ones too, in the order of the
	// files.
	Plugins []Plugin
	// Hidden is what no plugin may reach but for its own part, and no call may
	// name: the state directory, as it is spelled and as it is where symbolic
	// links lead, sorted.
	Hidden []string
	// Protected is what no plugin and no call may change beside that, in both
	// spellings, sorted: the files that were read, their directory if all of it
	// is read, plugin_dir unless the workspace is in it, and the programs of the
	// plugins and of this host.
	Protected []string
	// Warnings are what is no mistake, and probably not meant, each with its place.
	Warnings []string
	// Files are the files that were read, in the order in which they were.
	Files []string
	// Sources are the same and what file() has read, as absolute paths in both
	// spellings, sorted; Digest is that of what was in the files.
	Sources []string
	Digest  string
	// Secrets are the values that env and file returned, but for those of less
	// than 4 bytes, which occur in any text by chance. They must not be shown
	// or logged.
	Secrets []string
}

// Plugin is one plugin block: what its supervisor and what the catalog need.
type Plugin struct {
	Supervisor supervisor.Plugin
	Catalog    catalog.Plugin
	// Enabled says that the plugin is to be used.
	Enabled bool
	// Place is where its block begins, e.g. "config.hcl:12".
	Place string
}

// LoadOptions say where a configuration gets outside values from.
type LoadOptions struct {
	// LookupEnv returns a variable of the environment and whether it is set;
	// nil means [os.LookupEnv].
	LookupEnv func(name string) (value string, set bool)
	// SettingsSchema returns the JSON Schema that a plugin publishes for its
	// settings (empty if it has none), and whether it is known. With it, Load
	// reports mistakes in the plugins' settings together with all others; nil
	// leaves them to [supervisor.Plugin.Settings]. It is called for enabled
	// plugins whose program and sandbox are told without mistakes, and may
	// start them.
	SettingsSchema func(stateDir string, p supervisor.Plugin) (schema []byte, known bool)
}

// Load reads the configuration in path: a file, or a directory, of which it
// reads every *.hcl in lexical order, without its subdirectories. Relative
// paths in it are relative to the directory that holds the files.
//
// Load refuses files that others than root and the user of this process can
// change, themselves or through their directory.
//
// If the configuration has mistakes, the error is an [*Error] with all of
// them. Syntax errors are the exception: with any of them in any file, only
// they are told.
func Load(path string, opts LoadOptions) (*Config, error) {
	if opts.LookupEnv == nil {
		opts.LookupEnv = os.LookupEnv
	}
	src, err := readSource(path)
	if err != nil {
		return nil, err
	}
	d := newDecoder(src, opts)
	if d.program, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find the program of this host, which no tool may change: %w", err)
	}
	bodies, ok := d.parse()
	if !ok {
		return nil, d.error()
	}
	cfg := d.decode(bodies)
	if err := d.error(); err != nil {
		return nil, err
	}
	paths := d.hostPaths(cfg)
	cfg.Hidden, cfg.Protected = spellings(cfg.StateDir), paths.protected()
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i].Supervisor
		p.Protected, p.Forbidden = cfg.Protected, cfg.Policy.Paths.Patterns()
		if presets := p.Confinement.Presets; len(presets) < len(protect.Presets()) {
			if cfg.Policy.Protect == nil {
				cfg.Policy.Protect = map[string][]string{}
			}
			cfg.Policy.Protect[p.Name] = presets
		}
		if given := slices.Concat(p.Confinement.Read, p.Confinement.Write); len(given) > 0 {
			if cfg.Policy.Reach == nil {
				cfg.Policy.Reach = map[string][]string{}
			}
			cfg.Policy.Reach[p.Name] = spellings(given...)
		}
	}
	cfg.Policy.Hidden = cfg.Hidden
	cfg.Policy.Protected = spellings(append(paths.protected(), cfg.StateDir)...)
	cfg.Files, cfg.Digest = src.names(), src.digest()
	cfg.Sources = spellings(append(src.paths(), d.read...)...)
	cfg.Secrets, cfg.Warnings = d.secrets.long(), d.warned()
	return cfg, nil
}
