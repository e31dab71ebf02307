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

// Process is a started command with all processes that it starts. Its methods are safe for
// concurrent use.
type Process struct {
	// Stdin writes to the command's standard input, after [Command.Stdin]. It is nil unless
	// [Command.OpenStdin] is set. It is closed when the command ends, and the caller may close
	// it earlier.
	Stdin io.WriteCloser

	streams *streams
	kill    chan struct{} // closed by Kill
	killing sync.Once
	done    chan struct{}

	// Written before done is closed, read afterwards.
	result Result
	err    error

	mu      sync.Mutex // guards running
	running *running   // nil before the start and after the end of the command
}

// Result describes how a command ended.
type Result struct {
	// ExitCode is the command's exit code; -1 if a signal ended it or the code is unknown.
	ExitCode int
	// Signal is the signal that ended the command, or 0.
	Signal syscall.Signal
	// TimedOut, Canceled and Killed report that the command was stopped: by the deadline of
	// its context, by its cancellation, or by [Process.Kill]. All are false if the command
	// ended before.
	TimedOut, Canceled, Killed bool
	// Stdout and Stderr are the recorded output.
	Stdout, Stderr Capture
	// Dir is the command's working directory at its end; "" if it no longer exists or is
	// unknown.
	Dir string
	// Duration is the time from the command's start to its own end.
	Duration time.Duration
	// CPUTime is the CPU time of the command and all processes that it started.
	CPUTime time.Duration
	// MaxRSS is the largest resident set of these processes. It includes the reaper's few MiB.
	MaxRSS tool.ByteSize
	// Background reports that the command ended by itself and left running processes, which
	// were then killed.
	Background bool
	// Strays is the number of processes that outlived the command and were killed.
	Strays int
	// Survivors is the number of processes that could not be killed within some seconds. It is
	// 0 unless a process hangs in the kernel or multiplies faster than it can be killed.
	Survivors int
	// Restricted reports that the command's rules were in force.
	Restricted bool
}

// errStopped is the error of a start that Kill interrupted.
var errStopped = errors.New("it was killed while it was started")

// Start starts a command and returns once it is executing, or returns why it could not be
// started. When ctx ends, even later, the command is stopped as described at [Command.Grace];
// a command that should outlive a call needs another context. [Process.Wait] returns the
// result; calling it is optional.
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

// open opens the streams of a command before its start.
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

// Wait waits until the command and all its processes have ended, and returns the result. It
// does not wait for the end of the output. Any number of goroutines may call it. An error
// means that the command killed its reaper, so that its exit status is unknown.
func (p *Process) Wait() (Result, error) {
	<-p.done
	return p.result, p.err
}

// Done returns a channel that is closed when the command and all its processes have ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill kills the command and all its processes. It does not block; see Done. Calling it again,
// or after the end, does nothing.
func (p *Process) Kill() { p.killing.Do(func() { close(p.kill) }) }

// Signal signals the command and its process group, as a terminal does. It returns
// [os.ErrProcessDone] if the command has ended.
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

// setRunning enables Signal, or disables it if r is nil.
func (p *Process) setRunning(r *running) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = r
}

// stopped records why the command is stopped.
func (r *Result) stopped(ctx context.Context) {
	r.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
	r.Canceled = !r.TimedOut
}

// exited records how the command ended.
func (r *Result) exited(status syscall.WaitStatus) {
	r.ExitCode = status.ExitStatus() // -1 for a signal
	if status.Signaled() {
		r.Signal = status.Signal()
	}
}
