package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin/runner"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

const (
	// maxHandshake bounds what a process may print before its handshake ends,
	// in bytes: go-plugin's own scanner stops the plugin at more.
	maxHandshake = 64 << 10
	// strayGrace is how long a process that printed something else may take to
	// print its handshake after all: that tells a stray print from a program
	// that is no plugin.
	strayGrace = time.Second
	// exitGrace is how long a process may take to end once it has closed its
	// output or its connection.
	exitGrace = time.Second
)

// processRunner is a plugin's process as go-plugin sees it. It keeps both
// outputs to itself and gives go-plugin the one line that it needs: go-plugin
// stops reading at a long line, and panics on some log lines.
//
// Its methods are safe before Start and after a Start that failed, since
// go-plugin calls them then.
type processRunner struct {
	launcher  *sandbox.Launcher
	profile   sandbox.Profile
	limit     time.Duration // for the handshake
	socketDir string        // where its socket must be
	log       *pluginLog
	redact    func(string) string

	proc      *sandbox.Process // nil until it was launched
	handshake string           // set once Start has succeeded
	stderr    capture
	readers   sync.WaitGroup

	// connected is closed when go-plugin has connected or has given up. Until
	// then Wait does not return, or go-plugin would cancel a connection that
	// it is still making, and leak it.
	connected chan struct{}
	// exited is closed when the process and all that it started have ended
	// and its outputs are read. It is nil if nothing was launched.
	exited chan struct{}

	mu      sync.Mutex // guards verdict, doomed and the first setting of proc
	verdict string     // why the host ended it; the first one counts
	doomed  bool       // it is to be killed as soon as it is there
}

var _ runner.Runner = (*processRunner)(nil)

// Start launches the process and returns when it has printed its handshake, or
// says why it has not. Then nothing of it is left.
func (r *processRunner) Start(ctx context.Context) error {
	proc, err := r.launcher.Launch(ctx, r.profile)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.proc = proc
	if r.doomed {
		proc.Kill()
	}
	r.mu.Unlock()
	r.exited = make(chan struct{})
	lines := make(chan string)
	r.readers.Go(func() { r.readStdout(lines) }) // ends with the process
	r.readers.Go(r.readStderr)                   // ends with the process
	go r.reap()                                  // ends with the process

	line, err := r.awaitHandshake(ctx, lines)
	if err == nil {
		err = checkHandshake(line, r.socketDir)
	}
	go discard(lines) // ends with readStdout
	if err != nil {
		r.end("")
		<-r.exited // bounded: the process was killed
		return err
	}
	r.handshake = line
	return nil
}

// reap waits for the process first and reads what is left in the pipes then: a
// grandchild that holds them open would hide the end.
func (r *processRunner) reap() {
	<-r.proc.Done()
	r.readers.Wait()
	// Pipes to and from nobody: there is nothing that closing could lose.
	_ = r.proc.Stdin.Close()
	_ = r.proc.Stdout.Close()
	_ = r.proc.Stderr.Close()
	r.log.flush()
	if n := r.proc.Exit().Survivors; n > 0 {
		r.log.log.Error("processes of the plugin do not end although they were killed", "processes", n)
	}
	close(r.exited)
}

func discard(lines <-chan string) {
	for range lines {
	}
}

// readStdout sends the lines up to the handshake, and logs the rest.
func (r *processRunner) readStdout(lines chan<- string) {
	in := bufio.NewReaderSize(r.proc.Stdout, maxHandshake)
	room := maxHandshake
	for room > 0 {
		part, err := in.ReadSlice('\n')
		room -= len(part)
		line := strings.TrimSpace(string(part))
		if line != "" {
			lines <- line
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		if toolpluginv1.IsHandshake(line) {
			break
		}
	}
	close(lines)
	eachLine(in, r.log.stdout)
}

func (r *processRunner) readStderr() {
	eachLine(bufio.NewReader(r.proc.Stderr), func(line []byte) {
		_, _ = r.stderr.Write(append(line, '\n'))
		r.log.stderr(line)
	})
}

// end kills the process and all that it started, and does not block.
func (r *processRunner) end(verdict string) {
	r.blame(verdict)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doomed = true
	if r.proc != nil {
		r.proc.Kill()
	}
}

// blame makes verdict the cause of the crash, unless there is one already. It
// completes "the plugin ...".
func (r *processRunner) blame(verdict string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.verdict == "" {
		r.verdict = verdict
	}
}

// dump asks a Go program to print its goroutines and to exit.
func (r *processRunner) dump() {
	_ = r.proc.Signal(unix.SIGQUIT) // it may have ended at this moment
}

// crash says how the process ended. It waits for its end. during is the part
// of the start that it did not survive, or "".
func (r *processRunner) crash(during string) *Crash {
	r.mu.Lock()
	verdict := r.verdict
	r.mu.Unlock()
	c := newDeath(r.proc.Exit(), verdict, r.redact(r.stderr.String()), r.profile.Limits).crash(time.Now())
	c.During = during
	return c
}

// Kill implements [runner.AttachedRunner].
func (r *processRunner) Kill(context.Context) error {
	r.end("")
	return nil
}

// Wait implements [runner.AttachedRunner]. Its error goes nowhere: what there
// is to say is in the crash report.
func (r *processRunner) Wait(context.Context) error {
	if r.exited != nil {
		<-r.connected
		<-r.exited
	}
	return nil
}

// Stdout holds the handshake and nothing else.
func (r *processRunner) Stdout() io.ReadCloser {
	return io.NopCloser(strings.NewReader(r.handshake + "\n"))
}

// Stderr is empty: see [pluginLog].
func (r *processRunner) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name implements [runner.Runner].
func (r *processRunner) Name() string { return filepath.Base(r.profile.Path) }

// ID is the process id, "" if there is no process.
func (r *processRunner) ID() string {
	if r.proc == nil {
		return ""
	}
	return strconv.Itoa(r.proc.PID())
}

// Diagnose implements [runner.Runner].
func (r *processRunner) Diagnose(context.Context) string { return "" }

// PluginToHost implements [runner.AddrTranslator]: both see the same files.
func (r *processRunner) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin implements [runner.AddrTranslator].
func (r *processRunner) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// crashError is a process that ended while it was being started.
type crashError struct {
	crash *Crash
	wire  error // what gRPC says of a process that had not ended by itself
	slow  bool  // it was ended because it took too long, for which the host may be the reason
}

func (e *crashError) Error() string {
	text := fmt.Sprintf("it %s during %s (%s)", e.crash.Cause, e.crash.During, e.crash.Detail)
	if e.wire != nil {
		text += ": " + cleanLine(cutText(e.wire.Error(), maxShort))
	}
	return text
}
