package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/proctree"
	"github.com/toolhost/toolhost/sdk/proc/internal/reaper"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Time-outs for steps that take milliseconds, unless the machine is overloaded or a command
// interferes.
const (
	startTimeout  = 20 * time.Second // from the fork of the reaper to the execution of the command
	killTimeout   = 2 * time.Second  // for the reaper to kill everything; then the plugin does
	sweepTimeout  = 10 * time.Second // to kill the processes of a lost reaper
	signalTimeout = time.Second      // for the reaper to empty its socket
)

// wakeInterval is how often a reaper is continued, in case its command stopped it. The reaper
// itself cannot prevent that.
const wakeInterval = 250 * time.Millisecond

var (
	errSlowStart = fmt.Errorf("it was not executed within %v; the machine may be overloaded", startTimeout)
	errLost      = errors.New("the command's reaper has ended before the command; all that was left of it has been killed")
)

// adoptOrphans makes this process the parent of the processes that lost reapers leave.
var adoptOrphans = sync.OnceValue(proctree.AdoptOrphans)

// sweeping is held while orphans are killed, since the orphans of all commands have the same
// parent.
var sweeping sync.Mutex

// running is the reaper of a command.
type running struct {
	process *os.Process
	since   uint64        // start time
	control *os.File      // to the reaper
	reports *os.File      // from the reaper
	gone    chan struct{} // closed when it has been reaped
	once    atomic.Bool   // it runs no further command: its socket has carried more than an order, say
}

// start starts the command with its streams, which it then owns.
func (p *Process) start(ctx context.Context, c *Command) error {
	r, order, limits, err := startReaper(c, p.streams.theirs) // order lacks what the reaper already has
	p.streams.closeTheirs()
	if err != nil {
		p.streams.closeOurs()
		return err
	}
	return p.attend(ctx, c, r, order, limits)
}

// attend waits for the start of a command whose reaper has its files, and returns the error if
// it fails. It attends to the command until its end.
func (p *Process) attend(ctx context.Context, c *Command, r *running, order []byte, limits []limit) error {
	p.streams.start(c)
	a := &attendant{p: p, r: r, c: c, limits: limits, begun: time.Now(), started: make(chan error, 1)}
	go a.run(ctx, order) // ends just after Wait has returned
	return <-a.started
}

// startReaper hands a command with its standard streams to a reaper.
func startReaper(c *Command, streams [3]*os.File) (*running, []byte, []limit, error) {
	limits, err := c.Limits.resources()
	if err != nil {
		return nil, nil, nil, err
	}
	order, err := c.order(limits).Encode()
	if err != nil {
		return nil, nil, nil, c.explainExecute(fmt.Errorf("%w: %w", syscall.E2BIG, err))
	}
	if err := adoptOrphans(); err != nil {
		return nil, nil, nil, fmt.Errorf("start commands: %w", err)
	}
	r, rest, err := takeReaper(append(streams[:], c.Files...), order)
	return r, rest, limits, err
}

func (c *Command) order(limits []limit) *reaper.Order {
	o := &reaper.Order{
		Parent: os.Getpid(),
		Path:   c.Path,
		Args:   append([]string{c.Path}, c.Args...),
		Env:    c.Env,
		Dir:    c.Dir,

		Terminal: c.Terminal != nil,
	}
	for _, l := range limits {
		o.Limits = append(o.Limits, reaper.Limit{Resource: l.resource, Soft: l.soft, Hard: l.hard})
	}
	if c.Rules != nil {
		o.Rules = &reaper.Rules{Read: c.Rules.Read, Execute: c.Rules.Execute, Write: c.Rules.Write, Devices: c.Rules.Devices}
		o.RulesOptional = c.Rules.Optional
	}
	return o
}

// newReaper starts a reaper.
func newReaper() (*running, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("start a reaper: %w", err)
	}
	defer null.Close()
	controls, control, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("start a reaper: %w", err)
	}
	defer controls.Close()
	reports, report, err := os.Pipe()
	if err != nil {
		_ = control.Close() // nothing is buffered
		return nil, fmt.Errorf("start a reaper: %w", err)
	}
	defer report.Close()
	r := &running{control: control, reports: reports, gone: make(chan struct{})}
	forked := make(chan error)
	go proctree.OnOwnThread(func() { // ends with the reaper, for which the attendant waits
		defer close(r.gone)
		var err error
		r.process, err = os.StartProcess("/proc/self/exe", []string{reaper.Name}, &os.ProcAttr{
			Dir: "/",
			// Nothing of the plugin's; waiting needs only one processor.
			Env:   []string{"GOMAXPROCS=1"},
			Files: []*os.File{null, null, null, reaper.ControlFD: controls, reaper.ReportFD: report},
			// If this process dies, the reaper must continue and kill the command, even if the
			// command stopped the reaper. The signal arrives when this thread ends.
			Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGCONT},
		})
		if err == nil {
			r.since = proctree.StartTime(r.process.Pid)
		}
		forked <- err
		if err == nil {
			_, _ = r.process.Wait() // only this reaps it, and the reaper itself reports how the command ended
		}
	})
	if err := <-forked; err != nil {
		r.close()
		return nil, fmt.Errorf("start a reaper: %w", err)
	}
	return r, nil
}

