// Package config reads config.hcl into the options of the host's parts.
//
// It reports every mistake of every file at once, each with its place and the
// expected value, and never returns a half-read configuration. Only this package
// and those below it know HCL: where another part needs an evaluation later, such
// as that of a plugin's settings, it gets a function. Values of env() and file()
// never appear in messages.
package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/certificate"
	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/host/internal/decide/notify"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/links"
	"github.com/toolhost/toolhost/sdk/forbidden"
	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Config is a configuration without mistakes. Every path in it is absolute. The
// tag of each field says how a reload treats a change: see [Config.CheckReload].
type Config struct {
	// Path is the file or directory that was loaded.
	Path string `reload:"apply"`
	// Lock is the path of the lock file, which may not exist; see package lock.
	Lock string `reload:"apply"`
	// Workspace says which directory arguments of role path are relative to.
	Workspace workspace.Dirs `reload:"restart workspace"`
	// WorkspaceQuota is how much the workspace of a user may hold before a person confirms each
	// call that may change something in it; 0 means no bound.
	WorkspaceQuota tool.ByteSize `reload:"apply"`
	// PluginDir is the directory of the plugins with a relative path.
	PluginDir string `reload:"apply"`
	// StateDir is where the host keeps its state. It may not exist yet. It is
	// neither in the workspace nor around it.
	StateDir string `reload:"restart state_dir"`
	// StateNamed is set if the configuration names StateDir. Otherwise it depends on Path.
	StateNamed bool `reload:"apply"`
	// LocalUser is the user of calls from the host's own account; "" means the
	// account's name.
	LocalUser string `reload:"restart auth.local_user"`
	// Tokens are the credentials of callers over HTTP, in the order of the
	// files. Their names and hashes differ.
	Tokens []auth.Token `reload:"apply"`
	// Issuers are the OpenID Connect issuers whose access tokens are valid over HTTP. Their
	// names and URLs differ.
	Issuers []oidc.Issuer `reload:"apply"`
	// Listen is the address for HTTP: a numeric address and a port, e.g.
	// "127.0.0.1:7780". Port 0 is any free port; "" means no HTTP. It is a loopback
	// address unless there is TLS, or the configuration accepts the risk.
	Listen string `reload:"restart server.listen"`
	// TLS names the certificate with which HTTP is served. The zero value means no TLS.
	TLS certificate.Files `reload:"apply"`
	// Hosts are further names of this host that clients send in the Host header, besides
	// those of the certificate: lower-case DNS names and addresses.
	Hosts []string `reload:"apply"`
	// Grace is how long running calls may take to finish when the host stops.
	Grace time.Duration `reload:"apply"`
	// ToolSearchAbove is how many tools a list over MCP has at most before it has only
	// the core tools, find_tool and call_tool.
	ToolSearchAbove int `reload:"apply"`
	// Policy decides which calls run, are asked about, or are denied. If each user has a
	// workspace, [policy.Rules.In] gives the policy for one.
	Policy policy.Options `reload:"apply"`
	// ActionsPerHour bounds the calls of each user that change something; 0
	// means no bound.
	ActionsPerHour int `reload:"apply"`
	// Approvals bound how long a person has to answer.
	Approvals Approvals `reload:"fields"`
	// Notifiers tell people elsewhere that calls wait for them.
	Notifiers []notify.Notifier `reload:"apply"`
	// Results bound the stored results that were too long for their callers.
	Results Results `reload:"fields"`
	// Journal bounds the record of calls.
	Journal Journal `reload:"fields"`
	// Toolsets are selections of tools, which tokens and addresses name.
	Toolsets []auth.Toolset `reload:"apply"`
	// Groups are sets of users.
	Groups auth.Groups `reload:"apply"`
	// ToolNames are the names and patterns of tools in toolsets and conditions.
	ToolNames []ToolName `reload:"apply"`
	// Clients are how clients of MCP get their results.
	Clients []Client `reload:"apply"`
	// Plugins are the plugin blocks in the order of the files, including
	// disabled ones.
	Plugins []Plugin `reload:"apply"`
	// InstancesMemory bounds the sum of the memory limits of all processes of the plugins; 0
	// means no bound.
	InstancesMemory tool.ByteSize `reload:"apply"`
	// Hidden are the paths that no call may name and no plugin may reach, except
	// its own part: the state directory, as written and with symbolic links
	// resolved, sorted.
	Hidden []string `reload:"apply"`
	// Protected are further paths that no call and no plugin may change, as
	// written and with symbolic links resolved, sorted: the files that were read,
	// their directory if all of it is read, plugin_dir unless the workspace is in
	// it, and the programs of the plugins and of this host.
	Protected []string `reload:"apply"`
	// Warnings are about settings that are valid but probably not intended.
	// [Config.Unaccepted] returns those that no comment silences.
	Warnings []Warning `reload:"apply"`
	// Accepted are the words of comments that silence warnings.
	Accepted []Accepted `reload:"apply"`
	// Files are the files of the configuration, in the order in which they were
	// read.
	Files []string `reload:"apply"`
	// Sources are these files, those that file() read and the programs of Commands and Notifiers, as
	// absolute paths, as written and with symbolic links resolved, sorted.
	Sources []string `reload:"apply"`
	// Digest is the digest of the names and contents of Files.
	Digest string `reload:"apply"`
	// Contents is the digest of the contents alone.
	Contents string `reload:"apply"`
	// Commands are the commands of secret blocks that plugins may request. Their values are in
	// Secrets and in the plugins after [Config.ReadSecrets].
	Commands []Command `reload:"apply"`
	// Secrets are the values of env() and file() and of secret blocks. They must
	// not be shown or logged. Values of less than 4 bytes are left out, since
	// they occur in any text by chance.
	Secrets []string `reload:"apply"`
	// later are the secrets of configurations that came later; see [Config.AlsoHide].
	later *laterSecrets `reload:"apply"`
}

