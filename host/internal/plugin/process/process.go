// Package process runs one process of a plugin: it checks the program, starts it
// in the sandbox, speaks the plugin contract with it, and reports how it ended.
//
// A [Process] is started once and never again. The package does not decide when
// a plugin runs; package supervisor does. It is the only package of the host
// that knows go-plugin and gRPC.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/internal/memlimit"
	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

const (
	// ExitGrace is how long a process may take to exit after it has closed its
	// output or its connection.
	ExitGrace = time.Second
	// DeathTimeout is how long the system may take to end a killed process. Only
	// a process that hangs in the kernel takes longer.
	DeathTimeout = 5 * time.Second
	// killTimeout is how long go-plugin may take to end a process gently.
	killTimeout = 3 * time.Second
)

// Options describe a process. All fields without a default are required.
type Options struct {
	// Plugin is the name of the plugin's block; "" means Profile.Name.
	Plugin string
	// Launcher starts the process. The caller closes it after the process has
	// ended.
	Launcher *sandbox.Launcher
	// Profile describes the program and its confinement. [New] adds the scratch
	// directory, the directory of the socket and the environment. The first of its own
	// directories is that of its state; without one, [New] makes one that
	// [Process.Discard] removes. The default of its working directory is that one, too. The
	// binary must stay open until [Process.Start] returns.
	Profile sandbox.Profile
	// RunDir is the directory in which the process gets its scratch directory and
	// the directory of its socket.
	RunDir string
	// PassEnv names variables of the host's environment that the process gets,
	// besides TZ. Env are further variables, as NAME=value. Both may be nil.
	PassEnv, Env []string
	// Network serves the network of the process; the zero value gives it none.
	Network Network
	// Secret returns the values that calls ask for; nil means that there are none.
	Secret SecretFunc
	// Logger receives the log lines of the plugin.
	Logger hclog.Logger
	// Redact removes secrets from a text. It is safe for concurrent use.
	Redact func(text string) string
	// StartTimeout bounds each phase of a start: the handshake, the connection,
	// Describe and Configure. ProbeTimeout bounds the health check that tells a
	// broken connection from an answer that looks like one.
	StartTimeout, ProbeTimeout time.Duration
}

// Process is one process of a plugin. Its methods are safe for concurrent use
// after [Process.Start] has returned; [Process.End] and [Process.Blame] are safe
// at any time.
type Process struct {
	opts         Options
	client       *plugin.Client
	wire         *wire // set by Start
	log          *pluginLog
	tickets      tickets
	proxy        *egress.Proxy // nil without one; set with running
	authority    *egress.Authority
	certificates string // the name of the file with what the process trusts, "" if there is none
	scratch      string
	ownState     string // the state directory, if it ends with the process
	socketDir    string
	handshake    string // the line, once the process has printed it
	stderr       capture
	readers      sync.WaitGroup

	// connected is closed when go-plugin has connected or has given up.
	connected chan struct{}
	// exited is closed when the process and everything that it started have
	// ended and their output is read. It is nil if nothing was launched.
	exited chan struct{}

	mu      sync.Mutex       // guards verdict, doomed and the assignment of running
	verdict string           // why the host ended it; the first one counts
	doomed  bool             // kill it as soon as it is launched
	running *sandbox.Process // nil until it is launched
}

// New prepares a process and starts nothing. The caller must call
// [Process.Discard].
func New(opts Options) (*Process, error) {
	config, certPEM, err := clientTLS(time.Now())
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp(opts.RunDir, "scratch")
	if err != nil {
		return nil, fmt.Errorf("make its scratch directory: %w", err)
	}
	p := &Process{opts: opts, scratch: scratch, log: newPluginLog(opts.Logger, opts.Redact), connected: make(chan struct{})}
	p.opts.Profile.Tmp = scratch
	p.opts.Profile.Own = slices.Clone(opts.Profile.Own)
	if len(opts.Profile.Own) == 0 {
		if p.ownState, err = os.MkdirTemp(opts.RunDir, "state"); err != nil {
			return nil, errors.Join(fmt.Errorf("make its state directory: %w", err), os.Remove(scratch))
		}
		p.opts.Profile.Own = []string{p.ownState}
	}
	p.opts.Profile.Dir = cmp.Or(opts.Profile.Dir, p.StateDir())
	p.opts.Profile.Env = append(p.environ(), "PLUGIN_CLIENT_CERT="+string(certPEM))
	p.client = p.newClient(config)
	p.opts.Profile.ProxyPort = egress.Port
	if p.opts.Profile.ProxyEnv, err = p.proxyEnv(); err != nil {
		p.Discard()
		return nil, err
	}
	return p, nil
}

