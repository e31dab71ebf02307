// Package daemon builds every part of the host from a configuration, runs
// them, reloads them and stops them in order. It is the only place that knows
// all parts; it can be built and run in a test as well as by the command line.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/store"
)

// Options are what a Daemon is built from; all but Load and Brief are required.
type Options struct {
	Config *config.Config
	// Load reads the configuration anew for a reload; nil means that there is
	// none.
	Load func() (*config.Config, error)
	// Brief says that the daemon is there for one command only.
	Brief   bool
	Version string
	Logger  hclog.Logger
}

// Daemon is a running host. It holds its state directory.
type Daemon struct {
	opts Options
	// config is opts.Config, or what a reload has put in its place.
	config atomic.Pointer[config.Config]
	ready  chan struct{} // closed when the tools of every plugin are known
	parts  parts
	agent  auth.Token // the host's own, for agents on this machine

	reloading sync.Mutex // one reload at a time
	ruled     ruled

	stopping chan struct{} // closed when the host begins to stop
	drained  func() error  // begins to stop, once, and returns when no call is under way
	close    func() error
}

// HeldError says that another host holds the state directory: calls go to that
// one.
type HeldError = store.HeldError

// New builds a daemon. Nothing runs until Start; the caller must Close it in
// any case. If another process holds the state directory, the error is a
// [*HeldError].
func New(ctx context.Context, opts Options) (*Daemon, error) {
	d := &Daemon{opts: opts, ready: make(chan struct{}), stopping: make(chan struct{})}
	d.config.Store(opts.Config)
	living := context.WithoutCancel(ctx)
	d.drained = sync.OnceValue(func() error { return d.drain(living) })
	d.close = sync.OnceValue(func() error { return errors.Join(d.drained(), d.parts.stop(living)) })
	if err := d.build(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Start learns the tools of every plugin, starting those that it does not know
// yet, and records how calls ended under which the last host was killed. A
// plugin that cannot be started is logged and listed with the reason; it does
// not keep the host from starting. Wrong settings do, and rules that fit no tool:
// a configuration is used as a whole or not at all. Start is called once.
func (d *Daemon) Start(ctx context.Context) error {
	defer close(d.ready)
	if err := d.endUnfinished(ctx); err != nil {
		return err
	}
	if err := d.parts.supervisor.Start(ctx); err != nil {
		return fmt.Errorf("start plugins: %w", err)
	}
	// Only now are the tools known of plugins that were never started.
	return d.ruled.begin(d.opts)
}

// ServeMCP starts the daemon and serves one MCP client over a pair of streams
// until it closes in or ctx ends. The client is answered at once; what depends
// on the tools of plugins that are still starting waits for them. At the end of ctx
// calls have the time to finish that the configuration gives them.
func (d *Daemon) ServeMCP(ctx context.Context, in io.ReadCloser, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { // ends with the calls, waited for below
		defer end()
		drained <- d.drained()
	})
	started := make(chan error, 1)
	go func() { // ends with ctx, waited for below
		err := d.Start(ctx)
		if err != nil {
			cancel(err)
		}
		started <- err
	}()
	err := d.parts.mcp.ServeStdio(serving, in, out)
	if !stop() {
		err = errors.Join(err, <-drained)
	}
	cancel(nil)
	if startErr := <-started; !errors.Is(startErr, context.Canceled) {
		err = errors.Join(err, startErr)
	}
	return err
}

// Close stops everything in order and returns when no process is left. It may
// be called more than once.
func (d *Daemon) Close() error { return d.close() }
