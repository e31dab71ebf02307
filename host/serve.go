package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

func (a *app) serveCommand() *cobra.Command {
	noPrompt, bell, port := false, false, ""
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the host until it is stopped",
		Long: `Run the host until SIGTERM or Ctrl-C. Other commands with the same configuration use
its control socket; programs use REST. If a "toolhost mcp" is the current host, serve
takes over from it and its client stays connected. SIGHUP reloads the configuration,
like toolhost reload; when its terminal is closed, the host stops. Logs go to standard
error. On a terminal, serve asks about each call that waits for approval, as toolhost
approvals watch does. Without a configuration, it offers to write one for the working
directory, as toolhost init does.`,
		Example: `  toolhost serve --config /etc/toolhost/
  toolhost serve --port auto`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ports, err := portsOf(a, port)
			if err != nil {
				return err
			}
			a.logLevel = cmp.Or(a.logLevel, "info")
			if err := a.initIfNone(cmd.Context()); err != nil {
				return err
			}
			hangups := make(chan os.Signal, 1) // before the start, so that a hangup does not end it
			signal.Notify(hangups, syscall.SIGHUP)
			defer signal.Stop(hangups)
			serving := service{app: a, ports: ports, hangups: hangups, terminals: a.terminals(), bell: bell}
			if !noPrompt {
				serving.terminal = a.shareTerminal() // before the log is opened
			}
			return a.afterOthers(cmd.Context(), func(d *daemon.Daemon) error { return serving.run(cmd.Context(), d) })
		},
	}
	cmd.Flags().BoolVar(&noPrompt, "no-prompt", false, "do not ask about waiting calls on this terminal")
	cmd.Flags().BoolVar(&bell, "bell", false, "ring the terminal's bell for each waiting call")
	cmd.Flags().StringVar(&port, "port", "", "listen on this port instead of the configured one; 0: any free port; auto: the configured one or the next free one")
	return cmd
}

// service is the host that serve runs.
type service struct {
	app       *app
	ports     ports
	hangups   <-chan os.Signal
	terminals terminals
	terminal  *sharedTerminal // where a person is asked about calls; nil means nowhere
	bell      bool
}

// initIfNone offers to write a configuration for the working directory if there is none and a
// person can be asked.
func (a *app) initIfNone(ctx context.Context) error {
	if _, err := config.Find(a.configPath, nil); !errors.Is(err, config.ErrNone) || !a.onTerminal() {
		return nil // reading the configuration reports the error
	}
	_, err := a.init(ctx, ".", "", false)
	return err
}

// run runs until ctx ends or the terminal is closed. A host that is stopped while it starts has
// not failed.
func (s *service) run(ctx context.Context, d *daemon.Daemon) error {
	if err := s.serve(ctx, d); ctx.Err() == nil {
		return err
	}
	return nil
}