// name is the name of the plugin's block.
func (p *Process) name() string { return cmp.Or(p.opts.Plugin, p.opts.Profile.Name) }

// StateDir returns the directory of the state of the process.
func (p *Process) StateDir() string { return p.opts.Profile.Own[0] }

// environ returns the environment of the process, without the variables of the
// contract. It holds nothing of the host's environment but the listed variables.
func (p *Process) environ() []string {
	env := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"LANG=C.UTF-8",
		"TMPDIR=" + p.scratch,
	}
	env = append(env, p.opts.Env...)
	if memory := p.opts.Profile.Limits.Memory; memory > 0 {
		env = append(env, fmt.Sprintf("GOMEMLIMIT=%d", memlimit.Heap(int64(memory))))
	}
	for _, name := range append([]string{"TZ"}, p.opts.PassEnv...) {
		value, ok := os.LookupEnv(name)
		if !ok || strings.HasPrefix(name, "PLUGIN_") || strings.HasPrefix(name, "TOOLHOST_") {
			continue
		}
		// Programs differ in which of two equal names they use: keep only one.
		env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		env = append(env, name+"="+value)
	}
	return env
}

// Try reports the confinement that the process would get, and starts nothing. If
// the error is a [*sandbox.MissingError], the report is that of a start without
// the missing layers.
func (p *Process) Try(ctx context.Context) (sandbox.Report, error) {
	// A start gives the directory to the user that the plugin runs as. Try changes
	// no owner, so that user needs access.
	if err := os.Chmod(p.scratch, 0o755); err != nil { //nolint:gosec // it is empty
		return sandbox.Report{}, err
	}
	profile := p.opts.Profile
	report, err := p.opts.Launcher.Try(ctx, profile)
	if err == nil {
		return report, nil
	}
	refused := notExecuted(err)
	if _, missing := errors.AsType[*sandbox.MissingError](err); !missing {
		return sandbox.Report{}, refused
	}
	profile.Confinement.WarnOnMissing = true
	if report, err = p.opts.Launcher.Try(ctx, profile); err != nil {
		return sandbox.Report{}, notExecuted(err)
	}
	return report, refused
}

// Start launches the process, reads its handshake and connects to it. The error
// is a [*RefusedError] if another attempt would fail in the same way, or a
// [*StartError] if the process ended.
func (p *Process) Start(ctx context.Context) error {
	if _, err := p.client.Start(); err != nil {
		close(p.connected)
		if p.exited == nil {
			return notExecuted(err)
		}
		return err
	}
	return p.phase(ctx, "the connection", p.dial)
}

// notExecuted explains why a program was not executed. A lack of resources may
// pass. Any other reason stays until it is corrected.
func notExecuted(err error) error {
	if missing, ok := errors.AsType[*sandbox.MissingError](err); ok {
		return refuse("its sandbox cannot be had on this machine", "%w", missing)
	}
	for _, passing := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EINTR, context.DeadlineExceeded} {
		if errors.Is(err, passing) {
			return err
		}
	}
	return refuse("its program could not be executed", "%w", err)
}