// Plugin is one plugin block, as the supervisor and the catalog need it.
type Plugin struct {
	Supervisor supervisor.Plugin
	Catalog    catalog.Plugin
	// Enabled reports whether the plugin is used.
	Enabled bool
	// Place is where its block begins, e.g. "config.hcl:12", and TierPlace where its
	// tier is.
	Place, TierPlace string
}

// ToolName is a name or a pattern of tools outside of the blocks of plugins and the tools of
// rules.
type ToolName struct {
	// Place is where it is, e.g. "config.hcl:12". Where names what holds it, e.g.
	// `toolset "coding"`.
	Place, Where string
	Pattern      string
}

// LoadOptions are the outside sources of a configuration.
type LoadOptions struct {
	// LookupEnv returns a variable of the environment and whether it is set;
	// nil means [os.LookupEnv].
	LookupEnv func(name string) (value string, set bool)
	// SettingsSchema returns the JSON Schema that a plugin publishes for its settings (may be
	// empty), and whether the schema is known. It may start the plugin. Load calls it for
	// enabled plugins whose program and sandbox have no mistakes, and reports mistakes in their
	// settings with all others. If it is nil, only [supervisor.Plugin.Settings] reports them.
	SettingsSchema func(stateDir string, p supervisor.Plugin) (schema []byte, known bool)
}

// Load reads the configuration at path: a file, or every *.hcl of a directory in
// lexical order, without subdirectories. Relative paths in it are relative to the
// directory that holds the files.
//
// Load refuses files that an account other than root and the user of this process
// can change, directly or through their directory.
//
// If the configuration has mistakes, the error is an [*Error] with all of them.
// If any file has syntax errors, it holds the syntax errors only.
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
		return nil, fmt.Errorf("find the program of this host: %w", err)
	}
	bodies, ok := d.parse()
	if !ok {
		return nil, d.error()
	}
	cfg := d.decode(bodies)
	if err := d.error(); err != nil {
		return nil, err
	}
	if !cfg.Workspace.PerUser() {
		cfg.Policy = cfg.Policy.In(cfg.Workspace.Shared, links.Resolve)
	}
	paths, private := d.hostPaths(cfg), d.privatePaths(cfg)
	cfg.Hidden, cfg.Protected = spellings(cfg.StateDir), paths.protected()
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i].Supervisor
		p.Protected, p.Forbidden = cfg.Protected, cfg.Policy.Paths.Patterns()
		for _, path := range private {
			if givenTo(p.Confinement, cfg.Workspace.Top(), path) {
				p.Forbidden = append(p.Forbidden, forbidden.Literal(path))
			}
		}
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
	cfg.Policy.Hidden = slices.Concat(cfg.Hidden, private)
	cfg.Policy.Protected = spellings(append(paths.protected(), cfg.StateDir)...)
	cfg.Lock = d.src.lockPath()
	cfg.Path, cfg.Files, cfg.Digest, cfg.Contents = src.path, src.names(), src.digest(), src.contents()
	cfg.Sources = spellings(slices.Concat(src.paths(), d.read, d.programs())...)
	cfg.Commands = d.printers
	cfg.later = new(laterSecrets)
	cfg.Secrets, cfg.Warnings, cfg.Accepted = d.secrets.long(), d.warned(), d.accepted
	cfg.ToolNames = d.toolNames
	return cfg, nil
}

// The tag "reload" of each field of [Config] says how a reload treats a change:
//
//	apply         it takes effect
//	restart NAME  it is refused; NAME is the setting in messages
//	fields        the fields of the struct have tags of their own
const reloadTag = "reload"

// CheckReload returns an error if a running host with configuration c cannot
// reload next, because a setting differs that only a new host can apply.
func (c *Config) CheckReload(next *Config) error {
	if none := (certificate.Files{}); (c.TLS == none) != (next.TLS == none) {
		return errors.New("server.tls cannot be added or removed by a reload; stop the host and start it again")
	}
	return checkReload(reflect.ValueOf(c).Elem(), reflect.ValueOf(next).Elem())
}

func checkReload(old, next reflect.Value) error {
	for i := range old.NumField() {
		treatment, name, _ := strings.Cut(old.Type().Field(i).Tag.Get(reloadTag), " ")
		a, b := old.Field(i), next.Field(i)
		switch treatment {
		case "fields":
			if err := checkReload(a, b); err != nil {
				return err
			}
		case "restart":
			if !reflect.DeepEqual(a.Interface(), b.Interface()) {
				return fmt.Errorf("%s cannot be changed by a reload: it is %q and would be %q; stop the host and start it again",
					name, a.Interface(), b.Interface())
			}
		}
	}
	return nil
}
