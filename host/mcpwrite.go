package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/config/bridged"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/clientfile"
	"github.com/toolhost/toolhost/host/internal/tools/lock"
	"github.com/toolhost/toolhost/sdk/tool"
)

// serversAdded is what `toolhost mcp add --json` and `mcp import --json` print.
type serversAdded struct {
	File    string        `json:"file"`
	Servers []serverAdded `json:"servers"`
	LeftOut []leftOut     `json:"left_out,omitempty"`
}

type serverAdded struct {
	Name    string `json:"name"`
	Package string `json:"package,omitempty"`
}

// leftOut is a server that was not imported.
type leftOut struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// writeServers shows the blocks of servers, asks, and writes them and their secrets. A running host
// then reloads.
func (a *app) writeServers(ctx context.Context, cfg *config.Config, all []addition, yes, printOnly bool) error {
	var blocks, summary strings.Builder
	for i, s := range all {
		var secrets []bridged.SecretBlock
		for _, secret := range s.secrets {
			secrets = append(secrets, secret.block())
		}
		if i > 0 {
			blocks.WriteString("\n")
		}
		blocks.WriteString(bridged.Block(s.server, secrets))
		fmt.Fprintf(&summary, "%s\n%s", s.server.Name, describeServer(s.server))
	}
	if printOnly {
		_, err := fmt.Fprint(a.stdout, blocks.String())
		return err
	}
	file, err := a.configFileFor(all[0].server.Name)
	if err != nil {
		return err
	}
	change, err := clientfile.Plan(file, 0o600, bridged.Append(blocks.String()))
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	if err := a.inForce(ctx, change); err != nil {
		return err
	}
	if err := a.agreeTo(ctx, blocks.String()+"\n"+summary.String(), "Add this to "+line(file)+"?", yes); err != nil {
		return err
	}
	undo, err := writeSecrets(all)
	if err != nil {
		return err
	}
	if err := a.apply(change, file); err != nil {
		return errors.Join(err, undo())
	}
	if err := a.lockPackages(ctx, cfg, all); err != nil {
		return err
	}
	for _, s := range all {
		a.say("added %s to %s\n", s.server.Name, line(file))
	}
	if a.moved != nil {
		if err := a.moved(); err != nil {
			return err
		}
	}
	if err := a.reloadRunning(ctx, change); err != nil {
		return err
	}
	return a.reviewAdded(ctx, file, all)
}

// configFileFor returns the file that a block is added to: the configuration, or a new file of that
// name if it is a directory.
func (a *app) configFileFor(name string) (string, error) {
	path, err := a.findConfig()
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "mcp-"+name+".hcl")
	}
	return filepath.Abs(path)
}

// agreeTo shows a change of the configuration and asks for consent, unless yes gave it.
func (a *app) agreeTo(ctx context.Context, text, question string, yes bool) error {
	shown := strings.TrimSuffix(tool.Visible(text), "\n")
	switch {
	case yes && a.json:
		return nil
	case yes:
		_, err := fmt.Fprintln(a.stderr, shown)
		return err
	case a.onTerminal():
		err := a.askYes(ctx, shown, question, "nothing was written")
		if errors.Is(err, errUndecided) {
			return errors.New("nothing was written")
		}
		return err
	}
	fmt.Fprintln(a.stderr, shown)
	return &hintError{errors.New("nothing was written: there is no terminal to ask on"), "the same command with --yes writes it"}
}

// apply writes a change of the configuration, and takes it back if the configuration then has
// mistakes.
func (a *app) apply(change *clientfile.Change, file string) error {
	mode := fs.FileMode(0)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	backup, err := change.Write()
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	if _, err = a.loadConfig(); err == nil {
		if backup == "" {
			return nil
		}
		return os.Remove(backup)
	}
	fmt.Fprintln(a.stderr, "toolhost: the change would make the configuration wrong, so it was taken back:")
	if backup == "" {
		return errors.Join(err, os.Remove(file))
	}
	return errors.Join(err, os.Chmod(backup, mode), os.Rename(backup, file))
}

