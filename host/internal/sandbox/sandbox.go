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
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Profile says what to start and what it may do.
type Profile struct {
	// Binary is the program, opened for reading: an executable for this
	// machine, or a script with a "#!" line. It is executed by descriptor, so
	// that what was hashed is what runs. Launch does not close it. A script
	// finds itself open as descriptor 3, because its interpreter reads it from
	// there.
	Binary *os.File
	// Path is the program's configured path. It becomes argv[0].
	Path string
	// Args are the arguments after argv[0].
	Args []string
	// Env is the whole environment; nothing is inherited.
	Env []string
	// Dir is the working directory, an absolute path; "" means "/".
	Dir string
	// Limits bound what each process may use.
	Limits Limits
}

// check refuses what no launcher could start, so that the operator reads a
// reason instead of an error number.
func (p *Profile) check() error {
	if p.Binary == nil {
		return errors.New("no binary is open")
	}
	if p.Path == "" {
		return errors.New("the program has no path")
	}
	if p.Dir != "" && !filepath.IsAbs(p.Dir) {
		return fmt.Errorf("the working directory %q is not an absolute path", p.Dir)
	}
	if strings.ContainsRune(p.Path, 0) || strings.ContainsRune(p.Dir, 0) {
		return errors.New("a path contains a NUL byte")
	}
	for i, arg := range p.Args {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("argument %d contains a NUL byte", i+1)
		}
	}
	for _, entry := range p.Env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.ContainsRune(name, 0) {
			return fmt.Errorf("environment entry %q is not NAME=value", name)
		}
		if strings.ContainsRune(value, 0) {
			return fmt.Errorf("environment variable %s contains a NUL byte", name)
		}
	}
	if err := p.Limits.check(); err != nil {
		return err
	}
	info, err := p.Binary.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is not a regular file but %s; give the path of the program itself", kindOf(info.Mode()))
	}
	return nil
}

func kindOf(mode os.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&os.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&os.ModeSocket != 0:
		return "a socket"
	case mode&os.ModeDevice != 0:
		return "a device"
	default:
		return mode.Type().String()
	}
}

// startTimeout bounds the time from the fork until the program is executed.
// It is some milliseconds on an idle machine.
const startTimeout = 20 * time.Second

var (
	errLauncherClosed = errors.New("the launcher is closed")
	errSlowStart      = fmt.Errorf("it was not executed within %v; the machine may be overloaded", startTimeout)
)

// Launcher starts processes. Its processes die with it, and with the host.
// Its methods may be called by several goroutines at a time.
type Launcher struct {
	forks chan func()   // run one by one by the permanent thread
	quit  chan struct{} // closed by Close: the permanent thread ends
	gone  chan struct{} // closed when the permanent thread has ended

	sweeping sync.Mutex // held while orphans are killed; taken before no other

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
	if err := adoptOrphans(); err != nil {
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
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("execute %s: %w", p.Path, err)
	}
	order, err := newOrder(&p).encode()
	if err != nil {
		return nil, fmt.Errorf("execute %s: %w", p.Path, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errSlowStart)
	defer cancel()
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("execute %s: %w", p.Path, err)
	}

	proc, talk, err := l.fork(p.Binary)
	if err != nil {
		return nil, fmt.Errorf("execute %s: %w", p.Path, err)
	}
	stop := context.AfterFunc(ctx, proc.Kill)
	report, err := talk.run(order)
	talk.close()
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		proc.Kill()
		<-proc.Done()
		defer proc.closeStdio()
		if errors.Is(err, errNoReport) {
			err = fmt.Errorf("%w (%v)%s", err, proc.Exit().State, firstLine(proc.Stderr))
		}
		return nil, fmt.Errorf("execute %s: %w", p.Path, explain(err, p.Binary))
	}
	proc.Report = report
	return proc, nil
}

// fork starts the launcher program from the permanent thread and registers it,
// so that Close cannot miss it.
func (l *Launcher) fork(binary *os.File) (*Process, *talk, error) {
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
	p.stdout.end()
	p.stderr.end()
	l.mu.Lock()
	delete(l.live, p)
	l.mu.Unlock()
	close(p.done)
}