// serve starts the host, and reloads at each hangup that does not close the terminal.
func (s *service) serve(ctx context.Context, d *daemon.Daemon) error {
	a := s.app
	if err := d.ServeControl(ctx); err != nil {
		return err
	}
	if err := s.ports.serve(ctx, d); err != nil {
		return a.portTaken(err)
	}
	if err := d.Start(ctx); err != nil {
		return err
	}
	if err := a.greet(ctx, d.URL()); err != nil {
		return err
	}
	defer s.ask(ctx)()
	for {
		select {
		case <-s.hangups:
			if s.terminals.closed() {
				return nil
			}
			// Root may have sent the signal, too: it does not tell its sender.
			if err := d.Reload(ctx, "", auth.Caller{User: auth.LocalUser("")}, "signal"); err != nil {
				a.report(nil, err)
				fmt.Fprint(a.stderr, "toolhost: the configuration was not reloaded; the previous one stays in force\n")
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// ask asks about waiting calls on the terminal until stop is called.
func (s *service) ask(ctx context.Context) (stop func()) {
	if s.terminal == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { // ends with cancel, or with the process if the terminal takes no output
		defer close(ended)
		s.askUntil(ctx)
	}()
	return func() {
		cancel()
		timer := time.NewTimer(logPatience)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C:
		}
	}
}

// askUntil asks about waiting calls until ctx ends or the person ends the input.
func (s *service) askUntil(ctx context.Context) {
	a := s.app
	stateDir, err := a.stateDir()
	if err == nil {
		fmt.Fprint(a.stderr, "toolhost: calls that wait for approval are shown here; serve --no-prompt turns that off\n")
		w := newWatch(a, stateDir, s.terminal, s.bell)
		w.greeted = true
		err = w.run(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		a.report(nil, err)
	}
	fmt.Fprintf(a.stderr, "toolhost: waiting calls are no longer shown here; to see them: %s\n", a.command("approvals"))
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
			return a.asRunning(cmd.Context(), func(c *client.Client) error { return a.reload(cmd, c, accept) })
		},
	}
	reload.Flags().StringVar(&accept, "accept", "", "the digest that confirms a configuration which a plugin could have changed")
	return reload
}

// reload has the host reload its configuration, which it records in its journal whatever the
// outcome.
func (a *app) reload(cmd *cobra.Command, c *client.Client, accept string) error {
	refused := c.Reload(cmd.Context(), accept)
	if a.remote != "" { // its configuration is on its machine
		if refused != nil {
			return refused
		}
		return a.printReloaded(nil)
	}
	cfg, err := a.loadConfig()
	if mistakes := (*config.Error)(nil); refused != nil && errors.As(err, &mistakes) {
		refused = err // the same mistakes, with the lines
	}
	if refused != nil {
		a.report(cmd, refused)
		fmt.Fprint(a.stderr, "toolhost: nothing was reloaded\n")
		return errReported
	}
	return a.printReloaded(cfg)
}

// printReloaded prints that a configuration is in force, and its warnings. They are not known if
// cfg is nil: only the host has the configuration, or the variables that it reads.
func (a *app) printReloaded(cfg *config.Config) (err error) {
	var warnings []string
	if cfg != nil {
		if warnings, err = daemon.Warnings(cfg, version); err != nil { // with the tools that are known after the reload
			return err
		}
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

// asRunning is like asApprover, for commands that need a running host.
func (a *app) asRunning(ctx context.Context, f func(*client.Client) error) error {
	stateDir, runs, err := a.running(ctx)
	switch {
	case err != nil:
		return err
	case !runs:
		return a.errNoHost(stateDir)
	}
	return a.asApprover(ctx, f)
}

const (
	// maxOthers is how long serve waits for a host that does not make room but may be
	// stopping.
	maxOthers = 2 * time.Second
	// maxHandover is how long serve waits for a host that makes room, after the grace period
	// of its calls, until clients have read their answers and plugins have ended.
	maxHandover = 30 * time.Second
	// askEvery is the interval of requests: a host that made room may become the next one.
	askEvery = 200 * time.Millisecond
)

// afterOthers is like withDaemon, for a host that stays: it takes over from hosts that run for
// a client or a command.
func (a *app) afterOthers(ctx context.Context, f func(*daemon.Daemon) error) error {
	t := takeover{app: a, until: time.Now().Add(maxOthers), asked: map[int]bool{}}
	for {
		err := a.withDaemon(ctx, forGood, f)
		held, ok := errors.AsType[*daemon.HeldError](err)
		if !ok {
			return err
		}
		t.askForRoom(ctx, held)
		if time.Now().Before(t.until) && pause(ctx, retryTakeover) == nil {
			continue
		}
		if held.PID == 0 {
			return err
		}
		return &hintError{err, fmt.Sprintf("that process is already the host, and every command uses it; to replace it: kill %d", held.PID)}
	}
}

// takeover is the wait for a state directory.
type takeover struct {
	app   *app
	until time.Time    // when to give up
	next  time.Time    // when to ask again
	asked map[int]bool // processes that make room
	stays int          // the process that does not
}

// askForRoom asks the host to make room, tells the user once, and sets how long to wait.
func (t *takeover) askForRoom(ctx context.Context, held *daemon.HeldError) {
	if held.PID == 0 || held.PID == t.stays || time.Now().Before(t.next) {
		return
	}
	room, err := handOver(ctx, held.Dir)
	now := time.Now()
	t.next = now.Add(askEvery)
	switch {
	case isStatus(err, http.StatusNotFound), isStatus(err, http.StatusUnprocessableEntity): // an older version, or a host that stays
		t.stays, t.until = held.PID, now.Add(maxOthers)
	case err != nil || t.asked[held.PID]: // it is starting or stopping
	default:
		t.asked[held.PID] = true
		t.until = now.Add(time.Duration(room.GraceMS)*time.Millisecond + maxHandover)
		what := "taking over from process %d (toolhost mcp)..."
		if room.Ephemeral {
			what = "waiting for process %d, a command that is the host until it ends; approvals watch asks about its calls..."
		}
		fmt.Fprintf(t.app.stderr, "toolhost: "+what+"\n", held.PID)
	}
}

// handOver asks the host that owns a state directory to make room.
func handOver(ctx context.Context, stateDir string) (httpapi.Handover, error) {
	c, err := approverOf(stateDir)
	if err != nil {
		return httpapi.Handover{}, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, maxOthers)
	defer cancel()
	return c.HandOver(ctx)
}
