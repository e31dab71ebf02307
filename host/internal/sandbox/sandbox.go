// Package sandbox starts programs under resource limits and access limits, and
// ends them with everything that they started. It is the only place in the
// host that starts a process.
//
// The host re-executes itself as a small launcher (see [Reexec]), which applies
// the limits to itself and then becomes the program. What was enforced comes
// back in a [Report]; a limit that cannot be applied keeps the program from
// starting.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/toolhost/toolhost/internal/proctree"
)

// sweepTimeout bounds the killing of what a program left behind.
const sweepTimeout = 10 * time.Second

// startTimeout bounds the time from the fork until the program is executed.
// It is some milliseconds on an idle machine.
const startTimeout = 20 * time.Second

var (
	errLauncherClosed = errors.New("the launcher is closed")
	errSlowStart      = fmt.Errorf("it was not executed within %v; the machine may be overloaded", startTimeout)
)

// Launcher starts processes. They die with it. If the host is killed, the
// programs die too (not on macOS); what they have started then lives on unless
// it notices, because that takes a PID namespace to prevent. Its methods may
// be called by several goroutines at a time.
type Launcher struct {
	forks chan func()   // run one by one by the permanent thread
	quit  chan struct{} // closed by Close: the permanent thread ends
	gone  chan struct{} // closed when the permanent thread has ended

	sweeping sync.Mutex // held while orphans are killed; nothing is taken under it

	mu     sync.Mutex // guards closed and live
	closed bool
	live   map[*Process]struct{}
}

// NewLauncher returns a launcher. The caller must Close it. On Linux it makes
// this process the one that inherits orphans (PR_SET_CHILD_SUBREAPER), for as
// long as this process lives, so that nothing that a program starts can leave
// its tree.
//
// Its error means that the machine lacks what the launcher needs, or that main
// does not call [Reexec].
func NewLauncher() (*Launcher, error) {
	if isLauncher() {
		// Going on would make every launcher start launchers of its own.
		return nil, errors.New("start launcher: main must call sandbox.Reexec before anything else")
	}
	if err := proctree.AdoptOrphans(); err != nil {
		return nil, fmt.Errorf("start launcher: %w", err)
	}
	l := &Launcher{
		forks: make(chan func()),
		quit:  make(chan struct{}),
		gone:  make(chan struct{}),
		live:  map[*Process]struct{}{},
	}
	go l.runThread() // owned by l, ends at Close
	return l, nil
}

// Close kills what still runs and returns when nothing is left. Calls after
// the first wait for the same.
func (l *Launcher) Close() error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	running := make([]*Process, 0, len(l.live))
	for p := range l.live {
		running = append(running, p)
	}
	l.mu.Unlock()

	for _, p := range running {
		p.Kill()
	}
	for _, p := range running {
		<-p.Done()
	}
	if first {
		close(l.quit)
	}
	<-l.gone
	return nil
}

// Launch starts the program and returns once it has been executed, or says
// why it could not be, in words for an operator. When ctx ends before that, or
// after 20 seconds, the start is given up and nothing is left running. Once
// Launch has returned, ctx has no effect on the program.
func (l *Launcher) Launch(ctx context.Context, p Profile) (*Process, error) {
	proc, err := l.start(ctx, &p)
	if err != nil {
		return nil, fmt.Errorf("execute %s: %w", p.Path, explain(err, p.Binary))
	}
	return proc, nil
}

func (l *Launcher) start(ctx context.Context, p *Profile) (*Process, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	order, err := newOrder(p).encode()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errSlowStart)
	defer cancel()
	proc, talk, err := l.fork(ctx, p.Binary)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, proc.Kill)
	proc.Report, err = talk.run(order)
	talk.close()
	if !stop() {
		err = context.Cause(ctx)
	}
	if err == nil {
		return proc, nil
	}
	proc.Kill()
	defer proc.closeStdio()
	state := proc.Exit().State
	if errors.Is(err, errNoReport) {
		return nil, fmt.Errorf("%w (%v)%s", err, state, firstLine(proc.Stderr))
	}
	return nil, err
}

// fork starts the launcher program from the permanent thread and registers it,
// so that Close cannot miss it.
func (l *Launcher) fork(ctx context.Context, binary *os.File) (*Process, *talk, error) {
	pipes, err := openPipes()
	if err != nil {
		return nil, nil, err
	}
	var proc *Process
	forked := make(chan struct{})
	start := func() {
		defer close(forked)
		l.mu.Lock()
		defer l.mu.Unlock()
		if err = context.Cause(ctx); err != nil {
			return
		}
		if l.closed {
			err = errLauncherClosed
			return
		}
		var program *os.Process
		if program, err = startLauncher(pipes, binary); err != nil {
			return
		}
		proc = newProcess(program, pipes)
		l.live[proc] = struct{}{}
	}
	select {
	case l.forks <- start:
		<-forked
	case <-l.quit:
		err = errLauncherClosed
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	pipes.closeTheirs()
	if err != nil {
		pipes.closeOurs()
		return nil, nil, err
	}
	go l.attend(proc) // owned by l, ends when the tree of proc is gone; Close waits for it
	return proc, &talk{order: pipes.order.w, report: pipes.report.r}, nil
}

// attend waits for the program's end and clears away what it leaves behind.
func (l *Launcher) attend(p *Process) {
	p.reap()
	l.sweeping.Lock()
	p.exit.Strays, p.exit.Survivors = killOrphans(p.started)
	l.sweeping.Unlock()
	p.stdout.End()
	p.stderr.End()
	l.mu.Lock()
	delete(l.live, p)
	l.mu.Unlock()
	close(p.done)
}
