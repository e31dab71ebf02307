package sandbox

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Confinement isolates a program from the machine. The zero value is the strongest
// confinement that works here; the program then reads only what a static program needs.
type Confinement struct {
	// Isolation is the level; the zero value is [Auto].
	Isolation Isolation
	// Require names layers without which the program does not start, besides the layers of
	// an Isolation other than [Auto].
	Require []Layer
	// WarnOnMissing starts the program although such a layer is missing. The [Report] names
	// it.
	WarnOnMissing bool
	// RunAs is the user that the program of a root host runs as; the zero value chooses
	// one.
	RunAs RunAs
	// Workspace is the access to the workspace; the zero value is none.
	Workspace WorkspaceAccess
	// Read, Write and Exec are absolute paths. A directory includes everything below it.
	// Writable and executable files are readable, too. A path that does not exist gives
	// nothing. Exec may also hold [ExecSystem], [ExecWorkspace], [ExecTmp] and [ExecHome]. The program
	// itself, and what loading it needs, is always executable.
	Read, Write, Exec []string
	// Protect lists paths relative to the workspace that the program can read, but not change,
	// remove or rename. It cannot rename the directories above them either.
	Protect []string
	// Presets are words of package protect. They select names that are protected in the same
	// way, wherever they exist in the workspace when the program starts.
	Presets []string
	// Network is the access to the network; the zero value is none.
	Network Network
	// TmpSize bounds the temporary directories of a program with namespaces; 0 means
	// [DefaultTmpSize].
	TmpSize tool.ByteSize
	// UnlimitedProcesses removes the limit of processes if [Limits].Processes is 0.
	// Otherwise 0 means [DefaultProcesses] where the limit counts the processes of the
	// sandbox only (in a user namespace, or for a user of its own), and no limit elsewhere.
	UnlimitedProcesses bool
	// Reader is set by [Confinement.AsReader].
	Reader Reader
}

// HasNetwork reports whether the program can reach other machines.
func (c *Confinement) HasNetwork() bool { return c.Network != NetworkNone || c.Isolation == Off }

// DefaultTmpSize is the default size of the temporary directories of a program.
const DefaultTmpSize = 64 * tool.MiB

// DefaultProcesses is the default number of processes and threads of a sandbox that counts
// only its own. A Go program needs a thread for each call that waits for a disk.
const DefaultProcesses = 256

// DefaultConfinement returns the confinement of a plugin without a configured one.
func DefaultConfinement() Confinement {
	return Confinement{
		Require:   here([]Layer{LayerRlimits, LayerNoNewPrivs}),
		Workspace: WriteWorkspace,
		Presets:   protect.Presets(),
		TmpSize:   DefaultTmpSize,
	}
}

// Words in [Confinement].Exec that mean paths.
const (
	ExecSystem    = "system"    // the programs of the system: /usr, /bin, /sbin and /lib*
	ExecWorkspace = "workspace" // the workspace
	ExecTmp       = "tmp"       // the temporary directories
	ExecHome      = "home"      // the program's own directories, where commands have their HOME
)

// Isolation is a level of isolation from the machine. Each includes the levels before it.
type Isolation int

// The levels of isolation.
const (
	// Auto is the strongest that works here, layer by layer.
	Auto Isolation = iota
	// Off is what every program has: limits, no_new_privs, and an end with the host.
	Off
	// Basic adds access rules of the kernel for files (Landlock) and a filter of
	// system calls (seccomp).
	Basic
	// Isolated adds namespaces: a file system that is read-only except for the writable
	// paths, its own processes and network, and no capabilities.
	Isolated
	// Strict adds a root directory that holds only the listed paths.
	Strict
)

var isolationNames = []string{"auto", "off", "basic", "isolated", "strict"}

// IsolationNames returns the names in the configuration.
func IsolationNames() []string { return slices.Clone(isolationNames) }

// String returns the name in the configuration.
func (i Isolation) String() string {
	if i < Auto || i > Strict {
		return fmt.Sprintf("Isolation(%d)", int(i))
	}
	return isolationNames[i]
}

// MarshalText implements [encoding.TextMarshaler].
func (i Isolation) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (i *Isolation) UnmarshalText(text []byte) error {
	n := slices.Index(isolationNames, string(text))
	if n < 0 {
		return fmt.Errorf("unknown isolation %q, expected one of %s", text, strings.Join(isolationNames, ", "))
	}
	*i = Isolation(n)
	return nil
}

