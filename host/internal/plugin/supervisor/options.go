package supervisor

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Options configure a [Supervisor].
type Options struct {
	// Plugins are the plugins until a [Change] replaces them. Their names differ.
	Plugins []Plugin
	// Launcher starts the processes. Required. The caller closes it after the
	// Supervisor.
	Launcher *sandbox.Launcher
	// StateDir is the host's state directory. Required. Each plugin gets
	// plugins/NAME in it; their tools are saved in manifests.
	StateDir string
	// Command returns the shell command that runs a toolhost command for this host, from any
	// directory; nil is the command itself.
	Command func(words string) string
	// RunDir is the directory in which hosts make their directories for sockets and
	// scratch files, at most 60 bytes long. The default is $XDG_RUNTIME_DIR/toolhost,
	// or /tmp/toolhost-UID, or a directory with a random name in /tmp if another user
	// has taken that name.
	RunDir string
	// Workspace says which directory the plugins work in, and the root of calls that name no
	// root; the zero value means "/" and no root. If each user has one, only processes of single
	// users see one.
	Workspace workspace.Dirs
	// InstancesMemory bounds the sum of the memory limits of all processes; 0 means no bound. If it
	// is reached, the process of any plugin that has been idle for longest makes room, and calls that
	// need another process wait for up to 30 seconds. Processes that the host starts by itself count
	// and do not wait: those that are eager, describe their plugin, or replace another after a
	// [Change].
	InstancesMemory tool.ByteSize
	// Hidden are absolute paths that no plugin may reach, with everything below them.
	// StateDir and RunDir are always hidden, except for the plugin's own directories
	// there.
	Hidden []string
	// Version is the version of the host, for the plugins' logs.
	Version string
	// Logger receives the plugins' logs and the events of their lives; nil drops
	// them.
	Logger hclog.Logger
	// Redact removes secrets from the plugins' texts in logs, errors and crash
	// reports. It must be safe for concurrent use. nil changes nothing.
	Redact func(text string) string
	// Hide removes the secrets that a user has set from a text of the user's process; the user "" means
	// those of all users, for a process of all. It must be safe for concurrent use. nil changes nothing.
	Hide func(user, text string) string
	// UserSecret returns the value of a user's secret, and whether it is set. nil means that none is.
	UserSecret func(ctx context.Context, user, name string) (value string, set bool, err error)
	// Publish is called when the tools of a plugin become known, when the tools or the
	// program change, and with no tools when a [Change] removes the plugin. It reports
	// whether all of their schemas are sound. Publish is not called concurrently for one
	// plugin. It must not call the Supervisor. May be nil.
	Publish func(Publication) (sound bool)
	// Stopped returns why no process may start that serves the calls of a user to a plugin, as an error
	// for callers; nil means that it may. The user is "" for a process of all users. It must return at
	// once and not call the Supervisor. A nil Stopped stops nothing.
	Stopped func(user, plugin string) error
	// Connected is told of each connection of a process with [sandbox.NetworkProxy]: when it is open,
	// and at its end, or that it was refused. It must return soon. May be nil.
	Connected func(c egress.Connection, open bool)
	// Entered is called when the processes of a plugin enter another phase: those of a user or a
	// session, or, with the user "", those of everybody; reader is set for those of
	// [Plugin.SplitTiers]. It must return at once and not call the Supervisor. May be nil.
	Entered func(plugin, user, session string, reader bool, phase Phase)
}

// Publication is the tools that a plugin offers now.
type Publication struct {
	Plugin string
	// Digest identifies these tools: pass it to [Supervisor.Run] with each call that was
	// checked against them.
	Digest string
	Tools  []tool.Spec
	// Sound says that an earlier process of this program has found their schemas sound.
	Sound bool

	program string // the digest of the program
}

// Plugin configures one plugin.
type Plugin struct {
	// Name is the name of its block in the configuration.
	Name string
	// Path is the absolute path of its binary.
	Path string
	// SHA256 is the hex digest that the binary must have; "" accepts any.
	SHA256 string
	// Limits bound each of its processes.
	Limits sandbox.Limits
	// Confinement isolates its processes from the machine.
	Confinement sandbox.Confinement
	// Network are the destinations that its processes may reach, if their network is
	// [sandbox.NetworkProxy]; nil reaches none.
	Network *egress.Rules
	// Protected are absolute paths that it may read and not change, with everything
	// below them, even where it may write.
	Protected []string
	// Forbidden are patterns of paths that its processes must not see; see
	// [sandbox.Profile].
	Forbidden []string
	// PassEnv names the variables of the host's environment that it gets, besides TZ.
	// It also gets the variables of the contract, TMPDIR, and a fixed PATH and LANG.
	PassEnv []string
	// Secrets are the values that its calls may ask for, by name, and UserSecrets the names of those
	// whose values are the users'.
	Secrets     map[string]string
	UserSecrets []string
	// Scope says whose calls share a process; the default is everybody's.
	Scope Scope
	// SplitTiers runs the program twice. Calls of tier [tool.ReadOnly] go to the reader, a process
	// that can change nothing: see [sandbox.Confinement.AsReader]. If this machine cannot prove that,
	// the plugin does not start. The reader has no state of the plugin: its state directory ends
	// with it. ReaderNetwork leaves the reader the plugin's network.
	SplitTiers, ReaderNetwork bool
	// MaxInstances bounds its processes with the scopes user and session, readers included; the
	// default is 64, and twice that with SplitTiers. If all have calls, further users and sessions
	// wait for up to 30 seconds.
	MaxInstances int
	// MaxPerUser bounds the processes of one user with the scope session, readers included; the
	// default is 4, and twice that with SplitTiers.
	MaxPerUser int
	// Eager starts it with the host instead of at its first call, and does not stop it
	// when it is idle. It needs the scope [Shared].
	Eager bool
	// IdleTimeout stops it after that time without a call; the default is 10 minutes.
	IdleTimeout time.Duration
	// Restart is the circuit breaker that keeps it off while it crashes.
	Restart Restart
	// Settings evaluates the plugin's own settings against the plugin's JSON Schema, which may
	// be empty, and returns a JSON object. The error tells the operator every mistake with file
	// and line. nil means no settings.
	Settings func(schema []byte) (settings []byte, err error)
	// Locate returns the place of a path into the settings, such as "config.hcl:12".
	// nil means that the places are not known.
	Locate func(path []string) string
	// Verify checks, before each start of a process, what the program runs besides itself, such as
	// an installed package. The error tells the operator why it does not start. nil means that there
	// is nothing to check.
	Verify func() error
	// Runs identifies what the program runs besides itself; "" is nothing. With it and the settings,
	// answers of people about tools that another program defines end with a change of that program.
	Runs string
}

// withDefaults returns p with its defaults, so that equal options compare equal.
func (p Plugin) withDefaults() Plugin {
	if p.IdleTimeout <= 0 {
		p.IdleTimeout = defaultIdleTimeout
	}
	twins := 1
	if p.SplitTiers {
		twins = 2
	}
	if p.MaxInstances <= 0 {
		p.MaxInstances = twins * defaultMaxInstances
	}
	if p.MaxPerUser <= 0 {
		p.MaxPerUser = twins * defaultMaxPerUser
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
	if len(p.UserSecrets) == 0 {
		p.UserSecrets = nil
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
