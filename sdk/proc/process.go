package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Process is a command that was started, and all that it starts. Its methods may
// be called by several goroutines at a time.
type Process struct {
	// Stdin writes to the command's standard input, after [Command.Stdin]. It is
	// nil unless [Command.OpenStdin] is set. It is closed when the command ends,
	// and may be closed before.
	Stdin io.WriteCloser

	streams *streams
	kill    chan struct{} // closed by Kill
	killing sync.Once
	done    chan struct{}

	// Written before done is closed, read after.
	result Result
	err    error

	mu      sync.Mutex // guards running
	running *running   // nil before the command is started and after its end
}

// Result is how a command has ended.
type Result struct {
	// ExitCode is the command's exit code, -1 if a signal ended it or the code is unknown.
	ExitCode int
	// Signal ended the command, 0 if none did.
	Signal syscall.Signal
	// TimedOut, Canceled and Killed say that the command was stopped, because the
	// deadline of its context had passed, because that was canceled, or by
	// [Process.Kill]; all are false for a command that ended before.
	TimedOut, Canceled, Killed bool
	// Stdout and Stderr are what it has written.
	Stdout, Stderr Capture
	// Dir is the working directory that the command had at its end, "" if it no longer exists
	// or is unknown.
	Dir string
	// Duration is the time from its start to its own end.
	Duration time.Duration
	// CPUTime is what the command, and all that it has started, has used.
	CPUTime time.Duration
	// MaxRSS is the largest resident set of one of these processes, at least the
	// few MiB of the reaper.
	MaxRSS tool.ByteSize
	// Background says that the command ended by itself and left processes running,
	// which were then killed.
	Background bool
	// Strays is how many processes of the command outlived it and were killed.
	Strays int
	// Survivors is how many of them could not be killed within some seconds: 0
	// unless a process hangs in the kernel or multiplies faster than it can be
	// killed.
	Survivors int
	// Restricted says that the command's rules were in force.
	Restricted bool
}

// errStopped is the error of a start that Kill has ended.
var errStopped = errors.New("it was killed while it was started")

// Start starts a command and returns once it has been executed, or says why it
// could not be. When ctx ends, then or later, the command is stopped as
// [Command.Grace] says; a command that is to outlive a call is given another
// context. [Process.Wait] tells how it has ended, and need not be called.
func Start(ctx context.Context, c Command) (*Process, error) {
	if ctx.Err() != nil {
		return nil, notStarted(ctx, &c)
	}
	c, err := c.checked()
	if err != nil {
		return nil, err
	}
	p, err := open(&c)
	if err != nil {
		return nil, err
	}
	if err := p.start(ctx, &c); err != nil {
		return nil, err
	}
	return p, nil
}

func notStarted(ctx context.Context, c *Command) error {
	return fmt.Errorf("start %s: %w", tool.VisibleName(c.Path), context.Cause(ctx))
}

// open opens the streams of a command that is to be started.
func open(c *Command) (*Process, error) {
	s, err := openStreams(c)
	if err != nil {
		return nil, err
	}
	p := newProcess(s)
	if c.OpenStdin {
		p.Stdin = s.stdin
	}
	return p, nil
}

func newProcess(s *streams) *Process {
	return &Process{streams: s, kill: make(chan struct{}), done: make(chan struct{})}
}

// Wait waits until the command has ended and nothing of it is left, and says how it has ended.
// The end of its output does not matter. It may be called by any number of goroutines. An
// error means that the command has killed its reaper, so how the command ended is unknown.
func (p *Process) Wait() (Result, error) {
	<-p.done
	return p.result, p.err
}

// Done is closed when the command has ended and nothing of it is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the command and everything that it has started. It does not block;
// Done tells when it has happened. Calling it again, or after the end, does
// nothing.
func (p *Process) Kill() { p.killing.Do(func() { close(p.kill) }) }

// Signal signals the command and its process group, as a terminal does. It
// returns [os.ErrProcessDone] when the command has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	if sig <= 0 || sig > 64 {
		return invalid("there is no signal %d", int(sig))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		return os.ErrProcessDone
	}
	return p.running.signal(sig)
}

// setRunning lets Signal reach the command, or, given nil, no longer.
func (p *Process) setRunning(r *running) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = r
}

// stopped notes why the command is stopped.
func (r *Result) stopped(ctx context.Context) {
	r.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
	r.Canceled = !r.TimedOut
}

// exited notes how the command has ended.
func (r *Result) exited(status syscall.WaitStatus) {
	r.ExitCode = status.ExitStatus() // -1 for a signal
	if status.Signaled() {
		r.Signal = status.Signal()
	}
}
