// Package sandbox starts programs under resource limits and confinement, and ends them
// with everything that they started. It is the only package of the host that starts a
// process.
//
// The host re-executes itself as a small launcher (package launch), which confines itself and
// then becomes the program. A [Report] says what is in force. A limit that cannot be applied
// prevents the start, and so does a missing layer that the profile requires. Other layers are
// left out if the machine does not have them.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
	"github.com/toolhost/toolhost/internal/proctree"
)

// sweepTimeout bounds the killing of processes that a program left behind.
const sweepTimeout = 10 * time.Second

// startTimeout bounds the time from the fork to the execution of the program, which takes
// some milliseconds on an idle machine.
const startTimeout = 20 * time.Second

var (
	errLauncherClosed = errors.New("the launcher is closed")
	errSlowStart      = fmt.Errorf("it was not executed within %v; the machine may be overloaded", startTimeout)
)

// Launcher starts processes. They end with it. If the host is killed, the programs die, too
// (not on macOS); with a PID namespace or a control group, so does everything that they
// started. It is safe for concurrent use.
type Launcher struct {
	forks chan func()   // run one by one by the permanent thread
	quit  chan struct{} // closed by Close: the permanent thread ends
	gone  chan struct{} // closed when the permanent thread has ended

	owning   sync.Mutex // held while programs get users and their files
	sweeping sync.Mutex // held while orphans are killed; no lock is taken under it

	newGroups func() (*groups, error)
	making    sync.Mutex // guards groups; held while a group is made
	groups    *groups    // nil before the first group

	mu     sync.Mutex // guards everything below
	closed bool
	live   map[*Process]struct{}
	reaper *reaper // nil before the first program

	missing       map[Layer]Gap // layers that this machine does not have
	withoutReaper bool          // set by tests, before the first program
}

// NewLauncher returns a launcher. The caller must Close it. On Linux it makes this process
// inherit orphans (PR_SET_CHILD_SUBREAPER) for the rest of its life, so that no process
// can leave the tree of a program.
//
// The error means that the machine lacks something that the launcher needs.
func NewLauncher() (*Launcher, error) {
	if err := proctree.AdoptOrphans(); err != nil {
		return nil, fmt.Errorf("start launcher: %w", err)
	}
	l := &Launcher{
		forks: make(chan func()),
		quit:  make(chan struct{}),
		gone:  make(chan struct{}),
		live:  map[*Process]struct{}{},

		missing: missingHere(),

		newGroups: newGroups,
	}
	go l.runThread() // owned by l, ends at Close
	return l, nil
}

// Close kills all programs and returns when nothing is left. Later calls wait for the same.
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
	if first {
		l.closeReaper()
		l.closeGroups()
	}
	return nil
}

// Launch starts the program and returns when it is executed. The error tells an operator
// why it was not; it is a [*MissingError] if this machine lacks a required layer. If ctx
// ends first, or after 20 seconds, Launch gives up and leaves nothing running. After Launch
// has returned, ctx has no effect on the program.
func (l *Launcher) Launch(ctx context.Context, p Profile) (*Process, error) {
	proc, err := l.confine(ctx, &p, l.gaps(), false)
	if err != nil {
		return nil, fmt.Errorf("execute %s: %w", p.Path, explain(err, p.Binary))
	}
	return proc, nil
}

// Try reports what would be in force for a program with this profile, and does not start
// it: the launcher does everything but execute it. Try remembers nothing. Its errors are
// those of Launch.
func (l *Launcher) Try(ctx context.Context, p Profile) (Report, error) {
	proc, err := l.confine(ctx, &p, missingHere(), true)
	if err != nil {
		return Report{}, explain(err, p.Binary)
	}
	defer proc.closeStdio()
	<-proc.Done()
	return proc.Report, nil
}

// confine starts the program, or only the launcher, and tries again while protected files are
// replaced during the start: git replaces .git/config with each change. Each attempt examines
// the files again.
func (l *Launcher) confine(ctx context.Context, p *Profile, known map[Layer]Gap, dry bool) (*Process, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errSlowStart)
	defer cancel()
	const attempts = 100
	for n := 1; ; n++ {
		proc, err := l.confineOnce(ctx, p, known, dry)
		if step, ok := errors.AsType[*launch.StepError](err); !ok || !step.Moved || n == attempts {
			return proc, err
		}
	}
}

