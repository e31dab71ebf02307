package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
	"github.com/toolhost/toolhost/internal/proctree"
)

// reap waits for the program's end, kills its process group and takes its exit status.
func (p *Process) reap() {
	for {
		err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	// The zombie still holds its pid, so no other group can have the number.
	p.markEnded()
	proctree.KillGroup(p.pid)
	// It cannot fail for a child that only this code reaps.
	p.exit.State, _ = p.program.Wait()
}

// killOrphans kills and reaps the processes that ended programs have left behind. Other
// children of the host have no no_new_privs, or started earlier.
func killOrphans(since uint64) (killed, left int) {
	return proctree.KillOrphans(sweepTimeout, func(pid int, s proctree.Stat) bool {
		return s.Started >= since && hasNoNewPrivs(pid)
	})
}

func hasNoNewPrivs(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && bytes.Contains(text, []byte("\nNoNewPrivs:\t1\n"))
}

// reaper is a process that kills the programs when the host ends, even programs that avoid
// the kernel's signal.
type reaper struct {
	process *os.Process
	pipe    *os.File
	gone    chan struct{} // closed when it has ended
}

// startReaper starts the reaper of a launcher.
func startReaper() (*reaper, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	self, err := SelfPath()
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	process, err := os.StartProcess(self, []string{"toolhost", launch.ReaperArgument}, &os.ProcAttr{
		Dir:   "/",
		Env:   ownEnv(),
		Files: []*os.File{r},
		Sys:   &syscall.SysProcAttr{Setsid: true}, // it outlives the host's session
	})
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &reaper{process: process, pipe: w, gone: make(chan struct{})}, nil
}

// watchOver adds a program to the reaper, and starts the reaper if there is none. The caller
// holds l.mu.
func (l *Launcher) watchOver(p *Process) error {
	if l.withoutReaper {
		return nil
	}
	if l.reaper == nil {
		reaper, err := startReaper()
		if err != nil {
			return err
		}
		l.reaper = reaper
		go l.attendReaper(reaper) // owned by l, ends with the reaper, which Close ends
	}
	_, err := l.reaper.pipe.WriteString(launch.ReaperProgram(p.pid, p.started))
	if err == nil && p.group != nil {
		_, err = l.reaper.pipe.WriteString(launch.ReaperGroup(p.group.parent))
	}
	return err
}

// attendReaper starts another reaper if the present one ends before the host closes it.
func (l *Launcher) attendReaper(g *reaper) {
	defer close(g.gone)
	_, _ = g.process.Wait() // only this code reaps it
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = g.pipe.Close() // nothing is buffered
	l.reaper = nil
	if l.closed {
		return
	}
	for p := range l.live {
		if err := l.watchOver(p); err != nil {
			p.Kill() // it could outlive the host
		}
	}
}

// release removes a program that has ended from the reaper.
func (l *Launcher) release(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reaper != nil {
		_, _ = l.reaper.pipe.WriteString(launch.ReaperEnd(p.pid)) // if the reaper has ended, the next one does not get p
	}
	delete(l.live, p)
}

// closeReaper ends the reaper and waits for it.
func (l *Launcher) closeReaper() {
	l.mu.Lock()
	g := l.reaper
	l.mu.Unlock()
	if g == nil {
		return
	}
	_ = g.pipe.Close() // nothing is buffered
	<-g.gone
}
