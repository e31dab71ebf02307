package supervisor

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Options says which plugins to keep and where.
type Options struct {
	// Plugins are kept until a [Change] replaces them. Their names differ.
	Plugins []Plugin
	// Launcher starts the processes; it is required. The caller closes it
	// after the Supervisor.
	Launcher *sandbox.Launcher
	// StateDir is the host's state directory; it is required. Plugins get
	// plugins/NAME in it, and what is known of their tools is kept in
	// manifests.
	StateDir string
	// RunDir is where hosts make their directories for sockets and scratch
	// files, at most 60 bytes long; "" means $XDG_RUNTIME_DIR/toolhost, or
	// /tmp/toolhost-UID, or one with an unguessable name there if another user has
	// taken that.
	RunDir string
	// Workspace is the working directory of the plugins and the root of calls
	// that name none; "" means "/" and no root.
	Workspace string
	// Hidden are absolute paths that no plugin may reach; what is below one is
	// meant too. StateDir and RunDir are hidden in any case, but for what is the
	// plugin's own there.
	Hidden []string
	// Version is the host's, for the plugins' logs.
	Version string
	// Logger gets what plugins log and what happens to them; nil drops it.
	Logger hclog.Logger
	// Redact removes secrets from a text; it may be called by several
	// goroutines at once. What plugins say goes through it on its way to logs,
	// errors and crash reports. nil changes nothing.
	Redact func(text string) string
	// Publish is called when the tools of a plugin are known, when they or
	// the program change, and with no tools when a [Change] removes the plugin. digest names what was published: it goes into
	// [Supervisor.Run] with each call that was checked against these tools.
	// Calls for one plugin come one after the other. It must not call the
	// Supervisor. nil drops them.
	Publish func(plugin, digest string, tools []tool.Spec)
	// Entered is called when a plugin enters another phase of its life. It must
	// return at once and not call the Supervisor. nil drops it.
	Entered func(plugin string, phase Phase)
}

// Plugin says how to run one plugin.
type Plugin struct {
	// Name is the name of its block in the configuration.
	Name string
	// Path is the absolute path of its binary.
	Path string
	// SHA256 is the hex digest that the binary must have; "" means any.
	SHA256 string
	// Limits bound each of its processes.
	Limits sandbox.Limits
	// Confinement says how its processes are kept apart from the machine.
	Confinement sandbox.Confinement
	// Protected are absolute paths that it may read and not change, even where it
	// may write; what is below one is meant too.
	Protected []string
	// Forbidden are patterns of paths that its processes are not to see; see
	// [sandbox.Profile].
	Forbidden []string
	// PassEnv names the variables of the host's environment that it gets,
	// beside those of the contract, a fixed PATH and LANG, TMPDIR and, from the
	// host, TZ.
	PassEnv []string
	// Secrets are the values that its calls may ask for, by name.
	Secrets map[string]string
	// Eager starts it with the host instead of at its first call, and keeps it
	// when it is idle.
	Eager bool
	// IdleTimeout stops it when it has had no call for that long; 0 means 10
	// minutes.
	IdleTimeout time.Duration
	// Restart says when it is kept off for a while because it crashes.
	Restart Restart
	// Settings evaluates the plugin's own settings against the JSON Schema
	// that it publishes ("" if it publishes none) and returns a JSON object.
	// Its error tells the operator every mistake with file and line. nil means
	// that there are no settings.
	Settings func(schema []byte) (settings []byte, err error)
	// Locate returns the place ("config.hcl:12") of a path into the settings.
	// nil means that places are not known.
	Locate func(path []string) string
}

// withDefaults returns p as it is compared with others.
func (p Plugin) withDefaults() Plugin {
	if p.IdleTimeout <= 0 {
		p.IdleTimeout = defaultIdleTimeout
	}
	p.Restart = p.Restart.withDefaults()
	if len(p.PassEnv) == 0 {
		p.PassEnv = nil
	}
	if len(p.Protected) == 0 {
		p.Protected = nil
	}
	if len(p.Forbidden) == 0 {
		p.Forbidden = nil
	}
	if len(p.Secrets) == 0 {
		p.Secrets = nil
	}
	c := &p.Confinement
	if c.TmpSize == 0 {
		c.TmpSize = sandbox.DefaultTmpSize
	}
	if len(c.Require) == 0 {
		c.Require = nil
	}
	for _, list := range []*[]string{&c.Read, &c.Write, &c.Exec, &c.Protect, &c.Presets} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return p
}