// Layer is one mechanism that confines a program, by its name in the configuration and in
// reports.
type Layer string

// The layers.
const (
	LayerRlimits    Layer = "rlimits"      // resource limits; always
	LayerNoNewPrivs Layer = "no_new_privs" // no setuid programs; always
	LayerPdeathsig  Layer = "pdeathsig"    // it dies with the host; always on Linux
	LayerLandlock   Layer = "landlock"     // files by the kernel's access rules
	LayerSeccomp    Layer = "seccomp"      // a filter of system calls
	LayerUserNS     Layer = "userns"       // user namespace
	LayerPIDNS      Layer = "pidns"        // sees only its own processes, which die with it
	LayerNetNS      Layer = "netns"        // its own network, or none
	LayerIPCNS      Layer = "ipcns"        // its own System V and POSIX queues and memory
	LayerMounts     Layer = "mounts"       // a read-only file system, or its own root
	LayerProc       Layer = "proc"         // a /proc that shows only its own processes
	LayerCaps       Layer = "caps"         // no capabilities
	LayerRunAs      Layer = "run_as"       // a user other than root
	LayerCgroup     Layer = "cgroup"       // limits of the whole tree, which can be killed as one
)

// Layers returns all layers, in the order of reports.
func Layers() []Layer {
	return []Layer{
		LayerRlimits, LayerUserNS, LayerNetNS, LayerPIDNS, LayerIPCNS, LayerMounts, LayerProc, LayerRunAs, LayerCaps,
		LayerNoNewPrivs, LayerLandlock, LayerSeccomp, LayerPdeathsig, LayerCgroup,
	}
}

// CanHave reports whether a program can have a layer at this level on some machine. run_as
// and cgroup do not depend on the level.
func (i Isolation) CanHave(l Layer) bool {
	switch {
	case l == LayerRunAs, l == LayerCgroup:
		return true
	case i == Auto:
		return slices.Contains(Layers(), l)
	case l == LayerUserNS, l == LayerNetNS:
		return i >= Isolated
	}
	return slices.Contains(layersOf(i), l)
}

// here removes the layers that this operating system never has.
func here(layers []Layer) []Layer {
	never := missingHere()
	return slices.DeleteFunc(layers, func(l Layer) bool { _, gone := never[l]; return gone })
}

// layersOf returns the layers of a level.
func layersOf(i Isolation) []Layer {
	layers := []Layer{LayerRlimits, LayerNoNewPrivs, LayerPdeathsig}
	if i >= Basic {
		layers = append(layers, LayerLandlock, LayerSeccomp)
	}
	if i >= Isolated {
		layers = append(layers, LayerPIDNS, LayerIPCNS, LayerMounts, LayerProc, LayerCaps)
	}
	return layers
}

// WorkspaceAccess is the access to the workspace.
type WorkspaceAccess int

// The kinds of access to the workspace.
const (
	NoWorkspace WorkspaceAccess = iota
	ReadWorkspace
	WriteWorkspace
)

// Network is the access to the network.
type Network int

// The kinds of network access.
const (
	// NetworkNone is a network namespace with a loopback address, which only a program that
	// may execute others can use; or no network.
	NetworkNone Network = iota
	// NetworkHost is the host's network.
	NetworkHost
	// NetworkProxy is a network namespace with a loopback address, on which the host listens: see
	// [Process].Proxy. Without the layer netns, the program has no network.
	NetworkProxy
)

// RunAs is the user that a program runs as. Programs of a host that is not root run as its
// own user.
type RunAs struct {
	// Mode selects the user; the zero value is [RunAsAuto].
	Mode RunAsMode
	// UID and GID are the user, with [RunAsUser].
	UID, GID int
}

// RunAsMode is the way to select the user of a program of a root host.
type RunAsMode int

// The ways to select a user.
const (
	// RunAsAuto is the owner of the workspace if the program may write to it, or a user
	// that no other program has.
	RunAsAuto RunAsMode = iota
	// RunAsHost is the host's own user.
	RunAsHost
	// RunAsUser is the user with the given UID and GID.
	RunAsUser
)
