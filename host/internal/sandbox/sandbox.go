// Package sandbox starts programs under resource limits and access limits, and
// ends them with everything that they started. It is the only place in the
// host that starts a process.
//
// The host re-executes itself as a small launcher, which applies the limits to
// itself and then becomes the program. What was enforced comes back in a
// [Report]; a limit that cannot be applied keeps the program from starting.
package sandbox

import (
	"context"
	"io"
	"os"
)

// Profile says what to start and what it may do.
type Profile struct {
	// Binary is the program, opened for reading. It is executed by descriptor,
	// so that what was hashed is what runs. Launch does not close it.
	Binary *os.File
	// Path is the program's configured path. It becomes argv[0].
	Path string
	// Args are the arguments after argv[0].
	Args []string
	// Env is the whole environment; nothing is inherited.
	Env []string
	// Dir is the working directory; "" means "/".
	Dir string
	// Limits bound what each process may use.
	Limits Limits
}

// Report says what is in force for one process.
type Report struct {
	// Layers are in force, e.g. "rlimits", "no_new_privs", "pdeathsig".
	Layers []string `json:"layers"`
	// Missing could not be had here, each with the reason.
	Missing []string `json:"missing,omitempty"`
}

// Launcher starts processes. Its processes die with it, and with the host.
type Launcher struct{}

// NewLauncher returns a launcher. The caller must Close it.
func NewLauncher() (*Launcher, error) { panic("to be written") }

// Close kills what still runs and returns when nothing is left.
func (l *Launcher) Close() error { panic("to be written") }

// Launch starts the program and returns once it has been executed, or says
// why it could not be.
func (l *Launcher) Launch(ctx context.Context, p Profile) (*Process, error) { panic("to be written") }

// Process is a program that was started, and all that it starts.
type Process struct {
	// Stdin is the program's standard input. Its end tells a plugin that the
	// host is gone.
	Stdin io.WriteCloser
	// Stdout and Stderr end when the program has ended, even if something that
	// it started still holds them open.
	Stdout, Stderr io.ReadCloser
	// Report says what is in force.
	Report Report
}

// PID is the program's process id.
func (p *Process) PID() int { panic("to be written") }

// Kill ends the program and every process that it started. It does not block;
// Done tells when it has happened.
func (p *Process) Kill() { panic("to be written") }

// Done is closed when the program has ended and nothing that it started is
// left.
func (p *Process) Done() <-chan struct{} { panic("to be written") }

// Exit says how the program ended. It may be called once Done is closed.
func (p *Process) Exit() Exit { panic("to be written") }

// Exit is how a program ended.
type Exit struct {
	// State is the wait status and the resource usage.
	State *os.ProcessState
	// Killed says that Kill was called before the program ended.
	Killed bool
	// Strays is how many processes it left behind, which were then killed.
	Strays int
}
