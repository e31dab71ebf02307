// Package daemon builds the parts of the host from a configuration, runs them, reloads them
// and stops them in order. It is the only package that knows all parts. A test can run it as
// the command line does.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/state/store"
)

// Options configure a [Daemon]. All but Load, Ephemeral and Yields are required.
type Options struct {
	Config *config.Config
	// Load reads the configuration for a reload; nil means that the daemon cannot reload.
	Load func() (*config.Config, error)
	// Ephemeral makes the daemon run for one command only.
	Ephemeral bool
	// Yields makes the daemon make room for a permanent one when asked. Unless it is ephemeral,
	// it then disconnects its clients and must be closed.
	Yields bool
	// Command returns the line that a person types for a command of toolhost to reach
	// this host, from any directory; nil means that the program's name is enough.
	Command func(words string) string
	Version string
	Logger  hclog.Logger
}

// Daemon is a running host. It holds its state directory.
type Daemon struct {
	opts Options
	// config is opts.Config, or the configuration of the last reload.
	config atomic.Pointer[config.Config]
	ready  chan struct{} // closed when the tools of every plugin are known
	// address is where the host listens; nil before that.
	address atomic.Pointer[string]
	parts   parts

	reloading sync.Mutex        // one reload at a time; guards agent and revoked once the host runs
	agent     auth.Token        // the host's own token, for agents on this machine
	revoked   []auth.Revocation // the revoked tokens
	// tokensChanged has room for one signal that tokens may end sooner than before.
	tokensChanged chan struct{}
	ruled         ruled

	stopping chan struct{} // closed when the host begins to stop
	idle     chan struct{} // closed when the host stops and no call runs any more
	drained  func() error  // begins to stop, once, and returns when no call runs any more
	yield    func()        // begins to stop, once, and returns at once
	close    func() error
}

// HeldError means that another host holds the state directory: it takes the calls.
type HeldError = store.HeldError

// New builds a daemon. Nothing runs until Start. The caller must Close it. If another process
// holds the state directory, the error is a [*HeldError].
func New(ctx context.Context, opts Options) (*Daemon, error) {
	d := &Daemon{opts: opts, ready: make(chan struct{}), stopping: make(chan struct{}), idle: make(chan struct{}), tokensChanged: make(chan struct{}, 1)}
	d.config.Store(opts.Config)
	living := context.WithoutCancel(ctx)
	d.drained = sync.OnceValue(func() error { return d.drain(living) })
	d.yield = sync.OnceFunc(func() {
		d.parts.front.beside(func(context.Context) { _ = d.drained() }) // Close returns the error
	})
	d.close = sync.OnceValue(func() error { return errors.Join(d.drained(), d.parts.stop(living)) })
	if err := d.build(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Start learns the tools of every plugin, starts plugins whose tools are not known yet, and
// records the end of calls during which the last host was killed. A plugin that cannot be
// started is logged and listed with the reason, and does not prevent the start of the host.
// Wrong settings do, and so do rules that fit no tool: a configuration is used as a whole or
// not at all. Start is called once.
func (d *Daemon) Start(ctx context.Context) error {
	defer close(d.ready)
	if err := d.endUnfinished(ctx); err != nil {
		return err
	}
	if err := d.parts.supervisor.Start(ctx); err != nil {
		return fmt.Errorf("start plugins: %w", err)
	}
	d.warn(d.config.Load())
	if err := d.tellOpen(ctx); err != nil {
		return err
	}
	// The tools of plugins that were never started before are known now.
	return d.ruled.begin(d.opts, d.parts.catalog)
}

// maxAnswers bounds how long a client may take for its last answers.
const maxAnswers = 5 * time.Second

// StartFor starts the daemon and runs serve at the same time. serve serves one client over
// the control socket until the client leaves or its context ends. The daemon drains when it
// cannot start, when it yields, and when ctx ends: calls then have the configured grace
// period to finish, and the context of serve ends some time later, so that the client can
// read its answers. Close must follow.
func (d *Daemon) StartFor(ctx context.Context, serve func(context.Context) error) error {
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	letGo := func() { _ = d.drained() } // Close returns the error
	defer context.AfterFunc(ctx, letGo)()
	started := make(chan error, 1)
	go func() { // ends with starting, waited for below
		err := d.Start(starting)
		if err != nil {
			letGo()
		}
		started <- err
	}()
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	var ending sync.WaitGroup
	ending.Go(func() { d.endWhenIdle(serving, end) })
	err := serve(serving)
	end()
	ending.Wait()
	cancel()
	if startErr := <-started; startErr != nil && !errors.Is(startErr, context.Canceled) {
		return startErr
	}
	return err
}

// endWhenIdle ends the service of a client some time after the last call.
func (d *Daemon) endWhenIdle(serving context.Context, end context.CancelFunc) {
	select {
	case <-d.idle:
	case <-serving.Done():
		return
	}
	timer := time.AfterFunc(maxAnswers, end)
	defer timer.Stop()
	<-serving.Done()
}

// Close stops everything in order and returns when no process is left. It may be called more
// than once.
func (d *Daemon) Close() error { return d.close() }
