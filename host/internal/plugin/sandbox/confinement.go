package sandbox

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Confinement says how a program is kept apart from the machine. The zero value
// is the strongest that works here, with nothing to read but what a static
// program needs.
type Confinement struct {
	// Isolation is how far; the zero value is [Auto].
	Isolation Isolation
	// Require names layers without which the program is not started, beside
	// those of an Isolation other than [Auto].
	Require []Layer
	// WarnOnMissing starts the program although such a layer is missing. The
	// [Report] says so.
	WarnOnMissing bool
	// RunAs is the user that the program runs as, if the host is root; the zero
	// value chooses one.
	RunAs RunAs
	// Workspace is what the program may do in the workspace; the zero value is
	// nothing.
	Workspace WorkspaceAccess
	// Read, Write and Exec are absolute paths; a directory stands for everything
	// below it. What can be written can be read, as can what can be executed.
	// A path that does not exist gives nothing. Exec may also hold [ExecSystem],
	// [ExecWorkspace] and [ExecTmp]. The program itself can always be executed,
	// and with it what it takes to load it.
	Read, Write, Exec []string
	// Protect are paths relative to the workspace that can be read and not
	// changed, removed or renamed, nor any directory above them.
	Protect []string
	// Presets are words of package protect: names that are protected in the same way,
	// wherever in the workspace something bears one when the program starts.
	Presets []string
	// Network is what the program reaches; the zero value is nothing.
	Network Network
	// TmpSize bounds what the program has in its temporary directories, if
	// namespaces can be had; 0 means [DefaultTmpSize].
	TmpSize tool.ByteSize
	// UnlimitedProcesses leaves the number of processes without a limit where
	// [Limits].Processes is 0. If it is not set, 0 means [DefaultProcesses]
	// where that counts the processes of the sandbox alone (in a user namespace,
	// or for a user of its own), and no limit elsewhere.
	UnlimitedProcesses bool
}

// DefaultTmpSize is how much a program may have in its temporary directories.
const DefaultTmpSize = 64 * tool.MiB

// DefaultProcesses is how many processes and threads a sandbox may have that
// counts them for itself. A Go program has a thread for each of its calls that
// waits for a disk.
const DefaultProcesses = 256

// DefaultConfinement is that of a plugin for which nothing else is configured.
func DefaultConfinement() Confinement {
	return Confinement{
		Require:   here([]Layer{LayerRlimits, LayerNoNewPrivs}),
		Workspace: WriteWorkspace,
		Presets:   protect.Presets(),
		TmpSize:   DefaultTmpSize,
	}
}

// Words that stand for paths in [Confinement].Exec.
const (
	ExecSystem    = "system"    // what the system has: /usr, /bin, /sbin and /lib*
	ExecWorkspace = "workspace" // what is in the workspace
	ExecTmp       = "tmp"       // what is in the temporary directories
)

// Isolation is how far a program is kept apart from the machine. Each includes
// those before it.
type Isolation int

// The levels of isolation.
const (
	// Auto is the last of those below that works here, layer by layer.
	Auto Isolation = iota
	// Off is what always holds: limits, no_new_privs, an end with the host.
	Off
	// Basic adds access rules of the kernel for files (Landlock) and a filter of
	// system calls (seccomp).
	Basic
	// Isolated adds namespaces: a read-only file system but for what may be
	// written, processes and a network of its own, no capabilities.
	Isolated
	// Strict adds a root directory that holds nothing but what is listed.
	Strict
)

var isolationNames = []string{"auto", "off", "basic", "isolated", "strict"}

// IsolationNames are the names in the configuration.
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

// Layer is one thing that confines a program, by its name in the configuration
// and in reports.
type Layer string

// The layers.
const (
	LayerRlimits    Layer = "rlimits"      // resource limits; always
	LayerNoNewPrivs Layer = "no_new_privs" // no setuid programs; always
	LayerPdeathsig  Layer = "pdeathsig"    // it dies with the host; always on Linux
	LayerLandlock   Layer = "landlock"     // files by the kernel's access rules
	LayerSeccomp    Layer = "seccomp"      // a filter of system calls
	LayerUserNS     Layer = "userns"       // user namespace
	LayerPIDNS      Layer = "pidns"        // sees its own processes only, which die with it
	LayerNetNS      Layer = "netns"        // a network of its own, or none
	LayerIPCNS      Layer = "ipcns"        // System V and POSIX queues and memory of its own
	LayerMounts     Layer = "mounts"       // a read-only file system, or a root of its own
	LayerProc       Layer = "proc"         // /proc with its own processes only
	LayerCaps       Layer = "caps"         // no capabilities
	LayerRunAs      Layer = "run_as"       // another user than root
	LayerCgroup     Layer = "cgroup"       // memory and processes of the whole tree; kill at once
)

// Layers are all layers, in the order in which reports name them.
func Layers() []Layer {
	return []Layer{
		LayerRlimits, LayerUserNS, LayerNetNS, LayerPIDNS, LayerIPCNS, LayerMounts, LayerProc, LayerRunAs, LayerCaps,
		LayerNoNewPrivs, LayerLandlock, LayerSeccomp, LayerPdeathsig, LayerCgroup,
	}
}

// CanHave reports whether a program can have a layer at this level, on some
// machine. Another user and a cgroup are independent of the level.
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

// here leaves out the layers that this system never has, whatever the machine.
func here(layers []Layer) []Layer {
	never := missingHere()
	return slices.DeleteFunc(layers, func(l Layer) bool { _, gone := never[l]; return gone })
}

// layersOf returns the layers that a level is made of.
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

// WorkspaceAccess is what a program may do in the workspace.
type WorkspaceAccess int

// The kinds of access to the workspace.
const (
	NoWorkspace WorkspaceAccess = iota
	ReadWorkspace
	WriteWorkspace
)

// Network is what a program reaches of the network.
type Network int

// The kinds of network access.
const (
	// NetworkNone is a network of its own with a loopback address, which only a
	// program that may execute others can use; or none at all.
	NetworkNone Network = iota
	// NetworkHost is the host's.
	NetworkHost
)

// RunAs is the user that a program runs as. A host that is not root has no
// choice: its programs run as its own user.
type RunAs struct {
	// Mode says how the user is chosen; the zero value is [RunAsAuto].
	Mode RunAsMode
	// UID and GID are the user, with [RunAsUser].
	UID, GID int
}

// RunAsMode is how the user is chosen that a program of a root host runs as.
type RunAsMode int

// The ways to choose a user.
const (
	// RunAsAuto is the owner of a workspace that the program may write, else a
	// user that nobody else is.
	RunAsAuto RunAsMode = iota
	// RunAsHost is the host's own user.
	RunAsHost
	// RunAsUser is the one that is named.
	RunAsUser
)