// lockPackages notes in the lock file what the servers were installed from.
func (a *app) lockPackages(ctx context.Context, cfg *config.Config, all []addition) error {
	if !slices.ContainsFunc(all, func(s addition) bool { return s.from != nil }) {
		return nil
	}
	return updateLock(ctx, cfg, func(l *lock.Lock) error {
		for _, s := range all {
			if s.from == nil {
				continue
			}
			text, err := json.Marshal(s.from)
			if err != nil {
				return err
			}
			l.SetPackage(s.server.Name, text)
		}
		return nil
	})
}

// lockFile returns the lock file of the configuration.
func lockFile(cfg *config.Config) lock.File {
	return lock.File{Path: cfg.Lock, StateDir: cfg.StateDir}
}

// updateLock changes the lock file of the configuration.
func updateLock(ctx context.Context, cfg *config.Config, change func(*lock.Lock) error) error {
	if err := os.MkdirAll(cfg.StateDir, 0o700); err != nil {
		return fmt.Errorf("change the lock file: %w", err)
	}
	_, err := lockFile(cfg).Update(ctx, change)
	return err
}

// say prints what was done, unless the command prints JSON at its end.
func (a *app) say(format string, args ...any) {
	if !a.json {
		fmt.Fprintf(a.stdout, format, args...)
	}
}

// errNotInForce means that a plugin may have changed the configuration: a running host has another one.
var errNotInForce = errors.New("the configuration has changed since the running host has read it: reload it first, so that nothing else takes effect with this change")

// inForce returns an error if the running host, if any, has another configuration than the one that
// a change is of.
func (a *app) inForce(ctx context.Context, change *clientfile.Change) error {
	stateDir, runs, err := a.running(ctx)
	if err != nil || !runs {
		return err
	}
	c, err := approverOf(stateDir)
	if err != nil {
		return err
	}
	defer c.Close()
	health, err := c.Health(ctx)
	if err != nil {
		return err
	}
	if a.isOneFile() && health.Configuration != config.ContentsOf(change.Old()) {
		return &hintError{errNotInForce, a.command("reload")}
	}
	return nil
}

// isOneFile reports whether the configuration is a file, and no directory.
func (a *app) isOneFile() bool {
	path, err := a.findConfig()
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// reloadRunning reloads a running host after a change of the configuration: with exactly what the
// change has written, whatever is in the file by now.
func (a *app) reloadRunning(ctx context.Context, change *clientfile.Change) error {
	_, runs, err := a.running(ctx)
	if err != nil || !runs {
		return err
	}
	written := ""
	if a.isOneFile() {
		written = config.ContentsOf(change.New())
	}
	if err := a.asApprover(ctx, func(c *client.Client) error { return c.Reload(ctx, written) }); err != nil {
		return fmt.Errorf("the running host does not apply it: %w", err)
	}
	return nil
}

// reviewAdded starts each server on a terminal, shows its tools and asks whether they are accepted.
func (a *app) reviewAdded(ctx context.Context, file string, all []addition) error {
	if a.json {
		out := serversAdded{File: file, Servers: []serverAdded{}, LeftOut: a.leftOut}
		for _, s := range all {
			added := serverAdded{Name: s.server.Name}
			if s.from != nil {
				added.Package = s.from.String()
			}
			out.Servers = append(out.Servers, added)
		}
		return a.printJSON(out)
	}
	for _, s := range all {
		name := s.server.Name
		if !a.onTerminal() {
			fmt.Fprintf(a.stderr, "hint: %s # shows its tools; none is offered before\n", a.command("plugins diff "+name))
			continue
		}
		err := a.asApprover(ctx, func(c *client.Client) error { return a.accept(ctx, c, name, nil, "", false) })
		switch {
		case errors.Is(err, errUndecided):
			fmt.Fprintf(a.stderr, "toolhost: no tool of %s is offered yet; to accept them later: %s\n", name, a.command("plugins accept "+name))
		case err != nil:
			a.report(nil, &hintError{fmt.Errorf("the tools of %s are not known: %w", name, err), a.command("plugins list") + " shows why"})
		}
	}
	return nil
}
