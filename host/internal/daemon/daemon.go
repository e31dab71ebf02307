// Package daemon builds every part of the host from a configuration, runs
// them, and stops them in order. It is the only place that knows all parts;
// it can be built and run in a test as well as by the command line.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/catalog"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/mcpserver"
	"github.com/toolhost/toolhost/host/internal/pipeline"
	"github.com/toolhost/toolhost/host/internal/sandbox"
	"github.com/toolhost/toolhost/host/internal/supervisor"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Options are what a Daemon is built from; all are required.
type Options struct {
	Config  *config.Config
	Version string
	Logger  hclog.Logger
}

// Daemon is a running host.
type Daemon struct {
	launcher   *sandbox.Launcher
	supervisor *supervisor.Supervisor
	catalog    *catalog.Catalog
	pipeline   *pipeline.Pipeline
	mcp        *mcpserver.Server
	user       string
	ready      chan struct{} // closed when the tools of every plugin are known

	close func() error // runs once
}

// New builds a daemon. Nothing runs until Start; the caller must Close it in
// any case.
func New(opts Options) (*Daemon, error) {
	d := &Daemon{ready: make(chan struct{})}
	d.close = sync.OnceValue(d.stop)
	if err := d.build(opts); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Start learns the tools of every plugin, starting those that it does not know
// yet. A plugin that cannot be started is logged and listed with the reason;
// it does not keep the host from starting. Wrong settings do: a configuration
// is used as a whole or not at all. Start is called once.
func (d *Daemon) Start(ctx context.Context) error {
	defer close(d.ready)
	if err := d.supervisor.Start(ctx); err != nil {
		return fmt.Errorf("start plugins: %w", err)
	}
	return nil
}

// StartPlugins starts every plugin that does not run, to see whether it can.
// Those that cannot say why in Plugins.
func (d *Daemon) StartPlugins(ctx context.Context) {
	var starts sync.WaitGroup
	for _, p := range d.supervisor.Plugins() {
		if p.PID == 0 && p.Refused == "" && p.LastCrash == nil {
			starts.Go(func() { _ = d.supervisor.Restart(ctx, p.Name) }) // ends with the start; kept for Plugins
		}
	}
	starts.Wait()
}

// ServeMCP starts the daemon and serves one MCP client over a pair of streams
// until it closes in or ctx ends. The client is answered at once; what depends
// on the tools of plugins that are still starting waits for them.
func (d *Daemon) ServeMCP(ctx context.Context, in io.ReadCloser, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started := make(chan error, 1)
	go func() { // ends with ctx, waited for below
		err := d.Start(ctx)
		if err != nil {
			cancel(err)
		}
		started <- err
	}()
	err := d.mcp.ServeStdio(ctx, in, out)
	cancel(nil)
	if startErr := <-started; !errors.Is(startErr, context.Canceled) {
		err = errors.Join(err, startErr)
	}
	return err
}

// Call runs one call as the local user.
func (d *Daemon) Call(ctx context.Context, r pipeline.Request) pipeline.Outcome {
	r.Caller = auth.Caller{User: d.user, Client: "toolhost", Session: "cli"}
	return d.pipeline.Call(ctx, r)
}

// Tools lists the tools that can be called, by name.
func (d *Daemon) Tools() []*catalog.Entry { return d.catalog.Entries() }

// Tool returns the tool with a name or an alias.
func (d *Daemon) Tool(name string) (*catalog.Entry, *tool.Error) { return d.catalog.Lookup(name) }

// Refused lists the tools that plugins have and that cannot be called, with
// the reasons.
func (d *Daemon) Refused() []catalog.Refusal { return d.catalog.Refused() }

// Plugins lists the plugins in the order of the configuration.
func (d *Daemon) Plugins() []supervisor.State { return d.supervisor.Plugins() }

// Close stops everything in order and returns when no process is left. It may
// be called more than once.
func (d *Daemon) Close() error { return d.close() }

// stop takes down what build has built, last first.
func (d *Daemon) stop() error {
	var errs []error
	if d.supervisor != nil {
		errs = append(errs, d.supervisor.Close())
	}
	if d.launcher != nil {
		errs = append(errs, d.launcher.Close())
	}
	return errors.Join(errs...)
}
