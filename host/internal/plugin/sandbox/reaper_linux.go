package sandbox

import (
	"errors"
	"os"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// reaper is a process that kills the programs when this process ends, even programs
// that avoid the signal of the kernel.
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
	self, err := selfPath()
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	process, err := os.StartProcess(self, []string{"toolhost", launch.ReaperArgument}, &os.ProcAttr{
		Dir:   "/",
		Env:   ownEnv(),
		Files: []*os.File{r},
		Sys:   &syscall.SysProcAttr{Setsid: true}, // the end of the host's session must not end it
	})
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &reaper{process: process, pipe: w, gone: make(chan struct{})}, nil
}

// watchOver adds a program to the reaper, and starts the reaper if there is none. The
// caller holds l.mu.
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

// attendReaper starts another reaper if the present one ends too early.
func (l *Launcher) attendReaper(g *reaper) {
	defer close(g.gone)
	_, _ = g.process.Wait() // nobody else reaps it
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
		_, _ = l.reaper.pipe.WriteString(launch.ReaperEnd(p.pid)) // if it has ended, the next one does not get p
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