// socketPair returns two connected sockets. Operations on ours wait like those on Go's other
// files.
func socketPair() (theirs, ours *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(pair[1], true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1]))
	}
	return os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control"), nil
}

func (r *running) close() {
	_ = r.control.Close() // nothing is buffered
	_ = r.reports.Close()
}

// signal has the reaper signal the command.
func (r *running) signal(sig syscall.Signal) error {
	r.once.Store(true) // the command may have ended, and the next order would follow the signal
	// Does not fail for a socket.
	_ = r.control.SetWriteDeadline(time.Now().Add(signalTimeout))
	if _, err := r.control.Write([]byte{byte(sig)}); err != nil {
		return fmt.Errorf("send %v: %w", sig, err)
	}
	return nil
}

// kill closes the reaper's socket, which makes it kill everything.
func (r *running) kill() {
	r.once.Store(true)
	_ = r.control.Close() // nothing is buffered
	r.wake()
}

// wake continues a reaper that its command has stopped.
func (r *running) wake() {
	_ = r.process.Signal(unix.SIGCONT) // fails if the reaper has ended
}

// talk sends the order and passes on the reaper's reports until the reaper ends, or waits for the
// next order.
func (r *running) talk(order []byte, reports chan<- reaper.Report) {
	defer close(reports)
	// A reaper that refuses early reports more than this error would.
	_, _ = r.control.Write(order)
	for lines := bufio.NewReader(r.reports); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		report, err := reaper.ParseReport(line)
		if err != nil {
			continue
		}
		reports <- report
		if report.Ended != nil && report.Ended.Again {
			return
		}
	}
}

// attendant attends to one command from its start to its end.
type attendant struct {
	p      *Process
	r      *running
	c      *Command
	limits []limit
	begun  time.Time

	started chan error // receives the outcome of the start, once

	running, exited, ended bool
	again                  bool  // the reaper waits for the next order
	startErr               error // why the command was not started or not left running
	stopping               bool  // during the grace period

	preparing sync.WaitGroup // while the next command's reaper is started
}

// run returns when nothing is left of the command.
func (a *attendant) run(ctx context.Context, order []byte) {
	reports := make(chan reaper.Report)
	go a.r.talk(order, reports) // ends with the reaper, before run does
	done, kill := ctx.Done(), a.p.kill
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	wake := time.NewTicker(wakeInterval)
	defer wake.Stop()
	for {
		select {
		case <-wake.C:
			a.r.wake()
		case report, ok := <-reports:
			if !ok {
				a.finish()
				return
			}
			a.note(report, timer)
		case <-done:
			done = nil
			a.stop(ctx, timer)
		case <-kill:
			done, kill = nil, nil
			a.p.result.Killed = a.running && !a.exited && !a.p.result.TimedOut && !a.p.result.Canceled
			a.giveUp(errStopped)
			a.kill(timer)
		case <-timer.C:
			a.late(timer)
		}
	}
}

// note processes a report of the reaper.
func (a *attendant) note(report reaper.Report, timer *time.Timer) {
	result := &a.p.result
	switch {
	case report.Failed != nil:
		a.giveUp(a.explain(report.Failed))
		a.ended = true
	case report.Started != nil && a.startErr == nil:
		if !a.stopping {
			timer.Stop()
		}
		a.running = true
		a.begun = time.Now()
		result.Restricted = report.Started.Restricted
		a.p.setRunning(a.r)
		if a.stopping {
			a.terminate()
		}
		a.started <- nil
	case report.Exited != nil:
		a.p.setRunning(nil)
		a.exited = true
		result.Duration = time.Since(a.begun)
		result.exited(report.Exited.Status)
		if !a.stopping { // the remaining processes share the grace period
			timer.Reset(killTimeout)
		}
	case report.Ended != nil:
		a.ended, a.again = true, report.Ended.Again
		result.Strays = report.Ended.Strays
		result.Dir = report.Ended.Dir
		result.CPUTime = report.Ended.CPUTime
		result.MaxRSS = tool.ByteSize(report.Ended.MaxRSS) * tool.KiB
	}
}

