package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/state/hosts"
)

func (a *app) stopAllCommand() *cobra.Command {
	var scope killswitch.Scope
	reason, list := "", false
	cmd := &cobra.Command{
		Use:   "stop-all",
		Short: "Stop all calls, or those of a user or a plugin, until resume",
		Long: `Stop all calls, those of a user, those to a plugin, or those of a user to a plugin. No
new call begins. Calls in progress are canceled, the processes of plugins are killed,
and approvals that calls wait for are rejected. The stop holds until toolhost resume,
also for the next hosts. Several stops can be in force at the same time.`,
		Example: `  toolhost stop-all --reason "looking into the deleted branch"
  toolhost stop-all --user ada
  toolhost stop-all --plugin shell
  toolhost stop-all --list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list && (cmd.Flags().Changed("user") || cmd.Flags().Changed("plugin") || cmd.Flags().Changed("reason")) {
				return &usageError{errors.New("--list excludes --user, --plugin and --reason: it stops nothing")}
			}
			if list {
				return a.listStops(cmd.Context())
			}
			if err := checkScope(cmd.Flags()); err != nil {
				return err
			}
			return a.asStopper(cmd.Context(), true, func(c *client.Client) error {
				stopped, err := c.Stop(cmd.Context(), scope, reason)
				if err != nil {
					return err
				}
				return a.printStopped(stopped)
			})
		},
	}
	a.scopeFlags(cmd, &scope)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people and models")
	cmd.Flags().BoolVar(&list, "list", false, "list the stops in force, and stop nothing")
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	var scope killswitch.Scope
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "End all stops, or the one with the same flags",
		Long: `End all stops of toolhost stop-all. With --user or --plugin, end the one stop that was
made with the same flags; other stops stay in force.`,
		Example: `  toolhost resume
  toolhost resume --plugin shell`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkScope(cmd.Flags()); err != nil {
				return err
			}
			return a.resume(cmd.Context(), scope)
		},
	}
	a.scopeFlags(cmd, &scope)
	return cmd
}

// scopeFlags adds the flags that select calls.
func (a *app) scopeFlags(cmd *cobra.Command, scope *killswitch.Scope) {
	cmd.Flags().StringVar(&scope.User, "user", "", "only the calls of this user")
	cmd.Flags().StringVar(&scope.Plugin, "plugin", "", "only the calls to this plugin")
	a.completeFlag(cmd, "user", userNames)
	a.completeFlag(cmd, "plugin", pluginNames)
}

// resumeOf returns the command that ends the stop of a scope.
func (a *app) resumeOf(scope killswitch.Scope) string {
	words := "resume"
	if scope.User != "" {
		words += " --user " + shellQuoted(scope.User)
	}
	if scope.Plugin != "" {
		words += " --plugin " + shellQuoted(scope.Plugin)
	}
	return a.command(words)
}

// checkScope refuses empty names, which would select more than was meant.
func checkScope(flags *pflag.FlagSet) error {
	for _, name := range []string{"user", "plugin"} {
		if flags.Changed(name) && flags.Lookup(name).Value.String() == "" {
			return &usageError{fmt.Errorf("--%s needs a name; leave it out for every %s", name, name)}
		}
	}
	return nil
}

// asStopper is like asApprover, for a command that stops or resumes calls. If no host runs, it
// changes what the next host finds, and starts no plugin. Unless begins is set, it does not begin a
// state: then nothing is stopped, and it does not call f.
func (a *app) asStopper(ctx context.Context, begins bool, f func(*client.Client) error) error {
	if a.remote != "" {
		return a.withRemote(f)
	}
	stateDir, err := a.stateDir()
	if err != nil {
		return err
	}
	others := a.otherHosts(stateDir)
	switch {
	case answers(ctx, stateDir):
		others = nil
	case !begins && !hasState(stateDir):
		return a.notAsked(stateDir, others)
	}
	asAdmin := connected(stateDir, approverKey, f)
	err = a.lockOrJoin(ctx, stateDir, forOneCommand, asAdmin, func(d *daemon.Daemon) error {
		if err := d.ServeControl(ctx); err != nil {
			return err
		}
		return asAdmin()
	})
	if err != nil {
		return err
	}
	return a.notAsked(stateDir, others)
}

// notAsked returns the error of a command that did not ask other hosts with this configuration; nil if
// there are none.
func (a *app) notAsked(stateDir string, others []hosts.Host) error {
	if len(others) == 0 {
		return nil
	}
	a.tellOthers(stateDir)
	return &hintError{errors.New("this holds for this state directory only: the other host was not asked"), a.otherHint(others[0])}
}

// printStopped prints what a stop has done.
func (a *app) printStopped(s httpapi.Stopped) error {
	for _, text := range append(s.Problems, s.Notes...) {
		fmt.Fprintf(a.stderr, "toolhost: %s\n", line(text))
	}
	if a.json {
		if err := a.printJSON(s); err != nil {
			return err
		}
	} else {
		what := "stopped " + s.Scope.String()
		if s.Again {
			what = "already stopped: " + s.Stop.String()
		}
		if _, err := fmt.Fprintf(a.stdout, "%s\n  canceled calls: %d, killed processes: %d, rejected approvals: %d\n  to resume: %s\n",
			line(what), s.CanceledCalls, s.KilledProcesses, s.RejectedApprovals, a.resumeOf(s.Scope)); err != nil {
			return err
		}
	}
	if len(s.Problems) > 0 {
		return errReported
	}
	return nil
}

// listStops prints the stops in force.
func (a *app) listStops(ctx context.Context) error {
	stops := []killswitch.Stop{} // never null in JSON
	err := a.asStopper(ctx, false, func(c *client.Client) (err error) {
		stops, err = c.Stops(ctx)
		return err
	})
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(stops)
	}
	return a.printStops(stops)
}

func (a *app) printStops(stops []killswitch.Stop) error {
	if len(stops) == 0 {
		_, err := fmt.Fprint(a.stdout, "nothing is stopped\n")
		return err
	}
	table := newTable(a.stdout)
	fmt.Fprint(table, "ID\tSTOPPED\tBY\tSINCE\tREASON\n")
	for _, s := range stops {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", s.ID, line(s.Scope.String()), line(s.By), s.Since.Local().Format(time.DateTime), orDash(line(s.Reason)))
	}
	return table.Flush()
}

// resume ends the stop of a scope, or all if it is the zero Scope, and prints which have ended and
// which are left.
func (a *app) resume(ctx context.Context, scope killswitch.Scope) error {
	ended, left := []killswitch.Stop{}, []killswitch.Stop{} // never null in JSON
	err := a.asStopper(ctx, false, func(c *client.Client) error {
		stops, err := c.Stops(ctx)
		if err != nil {
			return err
		}
		for _, stop := range stops {
			if scope != (killswitch.Scope{}) && stop.Scope != scope {
				left = append(left, stop)
				continue
			}
			if _, err := c.Resume(ctx, stop.ID); err != nil && !isStatus(err, http.StatusNotFound) { // not found: someone else ended it
				return err
			}
			ended = append(ended, stop)
		}
		return nil
	})
	if a.json {
		return errors.Join(a.printJSON(ended), err)
	}
	if len(ended) == 0 && err == nil {
		fmt.Fprint(a.stdout, "no such stop is in force\n")
	}
	for _, stop := range ended {
		fmt.Fprintf(a.stdout, "resumed %s\n", line(stop.Scope.String()))
	}
	for _, stop := range left {
		fmt.Fprintf(a.stderr, "toolhost: still stopped: %s\nhint: to resume: %s\n", line(stop.String()), a.resumeOf(stop.Scope))
	}
	return err
}
