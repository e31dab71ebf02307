package sandbox

import (
	"errors"
	"os"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// guard is a process that kills the programs when this one ends, even if they have
// got rid of the signal that the kernel sends then.
type guard struct {
	process *os.Process
	pipe    *os.File
	gone    chan struct{} // closed when it has been reaped
}

// startGuard starts the guard of a launcher.
func startGuard() (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	self, err := selfPath()
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	process, err := os.StartProcess(self, []string{"toolhost", launch.GuardArgument}, &os.ProcAttr{
		Dir:   "/",
		Env:   ownEnv(),
		Files: []*os.File{r},
		Sys:   &syscall.SysProcAttr{Setsid: true}, // whatever ends the host's session is not its end
	})
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &guard{process: process, pipe: w, gone: make(chan struct{})}, nil
}

// watchOver tells the guard of a program, and starts one if there is none. The
// caller holds l.mu.
func (l *Launcher) watchOver(p *Process) error {
	if l.unguarded {
		return nil
	}
	if l.guard == nil {
		guard, err := startGuard()
		if err != nil {
			return err
		}
		l.guard = guard
		go l.attendGuard(guard) // owned by l, ends with the guard, which Close ends
	}
	_, err := l.guard.pipe.WriteString(launch.GuardProgram(p.pid, p.started))
	if err == nil && p.group != nil {
		_, err = l.guard.pipe.WriteString(launch.GuardGroup(p.group.parent))
	}
	return err
}

// attendGuard starts another guard if the one that there is ends too early.
func (l *Launcher) attendGuard(g *guard) {
	defer close(g.gone)
	_, _ = g.process.Wait() // nobody else reaps it
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = g.pipe.Close() // nothing is buffered
	l.guard = nil
	if l.closed {
		return
	}
	for p := range l.live {
		if err := l.watchOver(p); err != nil {
			p.Kill() // better none than one that may outlive the host
		}
	}
}

// letGo tells the guard that a program has ended.
func (l *Launcher) letGo(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.guard != nil {
		_, _ = l.guard.pipe.WriteString(launch.GuardEnd(p.pid)) // if it has ended, the next one is not told of p
	}
	delete(l.live, p)
}

// closeGuard ends the guard and waits for it.
func (l *Launcher) closeGuard() {
	l.mu.Lock()
	g := l.guard
	l.mu.Unlock()
	if g == nil {
		return
	}
	_ = g.pipe.Close() // nothing is buffered
	<-g.gone
}