// dial connects to the process. go-plugin dials without a context: when ctx ends,
// the caller kills the process, and that ends the dialing.
func (p *Process) dial(ctx context.Context) error {
	dialed := make(chan error, 1)
	go func() { // ends with the process at the latest
		defer close(p.connected)
		protocol, err := p.client.Client()
		if err != nil {
			dialed <- err
			return
		}
		raw, err := protocol.Dispense(toolpluginv1.ServiceName)
		if w, ok := raw.(*wire); ok {
			w.secret, w.tickets = p.opts.Secret, &p.tickets
			p.wire = w
		}
		dialed <- err
	}()
	select {
	case err := <-dialed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// phase runs one step of the start within StartTimeout. If the step fails because
// the process ended or did not answer, the error is a [*StartError].
func (p *Process) phase(ctx context.Context, name string, step func(context.Context) error) error {
	tooSlow := fmt.Errorf("did not answer %s within %v", name, p.opts.StartTimeout)
	stepCtx, cancel := context.WithTimeoutCause(ctx, p.opts.StartTimeout, tooSlow)
	defer cancel()
	err := step(stepCtx)
	if err == nil {
		return nil
	}
	failed := &StartError{}
	switch {
	case errors.Is(err, errNonsense):
		return refuse("it broke the contract in "+name, "%s: %w", name, err)
	case errors.Is(context.Cause(stepCtx), tooSlow), status.Code(err) == codes.DeadlineExceeded: // gRPC's clock may be the first
		p.End(tooSlow.Error())
		failed.Slow = true
	case answered(err):
		p.End("failed in " + name)
		failed.Wire = err
	case !p.EndsWithin(ExitGrace):
		p.End("lost its connection during " + name)
		failed.Wire = err
	}
	if !p.EndsWithin(DeathTimeout) {
		return fmt.Errorf("process %d does not end although it was killed: %w", p.PID(), err)
	}
	failed.Crash = p.Crash(name)
	return failed
}

// End kills the process and everything that it started. It does not block.
// verdict completes "the plugin ..." as the cause of the crash; see [Process.Blame].
func (p *Process) End(verdict string) {
	p.Blame(verdict)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doomed = true
	if p.running != nil {
		p.running.Kill()
	}
}

// Blame makes verdict the cause of the crash, unless there is one already. It
// completes "the plugin ...".
func (p *Process) Blame(verdict string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.verdict == "" {
		p.verdict = verdict
	}
}

// Dump makes a Go program print its goroutines and exit.
func (p *Process) Dump() {
	_ = p.running.Signal(unix.SIGQUIT) // it may have ended at this moment
}

// Exited returns a channel that is closed when the process and everything that it
// started have ended and their output is read. It is nil before the launch.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// EndsWithin waits for the end of the process for at most d and reports whether it
// has ended.
func (p *Process) EndsWithin(d time.Duration) bool { return within(d, p.exited) }

// PID returns the process id, 0 before the launch.
func (p *Process) PID() int {
	if p.running == nil {
		return 0
	}
	return p.running.PID()
}

// Sandboxed returns the process as the sandbox knows it, nil before the launch.
func (p *Process) Sandboxed() *sandbox.Process { return p.running }

// Discard ends the process, gently if possible, and frees everything that belongs
// to it. It takes at most 13 seconds.
func (p *Process) Discard() {
	killed := make(chan struct{})
	go func() { // ends when the process has ended
		defer close(killed)
		p.client.Kill()
	}()
	if !within(killTimeout, killed) {
		p.End("")
		if !within(DeathTimeout, killed) {
			p.opts.Logger.Error("the process does not end although it was killed", "pid", p.PID())
		}
	}
	p.End("") // go-plugin does not know of every process that it failed to start
	if p.exited != nil && !p.EndsWithin(DeathTimeout) {
		p.opts.Logger.Error("processes do not end although they were killed", "pid", p.PID())
	}
	if err := p.removeTrust(); err != nil {
		p.opts.Logger.Warn("cannot remove the certificates of the plugin's proxy", "error", err)
	}
	for _, dir := range []string{p.scratch, p.ownState, p.socketDir} {
		if dir == "" {
			continue
		}
		if err := removeAll(dir); err != nil {
			p.opts.Logger.Warn("cannot remove a directory of the plugin", "error", err)
		}
	}
}

// removeAll removes a directory, also below directories that the process has made read-only.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it is removed
	// The removal reports what cannot be read.
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			return root.Chmod(name, 0o700)
		}
		return nil
	})
	return errors.Join(os.RemoveAll(dir), err)
}

// within reports whether done is closed before d has passed.
func within(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	}
	select { // both may have happened
	case <-done:
		return true
	default:
		return false
	}
}

// StartError is the error of a process that ended while it was started.
type StartError struct {
	// Crash describes how it ended.
	Crash *Crash
	// Wire is what gRPC reported, if the process did not end by itself.
	Wire error
	// Slow is set if the host ended the process because it took too long. The
	// reason may be a busy host.
	Slow bool
}

func (e *StartError) Error() string {
	text := fmt.Sprintf("it %s during %s (%s)", e.Crash.Cause, e.Crash.During, e.Crash.Detail)
	if e.Wire != nil {
		text += ": " + cleanLine(excerpt.Head(e.Wire.Error(), maxShort))
	}
	return text
}