// confineOnce starts the program, or only the launcher, with all layers of its profile. It
// tries again without each layer that turns out to be missing.
func (l *Launcher) confineOnce(ctx context.Context, p *Profile, known map[Layer]Gap, dry bool) (*Process, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	plan := newPlan(p, known)
	for {
		if err := plan.check(); err != nil {
			return nil, err
		}
		proc, err := l.try(ctx, plan, dry)
		if err == nil {
			return proc, nil
		}
		gap, ok := plan.gap(err)
		if !ok || !plan.drop(gap) {
			return nil, err
		}
		if !dry {
			l.remember(gap)
		}
	}
}

// gaps returns the layers that this machine is known to lack.
func (l *Launcher) gaps() map[Layer]Gap {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.missing)
}

func (l *Launcher) remember(gap Gap) {
	if !gap.lasting() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missing[gap.Layer] = gap
}

// try starts the program as planned, or only the launcher.
func (l *Launcher) try(ctx context.Context, plan *plan, dry bool) (*Process, error) {
	if !dry {
		if err := l.handOver(ctx, plan); err != nil {
			return nil, err
		}
	}
	group, err := l.makeGroup(plan)
	if err != nil {
		return nil, err
	}
	places := plan.places() // before the launcher examines them
	o := plan.order()
	o.Try = dry
	order, err := o.Encode()
	if err != nil {
		group.remove()
		return nil, err
	}
	proc, talk, err := l.fork(ctx, plan, group)
	if err != nil {
		group.remove()
		return nil, err
	}
	stop := context.AfterFunc(ctx, proc.Kill)
	done, err := talk.run(order)
	if err == nil && talk.proxy != nil && !dry {
		proc.Proxy, err = talk.listener()
	}
	talk.close()
	if !stop() {
		err = context.Cause(ctx)
	}
	if err == nil {
		proc.Report, proc.places, proc.ownUsers = plan.report(done), places, plan.on[LayerUserNS]
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

// makeGroup makes the control group of a program; nil if none is planned.
func (l *Launcher) makeGroup(plan *plan) (*group, error) {
	if !plan.on[LayerCgroup] {
		return nil, nil
	}
	l.making.Lock()
	defer l.making.Unlock()
	var made *group
	var err error
	if l.groups == nil {
		l.groups, err = l.newGroups()
	}
	c := &plan.profile.Confinement
	if err == nil && l.groups.missing.Layer != "" && slices.Contains(c.Require, LayerCgroup) && !c.WarnOnMissing {
		err = errors.New(l.groups.missing.Reason)
	}
	if err == nil {
		plan.groups = l.groups
		made, err = l.groups.make(plan.profile.name(), plan.groupLimits())
	}
	if err != nil {
		errno, _ := errors.AsType[syscall.Errno](err)
		return nil, &launch.StepError{Text: err.Error(), Layer: string(LayerCgroup), Errno: errno}
	}
	return made, nil
}

func (l *Launcher) closeGroups() {
	l.making.Lock()
	defer l.making.Unlock()
	l.groups.close() // it may be nil
}

// forkError means that the process could not be created.
type forkError struct{ err error }

func (e *forkError) Error() string { return e.err.Error() }
func (e *forkError) Unwrap() error { return e.err }

// fork starts the launcher program from the permanent thread and registers it, so that
// Close cannot miss it. The group, which may be nil, then belongs to the process.
func (l *Launcher) fork(ctx context.Context, plan *plan, group *group) (*Process, *talk, error) {
	pipes, err := openPipes(plan.proxied())
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
		if program, err = startLauncher(pipes, plan.profile.Binary, plan.attr(group)); err != nil {
			err = &forkError{err}
			return
		}
		proc = newProcess(program, pipes, group)
		l.live[proc] = struct{}{}
		if reaperErr := l.watchOver(proc); reaperErr != nil {
			proc.Kill() // sending the order then fails
		}
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
	return proc, &talk{order: pipes.order.w, report: pipes.report.r, proxy: pipes.proxy.r}, nil
}

// attend waits for the program's end and removes the rest of it.
func (l *Launcher) attend(p *Process) {
	p.reap()
	l.sweeping.Lock()
	p.exit.Strays, p.exit.Survivors = killOrphans(p.started)
	l.sweeping.Unlock()
	p.exit.OutOfMemory = p.group.outOfMemory()
	p.group.kill() // processes that the walk missed
	p.group.remove()
	p.stdout.End()
	p.stderr.End()
	l.release(p)
	close(p.done)
}
