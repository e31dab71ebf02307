package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/client"
)

func (a *app) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the host until it is stopped",
		Long: `Run the host until SIGTERM or Ctrl-C. Other commands with the same configuration use
its control socket; programs use REST. If a "toolhost mcp" is the current host, serve
takes over from it and its client stays connected. SIGHUP reloads the configuration,
like toolhost reload. Logs go to standard error.`,
		Example: `  toolhost serve --config /etc/toolhost/`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.logLevel = cmp.Or(a.logLevel, "info")
			hangups := make(chan os.Signal, 1) // from the very start, which a hangup must not end
			signal.Notify(hangups, syscall.SIGHUP)
			defer signal.Stop(hangups)
			return a.afterOthers(cmd.Context(), func(d *daemon.Daemon) error { return a.serve(cmd.Context(), d, hangups) })
		},
	}
}

// portTaken adds to an error what to do if it is that the port is in use.
func (a *app) portTaken(err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	hint := "stop what listens there (ss -ltnp shows it), or write another port into the server block"
	if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Addr != nil {
		hint += fmt.Sprintf(", such as listen = %q", nextPort(failed.Addr.String()))
	}
	return &hintError{err, hint}
}

// nextPort is an address with another port: one that stays, since clients are
// connected to it.
func nextPort(address string) string {
	addr, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return address
	case addr.Port() == math.MaxUint16:
		return netip.AddrPortFrom(addr.Addr(), addr.Port()-1).String()
	}
	return netip.AddrPortFrom(addr.Addr(), addr.Port()+1).String()
}

// serve runs until ctx ends, and reloads at each hangup.
func (a *app) serve(ctx context.Context, d *daemon.Daemon, hangups <-chan os.Signal) error {
	if err := d.ServeControl(ctx); err != nil {
		return err
	}
	address, err := d.ServeHTTP(ctx)
	if err != nil {
		return a.portTaken(err)
	}
	if err := d.Start(ctx); err != nil && ctx.Err() == nil { // else told to stop before it had begun
		return err
	}
	if err := a.greet(ctx, address); err != nil {
		return err
	}
	for {
		select {
		case <-hangups:
			if err := d.Reload(ctx, ""); err != nil {
				a.report(nil, err)
				fmt.Fprint(a.stderr, "toolhost: the configuration was not reloaded; the previous one stays in force\n")
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *app) reloadCommand() *cobra.Command {
	accept := ""
	reload := &cobra.Command{
		Use:   "reload",
		Short: "Reload the configuration of the running host",
		Long: `Reload the configuration of the running host. The host applies it as a whole: if it
has a mistake, the host keeps the previous one. No call is lost.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The mistakes are better told here, with their lines.
			cfg, err := a.loadConfig()
			if err != nil {
				a.report(cmd, err)
				fmt.Fprint(a.stderr, "toolhost: nothing was reloaded\n")
				return errReported
			}
			return a.asRunning(cmd.Context(), func(c *client.Client) error {
				if err := c.Reload(cmd.Context(), accept); err != nil {
					return err
				}
				return a.printReloaded(cfg)
			})
		},
	}
	reload.Flags().StringVar(&accept, "accept", "", "the digest that confirms a configuration which a plugin could have changed")
	return reload
}

// printReloaded prints that a configuration is in force, with its warnings.
func (a *app) printReloaded(cfg *config.Config) error {
	warnings, err := daemon.Warnings(cfg, version) // with the tools that the reload has learned
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Status   string   `json:"status"`
			Warnings []string `json:"warnings,omitempty"`
		}{"reloaded", warnings})
	}
	printWarnings(a.stderr, warnings)
	_, err = fmt.Fprint(a.stdout, "reloaded\n")
	return err
}

// asRunning is asApprover for what only makes sense with a host that runs
// already.
func (a *app) asRunning(ctx context.Context, f func(*client.Client) error) error {
	stateDir, err := a.stateDir()
	if err != nil {
		return err
	}
	if !answers(ctx, stateDir) {
		return fmt.Errorf("%w with this configuration; toolhost serve starts one", client.ErrNoHost)
	}
	return a.asApprover(ctx, f)
}
