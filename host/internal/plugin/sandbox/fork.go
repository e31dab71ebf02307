package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
	"github.com/toolhost/toolhost/internal/proctree"
)

type pipe struct{ r, w *os.File }

// pipes connect the host with a launcher and then with its program.
type pipes struct {
	stdin, stdout, stderr, order, report pipe

	proxy pipe // a pair of sockets, or nothing
}

func openPipes(proxied bool) (*pipes, error) {
	var p pipes
	if proxied {
		var err error
		if p.proxy, err = socketPair(); err != nil {
			return nil, err
		}
	}
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
	closeAll(p.stdin.r, p.stdout.w, p.stderr.w, p.order.r, p.report.w, p.proxy.w)
}

func (p *pipes) closeOurs() {
	closeAll(p.stdin.w, p.stdout.r, p.stderr.r, p.order.w, p.report.r, p.proxy.r)
}

// closeAll closes pipe ends. Some may be nil.
func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing is buffered that could be lost
	}
}

// startLauncher runs the host's own program as a launcher. The parent-death signal depends
// on the thread that calls it.
func startLauncher(p *pipes, binary *os.File, sys *syscall.SysProcAttr) (*os.Process, error) {
	self, err := SelfPath()
	if err != nil {
		return nil, err
	}
	files := []*os.File{
		p.stdin.r, p.stdout.w, p.stderr.w,
		launch.ProgramFD: binary, launch.OrderFD: p.order.r, launch.NoticeFD: p.report.w,
	}
	if p.proxy.w != nil {
		files = append(files, p.proxy.w)
	}
	return os.StartProcess(self, []string{"toolhost", launch.Argument}, &os.ProcAttr{Dir: "/", Env: ownEnv(), Files: files, Sys: sys})
}

// ownEnv returns the environment of a launcher and of a reaper. It keeps the host's
// environment, with its secrets, from them. They use one processor only, with which the Go
// runtime starts faster. GORACE holds the options of a race detector, without which each
// would end a second late.
func ownEnv() []string {
	env := []string{"GOMAXPROCS=1"}
	if options, ok := os.LookupEnv("GORACE"); ok {
		env = append(env, "GORACE="+options)
	}
	return env
}

// runThread runs forks on one OS thread, which lives as long as the launcher: for the
// kernel, the end of the forking thread is the death of the parent.
//
// It is never the first thread of the process. The kernel gives orphans to the first
// thread, so that killOrphans can distinguish them from programs.
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

// errNoReport means that the launcher ended before it reported anything.
var errNoReport = errors.New("the launcher ended before it reported")

// talk is the host's side of the conversation with a launcher.
type talk struct {
	order, report *os.File
	proxy         *os.File // nil without a proxy
}

// run sends the order and waits until the program is executed, which closes the launcher's
// end of the report.
func (t *talk) run(order []byte) (*launch.Details, error) {
	// The notice of a launcher that refuses or dies before it has read the whole order says
	// more than the error of the write.
	_, writeErr := t.order.Write(order)
	closeAll(t.order)

	dec := json.NewDecoder(io.LimitReader(t.report, launch.MaxNotices))
	var first, second launch.Notice
	if err := dec.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errNoReport
		}
		return nil, fmt.Errorf("read the launcher's report: %w", err)
	}
	switch {
	case first.Failure != nil:
		return nil, first.Failure
	case first.Done == nil:
		return nil, errors.New("the launcher's report is empty")
	case writeErr != nil:
		return nil, fmt.Errorf("send orders: %w", writeErr)
	}
	err := dec.Decode(&second)
	switch {
	case errors.Is(err, io.EOF):
		return first.Done, nil
	case err != nil:
		return nil, fmt.Errorf("read the launcher's report: %w", err)
	case second.Failure != nil:
		return nil, second.Failure
	default:
		return nil, errors.New("the launcher reported twice")
	}
}

func (t *talk) close() {
	closeAll(t.order, t.report, t.proxy)
}

func bytesOf(in []string) []launch.Bytes {
	out := make([]launch.Bytes, len(in))
	for i, s := range in {
		out[i] = launch.Bytes(s)
	}
	return out
}