// giveUp ends a start in progress.
func (a *attendant) giveUp(err error) {
	if !a.running && a.startErr == nil {
		a.startErr = err
	}
}

// stop stops the command because ctx has ended. A command has its grace period even if its
// start has not been reported yet: it may already run and hold locks.
func (a *attendant) stop(ctx context.Context, timer *time.Timer) {
	switch {
	case a.exited: // its processes are already being killed
	case a.c.Grace == 0:
		a.giveUp(fmt.Errorf("start %s: %w", tool.VisibleName(a.c.Path), context.Cause(ctx)))
		if a.running {
			a.p.result.stopped(ctx)
		}
		a.kill(timer)
	default:
		a.p.result.stopped(ctx)
		a.stopping = true
		timer.Reset(a.c.Grace)
		if a.running {
			a.terminate()
		}
	}
}

// terminate asks the command to end.
func (a *attendant) terminate() {
	// A stopped process handles no signal until it is continued. If the reaper cannot pass
	// these on, the grace period still ends.
	_ = a.r.signal(reaper.Spare)
	_ = a.p.Signal(unix.SIGTERM)
	_ = a.p.Signal(unix.SIGCONT)
}

func (a *attendant) kill(timer *time.Timer) {
	a.stopping = false
	a.p.setRunning(nil)
	a.r.kill()
	timer.Reset(killTimeout)
}

// late runs when the timer expires.
func (a *attendant) late(timer *time.Timer) {
	switch {
	case a.stopping, !a.running && a.startErr == nil:
		a.giveUp(errSlowStart)
		a.kill(timer)
	default:
		// The reaper does not work. Killing it ends its reports.
		proctree.KillBelow(a.r.process.Pid)
		_ = a.r.process.Kill() // fails if it has ended
	}
}

// finish cleans up after the reaper's last report.
func (a *attendant) finish() {
	a.p.setRunning(nil)
	// Without rules, a command can write reports of its own to the reaper's pipe in /proc. So
	// only the reaper of a restricted command runs another one.
	kept := a.c.Rules != nil && a.p.result.Restricted && a.running && a.exited && a.again && !a.r.once.Load() && keepReaper(a.r)
	if !kept {
		a.r.close()
		prepareReaper(&a.preparing)
	}
	result := &a.p.result
	if !a.ended {
		_ = a.r.process.Kill() // fails if it has ended
		<-a.r.gone
		strays, survivors := sweep(a.r.since)
		result.Strays, result.Survivors = strays, survivors
		a.giveUp(errLost)
		if !a.exited {
			result.ExitCode = -1
			result.Duration = time.Since(a.begun)
			a.p.err = errLost
		}
	}
	a.giveUp(errLost) // the reaper ended without a report of the start
	result.Background = result.Strays > 0 && !result.TimedOut && !result.Canceled && !result.Killed
	a.p.streams.finish()
	result.Stdout, result.Stderr = a.p.streams.capture(Stdout), a.p.streams.capture(Stderr)
	close(a.p.done)
	if a.startErr != nil {
		a.started <- a.startErr
	}
	if !kept {
		<-a.r.gone // it has sent its last report and only frees its memory, which need not delay others
	}
	a.preparing.Wait()
}

// sweep kills the processes that lost reapers left to this process. They are in separate
// sessions; other children of the plugin are in the plugin's session, and the first thread does
// not start reapers.
func sweep(since uint64) (killed, left int) {
	sweeping.Lock()
	defer sweeping.Unlock()
	own, err := unix.Getsid(0)
	if err != nil {
		return 0, 0 // cannot fail
	}
	return proctree.KillOrphans(sweepTimeout, func(_ int, s proctree.Stat) bool {
		return s.Started >= since && s.Session != own
	})
}

// explain returns why the reaper did not start the command.
func (a *attendant) explain(f *reaper.Failure) error {
	var err error = f.Errno
	switch f.Step {
	case reaper.StepExecutable:
		return a.c.explainExecute(err)
	case reaper.StepDir:
		return a.c.explainDir(err)
	case reaper.StepRules:
		e := tool.Errorf(tool.Unavailable, "this system cannot restrict the command to its rules")
		if f.Text != "" {
			err = errors.New(f.Text)
		}
		return e.WithHint("%v", err).WithCause(err)
	case reaper.StepLimit:
		l := a.limits[min(f.Index, len(a.limits)-1)]
		return fmt.Errorf("set limit %s to %d: %w", l.name, l.hard, err)
	case reaper.StepTerminal:
		return fmt.Errorf("make %s the controlling terminal: %w", a.c.Terminal.Name(), err)
	case reaper.StepReaper, reaper.StepFork, reaper.StepFiles:
	}
	return fmt.Errorf("start a command: %s: %w", f.Text, err)
}
