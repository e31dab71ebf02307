package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/state/hosts"
)

// asReader is like asApprover, for a command that needs what is in the state. If no host is
// running and there is no state, it does not begin one, and f is not called. A command that then
// has nothing to show calls [app.foundNone].
func (a *app) asReader(ctx context.Context, f func(*client.Client) error) error {
	stateDir, runs, err := a.running(ctx)
	if err != nil {
		return err
	}
	switch {
	case runs:
		return a.asApprover(ctx, f)
	case hasState(stateDir):
		return a.reach(ctx, stateDir, forReading, connected(stateDir, approverKey, f))
	}
	a.tellOthers(stateDir)
	return nil
}

// foundNone tells why a command has found nothing if no running host was asked. It returns an
// error if another host has the configuration: what the command looked for may be there.
func (a *app) foundNone(ctx context.Context, what string) error {
	stateDir, runs, err := a.running(ctx)
	if err != nil || runs {
		return err
	}
	if others := a.otherHosts(stateDir); len(others) > 0 {
		a.tellOthers(stateDir)
		return &hintError{fmt.Errorf("%s in this state directory; the other host was not asked", what), a.otherHint(others[0])}
	}
	if hasState(stateDir) {
		fmt.Fprintf(a.stderr, "toolhost: no host is running with this configuration: this is the state that the last one left in %s\n", line(stateDir))
		return nil
	}
	fmt.Fprintf(a.stderr, "toolhost: no host is running with this configuration, and it has no state yet; %s starts one\n", a.command("serve"))
	if cfg, err := a.loadConfig(); err == nil {
		a.tellMoved(cfg)
	}
	return nil
}

// asDecider is like asReader, for a command that is about one approval.
func (a *app) asDecider(ctx context.Context, f func(*client.Client) error) error {
	asked := false
	err := a.asReader(ctx, func(c *client.Client) error {
		asked = true
		return f(c)
	})
	if err != nil || asked {
		return err
	}
	if err := a.foundNone(ctx, noneWaits); err != nil {
		return err
	}
	return errors.New(noneWaits)
}

// asRevoker is like asApprover, for a command that revokes a token. The revocation is stored, but
// the command must not report a token as refused that another host may still accept.
func (a *app) asRevoker(ctx context.Context, f func(*client.Client) error) error {
	stateDir, runs, err := a.running(ctx)
	if err != nil {
		return err
	}
	if runs {
		return a.asApprover(ctx, f)
	}
	others := a.otherHosts(stateDir)
	if len(others) == 0 {
		return a.asApprover(ctx, f)
	}
	a.tellOthers(stateDir)
	if err := a.asApprover(ctx, f); err != nil {
		return err
	}
	return &hintError{errors.New("this holds for this state directory only: the other host may still accept the token"), a.otherHint(others[0])}
}

// noneWaits tells that there is no open approval.
const noneWaits = "no call waits for approval"

// hasState reports whether a host has run in a state directory, or may have: the directory of
// another account cannot be examined.
func hasState(stateDir string) bool {
	_, err := os.Stat(filepath.Join(stateDir, daemon.Database))
	return !errors.Is(err, fs.ErrNotExist)
}

// otherHosts returns the hosts of this configuration that have another state directory.
func (a *app) otherHosts(stateDir string) []hosts.Host {
	path, err := config.Find(a.configPath, nil)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(hosts.Of(path), func(h hosts.Host) bool { return sameFile(h.StateDir, stateDir) })
}

// sameFile reports whether two paths lead to the same file.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// tellOthers tells once that this command does not use the hosts that have its configuration,
// because their state is another one.
func (a *app) tellOthers(stateDir string) {
	if a.toldOthers {
		return
	}
	if text := a.othersText(stateDir); text != "" {
		a.toldOthers = true
		fmt.Fprintf(a.stderr, "toolhost: %s\n", text)
	}
}

// maxOthersShown bounds the hosts that are named.
const maxOthersShown = 3

// othersText describes the hosts of this configuration that have another state directory, or is
// "".
func (a *app) othersText(stateDir string) string {
	others := a.otherHosts(stateDir)
	if len(others) == 0 {
		return ""
	}
	var names []string
	for _, h := range others[:min(maxOthersShown, len(others))] {
		names = append(names, h.String())
	}
	if more := len(others) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return line(fmt.Sprintf("another host has this configuration: %s; this command uses the state directory %s", strings.Join(names, ", "), stateDir))
}

// otherHint says how a command reaches another host of the same configuration.
func (a *app) otherHint(h hosts.Host) string {
	if h.UID >= 0 && h.UID != os.Geteuid() {
		return "to use that host, run this command as the account " + hosts.Account(h.UID)
	}
	path, err := config.Find(a.configPath, nil)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if of, failed := hosts.ReadOrigin(h.StateDir); err == nil && failed == nil && of.Path != path && sameFile(of.Path, path) {
		return "to use that host, name the configuration as it does: --config " + shellQuoted(of.Path)
	}
	text := "to use that host, run this command with its XDG_STATE_HOME and HOME"
	if h.StateDir != "" {
		text += fmt.Sprintf(", or write state_dir = %q into the configuration", h.StateDir)
	}
	return text
}

// tellMoved tells where the earlier state of a moved configuration is.
func (a *app) tellMoved(cfg *config.Config) {
	if left, ok := movedFrom(cfg); ok {
		fmt.Fprintf(a.stderr, "toolhost: this configuration has a new, empty state: %s\nhint: %s\n", line(movedText(left)), line(movedHint(left)))
	}
}

// movedFrom returns the state that a configuration had before it was moved, if it has another
// one because of that.
func movedFrom(cfg *config.Config) (hosts.Left, bool) {
	if cfg.StateNamed {
		return hosts.Left{}, false
	}
	return hosts.MovedFrom(hosts.OriginOf(cfg.Path, cfg.Contents), cfg.StateDir, daemon.Database)
}

func movedText(left hosts.Left) string {
	return fmt.Sprintf("it was probably moved from %s, whose journal, grants and notes are in %s", left.Path, left.StateDir)
}

func movedHint(left hosts.Left) string {
	return fmt.Sprintf("to go on with them, write state_dir = %q into the configuration and start its host again", left.StateDir)
}

// errNoHost is the error of a command that needs a running host.
func (a *app) errNoHost(stateDir string) error {
	if others := a.otherHosts(stateDir); len(others) > 0 {
		a.tellOthers(stateDir)
		return &hintError{errors.New("no host is running with this configuration in this state directory"), a.otherHint(others[0])}
	}
	return &hintError{fmt.Errorf("%w with this configuration", client.ErrNoHost), a.command("serve") + " starts one"}
}
