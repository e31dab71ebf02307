package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/toolhost/toolhost/internal/output"
	"github.com/toolhost/toolhost/internal/proctree"
)

// Process is a started program and everything that it starts. It is safe for concurrent
// use.
type Process struct {
	// Stdin is the program's standard input. Its end tells a plugin that the host is gone.
	// The caller closes it.
	Stdin io.WriteCloser
	// Stdout and Stderr end with the program, even if another process still holds them
	// open. The caller can read everything written until then, and closes them.
	Stdout, Stderr io.ReadCloser
	// Proxy listens in the network namespace of a program with [NetworkProxy]; nil without one. The
	// caller closes it.
	Proxy net.Listener
	// Report describes the confinement in force.
	Report Report

	pid            int
	started        uint64 // start time, in the kernel's clock ticks since boot
	program        *os.Process
	group          *group // nil: it has no control group
	ownUsers       bool   // it has a user namespace
	stdin          *os.File
	stdout, stderr *output.Reader
	done           chan struct{}
	exit           Exit // written before done is closed, read after

	mu     sync.Mutex // guards ended, killed and places
	ended  bool       // another process may have the pid
	killed bool
	places []place
}

// Exit is how a program ended.
type Exit struct {
	// State is the wait status and the resource usage.
	State *os.ProcessState
	// Killed is set if Kill was called before the program ended.
	Killed bool
	// OutOfMemory is set if a process was killed because the whole tree had reached its
	// memory limit.
	OutOfMemory bool
	// Strays is the number of processes that the program left behind and the host killed.
	Strays int
	// Survivors is the number of them that the host could not kill within some seconds: 0
	// unless a process hangs in the kernel or forks faster than it can be killed.
	Survivors int
}

func newProcess(program *os.Process, pipes *pipes, group *group) *Process {
	p := &Process{
		Stdin:   pipes.stdin.w,
		pid:     program.Pid,
		started: proctree.StartTime(program.Pid),
		program: program,
		group:   group,
		stdin:   pipes.stdin.w,
		stdout:  output.NewReader(pipes.stdout.r),
		stderr:  output.NewReader(pipes.stderr.r),
		done:    make(chan struct{}),
	}
	p.Stdout, p.Stderr = p.stdout, p.stderr
	return p
}

// PID returns the program's process id. After the program ends, another process may have it.
func (p *Process) PID() int { return p.pid }

// Kill kills the program and every process that it started, including stopped ones. It does
// not block; see Done. Calling it again, or after the end, has no effect.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.killed = true
	p.group.kill()
	proctree.KillBelow(p.pid)
	proctree.KillGroup(p.pid)
}

// Signal sends a signal to the program only, e.g. SIGQUIT to make a Go program print its
// goroutines and exit. It returns [os.ErrProcessDone] if the program has ended.
func (p *Process) Signal(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return os.ErrProcessDone
	}
	if err := p.program.Signal(sig); err != nil {
		return fmt.Errorf("signal process %d: %w", p.pid, err)
	}
	return nil
}

// Done returns a channel that is closed when the program and everything that it started
// have ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit waits for the end and returns how the program ended.
func (p *Process) Exit() Exit {
	<-p.done
	return p.exit
}

// markEnded disables Kill and Signal.
func (p *Process) markEnded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.exit.Killed = p.killed
}

func (p *Process) closeStdio() {
	// Nothing is buffered that could be lost.
	_ = p.stdin.Close()
	_ = p.stdout.Close()
	_ = p.stderr.Close()
}
