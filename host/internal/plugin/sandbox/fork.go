package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
	"github.com/toolhost/toolhost/internal/proctree"
)

type pipe struct{ r, w *os.File }

// pipes connect the host with one launcher and then with its program.
type pipes struct {
	stdin, stdout, stderr, order, report pipe
}

func openPipes() (*pipes, error) {
	var p pipes
	for _, end := range []*pipe{&p.stdin, &p.stdout, &p.stderr, &p.order, &p.report} {
		var err error
		if end.r, end.w, err = os.Pipe(); err != nil {
			p.closeTheirs()
			p.closeOurs()
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				return nil, fmt.Errorf("%w: raise the host's limit of open files (ulimit -n)", err)
			}
			return nil, err
		}
	}
	return &p, nil
}

func (p *pipes) closeTheirs() {
	closeAll(p.stdin.r, p.stdout.w, p.stderr.w, p.order.r, p.report.w)
}

func (p *pipes) closeOurs() {
	closeAll(p.stdin.w, p.stdout.r, p.stderr.r, p.order.w, p.report.r)
}

// closeAll closes pipe ends, of which some may be nil.
func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing is buffered that could be lost
	}
}

// startLauncher runs this very program again as a launcher. The parent-death
// signal follows the thread that calls it.
func startLauncher(p *pipes, binary *os.File, sys *syscall.SysProcAttr) (*os.Process, error) {
	self, err := selfPath()
	if err != nil {
		return nil, err
	}
	return os.StartProcess(self, []string{"toolhost", launch.Argument}, &os.ProcAttr{
		Dir: "/",
		Env: ownEnv(),
		Files: []*os.File{
			p.stdin.r, p.stdout.w, p.stderr.w,
			launch.ProgramFD: binary, launch.OrderFD: p.order.r, launch.NoticeFD: p.report.w,
		},
		Sys: sys,
	})
}

// ownEnv is the environment of a launcher and of a reaper: without one they have the
// host's, with its secrets. With one processor the Go runtime starts faster; they have
// nothing for a second one. GORACE holds the options of a race detector, without which
// each would end a second late.
func ownEnv() []string {
	env := []string{"GOMAXPROCS=1"}
	if options, ok := os.LookupEnv("GORACE"); ok {
		env = append(env, "GORACE="+options)
	}
	return env
}

// runThread runs forks on one OS thread, which lives as long as the launcher:
// the kernel takes the end of the thread that forked for the parent's death.
//
// It is never the process's first thread. To that one the kernel gives the
// orphans, which is how killOrphans tells them from programs.
func (l *Launcher) runThread() {
	defer close(l.gone)
	proctree.OnOwnThread(func() {
		for {
			select {
			case fork := <-l.forks:
				fork()
			case <-l.quit:
				return
			}
		}
	})
}
