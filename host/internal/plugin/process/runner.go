package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/toolhost/toolhost/internal/excerpt"
	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

const (
	// maxHandshake bounds the bytes that a process may print until its handshake
	// ends. go-plugin's own scanner stops the plugin if a line is longer.
	maxHandshake = 64 << 10
	// strayGrace is how long a process that printed another line may take to print
	// its handshake. It tells a stray print from a program that is no plugin.
	strayGrace = time.Second
)

// pluginRunner is a [Process] as go-plugin starts it. It gives go-plugin the
// handshake line only, because go-plugin stops reading at a long line and panics
// on some log lines.
//
// go-plugin calls the methods before Start and after a failed Start too.
type pluginRunner struct{ *Process }

var _ runner.Runner = (*pluginRunner)(nil)

// Start launches the process and returns when it has printed its handshake. If it
// returns an error, nothing of the process is left.
func (r *pluginRunner) Start(ctx context.Context) error {
	launched, err := r.opts.Launcher.Launch(ctx, r.opts.Profile)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.running = launched
	r.serveNetwork(ctx, launched.Proxy)
	if r.doomed {
		launched.Kill()
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
		r.End("")
		<-r.exited // bounded: the process was killed, and its output is discarded
		if errors.Is(err, errSlowHandshake) {
			return &StartError{Crash: r.Crash("its start"), Slow: true}
		}
		return err
	}
	r.handshake = line
	return nil
}

// reap waits for the end of the process before it waits for the end of its
// output: a grandchild that holds the pipes open would hide the end.
func (r *pluginRunner) reap() {
	<-r.running.Done()
	r.readers.Wait()
	if r.proxy != nil {
		r.proxy.Close()
	}
	// The other end is unused, so an error loses nothing.
	_ = r.running.Stdin.Close()
	_ = r.running.Stdout.Close()
	_ = r.running.Stderr.Close()
	r.log.flush()
	if n := r.running.Exit().Survivors; n > 0 {
		r.log.log.Error("processes of the plugin do not end although they were killed", "processes", n)
	}
	close(r.exited)
}

func discard(lines <-chan string) {
	for range lines {
	}
}

// readStdout sends the lines up to the handshake and logs the rest.
func (r *pluginRunner) readStdout(lines chan<- string) {
	in := bufio.NewReaderSize(r.running.Stdout, maxHandshake)
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

func (r *pluginRunner) readStderr() {
	eachLine(bufio.NewReader(r.running.Stderr), func(line []byte) {
		_, _ = r.stderr.Write(append(line, '\n'))
		r.log.stderr(line)
	})
}

// errSlowHandshake is the error of a process without a handshake when its time has passed.
var errSlowHandshake = errors.New("it did not print its handshake in time")

// awaitHandshake returns the handshake if it is the first line of output. If ctx ends first, it
// tells the process to end. It does not wait for that: the process ends once its output is
// read, and the handshake may be on its way.
func (r *pluginRunner) awaitHandshake(ctx context.Context, lines <-chan string) (string, error) {
	var stray string
	var late <-chan time.Time
	for {
		select {
		case line, ok := <-lines:
			switch {
			case !ok && stray == "":
				return "", r.noHandshake()
			case !ok:
				return "", notAPlugin(stray)
			case !toolpluginv1.IsHandshake(line) && stray == "":
				stray = line
				late = time.After(strayGrace)
			case toolpluginv1.IsHandshake(line) && stray == "":
				return line, nil
			case toolpluginv1.IsHandshake(line):
				return "", refuse("it prints to standard output before its handshake",
					"it printed %q before its handshake: a plugin must not write to standard output", excerpt.Head(cleanLine(stray), maxShort))
			}
		case <-late:
			return "", notAPlugin(stray)
		case <-ctx.Done():
			r.End(fmt.Sprintf("did not print its handshake within %v", r.opts.StartTimeout))
			return "", errSlowHandshake
		}
	}
}

func notAPlugin(line string) error {
	return refuse("its program is not a plugin",
		"it is not a plugin: it printed %q instead of a handshake such as 1|%d|unix|...", excerpt.Head(cleanLine(line), maxShort), toolpluginv1.Version)
}

// noHandshake explains the end of the output before the handshake. Nearly always
// the process exits too.
func (r *pluginRunner) noHandshake() error {
	if r.EndsWithin(ExitGrace) {
		return &StartError{Crash: r.Crash("its handshake")}
	}
	return refuse("its program is not a plugin", "it is not a plugin: it closed its standard output without a handshake")
}

// checkHandshake refuses a handshake that go-plugin would accept by mistake, or
// would refuse with an unclear message.
func checkHandshake(line, socketDir string) error {
	for _, fault := range toolpluginv1.CheckHandshake(line, socketDir) {
		return refuse(fault.Brief, "handshake: %s", excerpt.Head(fault.Text, maxMessage))
	}
	return nil
}

// Kill implements [runner.AttachedRunner].
func (r *pluginRunner) Kill(context.Context) error {
	r.End("")
	return nil
}

// Wait implements [runner.AttachedRunner]. It does not return before go-plugin has
// connected or given up: go-plugin would cancel and leak a connection that it is
// still making. The error is nil because it has no reader.
func (r *pluginRunner) Wait(context.Context) error {
	if r.exited != nil {
		<-r.connected
		<-r.exited
	}
	return nil
}

// Stdout returns the handshake and nothing else.
func (r *pluginRunner) Stdout() io.ReadCloser {
	return io.NopCloser(strings.NewReader(r.handshake + "\n"))
}

// Stderr is empty: see [pluginLog].
func (r *pluginRunner) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name implements [runner.Runner].
func (r *pluginRunner) Name() string { return filepath.Base(r.opts.Profile.Path) }

// ID returns the process id, "" if there is no process.
func (r *pluginRunner) ID() string {
	if r.running == nil {
		return ""
	}
	return strconv.Itoa(r.running.PID())
}

// Diagnose implements [runner.Runner].
func (r *pluginRunner) Diagnose(context.Context) string { return "" }

// PluginToHost implements [runner.AddrTranslator]. Plugin and host see the same
// files.
func (r *pluginRunner) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin implements [runner.AddrTranslator].
func (r *pluginRunner) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
