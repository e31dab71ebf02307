package sandbox

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/toolhost/toolhost/internal/output"
	"github.com/toolhost/toolhost/internal/proctree"
)

// Process is a program that was started, and all that it starts. Its methods
// may be called by several goroutines at a time.
type Process struct {
	// Stdin is the program's standard input. Its end tells a plugin that the
	// host is gone. The caller closes it.
	Stdin io.WriteCloser
	// Stdout and Stderr end when the program has ended, even if something that
	// it started still holds them open. What was written until then can still
	// be read. The caller closes them.
	Stdout, Stderr io.ReadCloser
	// Report says what is in force.
	Report Report

	pid            int
	started        uint64 // start time, in the kernel's clock ticks since boot
	program        *os.Process
	group          *group // nil: it has none
	ownUsers       bool   // it has a namespace of users
	stdin          *os.File
	stdout, stderr *output.Reader
	done           chan struct{}
	exit           Exit // written before done is closed, read after

	mu     sync.Mutex // guards ended, killed and places
	ended  bool       // the pid may be somebody else's from here on
	killed bool
	places []place
}

// Exit is how a program ended.
type Exit struct {
	// State is the wait status and the resource usage.
	State *os.ProcessState
	// Killed says that Kill was called before the program ended.
	Killed bool
	// OutOfMemory says that a process of its tree was killed because all of them
	// together had used up the limit of memory.
	OutOfMemory bool
	// Strays is how many processes it left behind, which were then killed.
	Strays int
	// Survivors is how many of them could not be killed within some seconds:
	// 0 unless a process hangs in the kernel or multiplies faster than it can
	// be killed.
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

// PID is the program's process id. Another process may have it once the
// program has ended.
func (p *Process) PID() int { return p.pid }

// Kill ends the program and every process that it started, stopped ones too.
// It does not block; Done tells when it has happened. Calling it again, or
// after the end, does nothing.
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

// Signal sends a signal to the program alone, e.g. SIGQUIT to make a Go
// program print its goroutines and exit. It returns [os.ErrProcessDone] when
// the program has ended.
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

// Done is closed when the program has ended and nothing that it started is
// left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit says how the program ended. It waits for Done.
func (p *Process) Exit() Exit {
	<-p.done
	return p.exit
}

// markEnded makes Kill and Signal do nothing from now on.
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
