package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/config/bridged"
	"github.com/toolhost/toolhost/host/internal/front/clientfile"
	"github.com/toolhost/toolhost/host/internal/plugin/install"
	"github.com/toolhost/toolhost/host/internal/tools/lock"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
)

// serverView is what `toolhost mcp list --json` prints of a server.
type serverView struct {
	Name    string           `json:"name"`
	Enabled bool             `json:"enabled"`
	Place   string           `json:"place"`
	Package *install.Package `json:"package,omitempty"`
	// Problem is why the package in the store is not the one that was installed.
	Problem string `json:"problem,omitempty"`
}

func (a *app) mcpListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the MCP servers of the configuration, and check their packages",
		Long: `List the MCP servers of the configuration, and check that their packages are in the store
as they were installed. toolhost plugins list shows their tools.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.mcpList() },
	}
}

func (a *app) mcpList() error {
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	views, err := serverViews(cfg)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(views)
	}
	if len(views) == 0 {
		fmt.Fprintf(a.stdout, "no MCP servers; to add one: %s\n", a.command("mcp add --help"))
		return nil
	}
	table := newTable(a.stdout)
	fmt.Fprint(table, "NAME\tPACKAGE\tSTORE\tWHERE\n")
	for _, v := range views {
		name, stored := v.Name, "-"
		if v.Package != nil {
			stored = "as installed"
		}
		if v.Problem != "" {
			stored = "changed"
		}
		if !v.Enabled {
			name += " (disabled)"
		}
		source := "-"
		if v.Package != nil {
			source = line(v.Package.String())
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", name, source, stored, line(v.Place))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	changed := false
	for _, v := range views {
		if v.Problem != "" {
			changed = true
			fmt.Fprintf(a.stderr, "toolhost: %s\nhint: %s\n", line(v.Problem), a.command("mcp update "+v.Name+" "+v.Package.Version))
		}
	}
	if changed {
		return errReported
	}
	return nil
}

// serverViews returns the servers of a configuration, by their names.
func serverViews(cfg *config.Config) ([]serverView, error) {
	locked, err := lockFile(cfg).Load()
	if err != nil {
		return nil, err
	}
	views := []serverView{}
	for _, p := range cfg.Plugins {
		if !bridged.IsBridge(p.Supervisor.Path) {
			continue
		}
		v := serverView{Name: p.Supervisor.Name, Enabled: p.Enabled, Place: p.Place}
		if v.Package, err = packageIn(locked.Lock, v.Name); err != nil {
			return nil, err
		}
		if v.Package != nil {
			if err := v.Package.Verify(); err != nil {
				v.Problem = err.Error()
			}
		}
		views = append(views, v)
	}
	slices.SortFunc(views, func(x, y serverView) int { return cmp.Compare(x.Name, y.Name) })
	return views, nil
}

// packageIn returns the package that a plugin was installed from; nil if it was not.
func packageIn(l lock.Lock, plugin string) (*install.Package, error) {
	text := l.Plugins[plugin].Package
	if text == nil {
		return nil, nil
	}
	p, err := install.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", plugin, err)
	}
	return &p, nil
}

func (a *app) mcpRemoveCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:               "remove NAME",
		Short:             "Remove an MCP server from the configuration",
		Args:              a.oneArgument("the NAME of a server", "mcp list"),
		ValidArgsFunction: a.complete(pluginNames),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.mcpRemove(cmd.Context(), args[0], yes) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "write without asking")
	return cmd
}

// mcpRemove takes the block of a server out of the configuration, and what was accepted of it out of
// the lock file. Its package stays in the store, which other configurations use, too.
func (a *app) mcpRemove(ctx context.Context, name string, yes bool) error {
	cfg, file, err := a.fileOfServer(name)
	if err != nil {
		return err
	}
	secrets := secretsOf(cfg, name)
	change, err := clientfile.Plan(file, 0o600, bridged.Remove(name, secrets...))
	if err != nil {
		return err
	}
	if err := a.inForce(ctx, change); err != nil {
		return err
	}
	if err := a.agreeTo(ctx, "plugin "+name+" in "+file, "Remove it, and what was accepted of its tools?", yes); err != nil {
		return err
	}
	if err := a.apply(change, file); err != nil {
		return err
	}
	if left, err := os.ReadFile(file); err == nil && len(strings.TrimSpace(string(left))) == 0 {
		if err := os.Remove(file); err != nil { // it was a file of this server alone
			return err
		}
	}
	if err := updateLock(ctx, cfg, func(l *lock.Lock) error {
		delete(l.Plugins, name)
		return nil
	}); err != nil {
		return err
	}
	a.say("removed %s from %s\n", name, line(file))
	for _, secret := range secrets {
		if err := os.Remove(filepath.Join(secretsDir(cfg), secret)); err != nil {
			return err
		}
	}
	if err := a.reloadRunning(ctx, change); err != nil {
		return err
	}
	kept, err := keepData(cfg, name)
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(serverAdded{Name: name})
	case kept != "":
		fmt.Fprintf(a.stdout, "its data is in %s\n", line(kept))
	}
	return nil
}

// keepData moves the data of a server that was removed away, so that the next server of its name does not
// get it. It returns where the data is; "" if there is none.
func keepData(cfg *config.Config, name string) (string, error) {
	data := filepath.Join(cfg.StateDir, "plugins", name)
	if _, err := os.Lstat(data); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	removed := filepath.Join(cfg.StateDir, "removed")
	if err := os.MkdirAll(removed, 0o700); err != nil {
		return "", err
	}
	kept := filepath.Join(removed, name+"-"+time.Now().UTC().Format("20060102T150405.000"))
	return kept, os.Rename(data, kept)
}

// fileOfServer returns the file of the configuration that has the block of a server.
func (a *app) fileOfServer(name string) (*config.Config, string, error) {
	cfg, err := a.loadConfig()
	if err != nil {
		return nil, "", err
	}
	var names []string
	for _, p := range cfg.Plugins {
		if !bridged.IsBridge(p.Supervisor.Path) {
			continue
		}
		names = append(names, p.Supervisor.Name)
		if p.Supervisor.Name == name {
			file := p.Place[:strings.LastIndexByte(p.Place, ':')] // file:line
			file, err := filepath.Abs(file)
			return cfg, file, err
		}
	}
	err = fmt.Errorf("the configuration has no MCP server %q", line(name))
	if near := schema.Nearest(name, names); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, near[0])
	}
	return nil, "", &hintError{err, a.command("mcp list") + " shows them"}
}

func (a *app) mcpUpdateCommand() *cobra.Command {
	yes, minAge := false, time.Duration(0)
	cmd := &cobra.Command{
		Use:   "update NAME [VERSION]",
		Short: "Fetch another version of a server's package",
		Long: `Fetch another version of a server's package into the store, by default the newest one,
and let the server run from it. Tools whose definitions have changed are pending until
you accept them.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return &hintError{errors.New("expected the NAME of a server, and perhaps a VERSION"), a.command("mcp list") + " shows them"}
			}
			return nil
		},
		ValidArgsFunction: a.complete(pluginNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			version := ""
			if len(args) > 1 {
				version = args[1]
			}
			return a.mcpUpdate(cmd.Context(), args[0], version, minAge, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "write without asking")
	cmd.Flags().DurationVar(&minAge, "min-age", defaultMinAge, "the least age of the version, and of each package that it needs")
	return cmd
}

// mcpUpdate replaces the package of a server: its directory in the block, and its entry in the lock
// file.
func (a *app) mcpUpdate(ctx context.Context, name, version string, minAge time.Duration, yes bool) error {
	cfg, file, err := a.fileOfServer(name)
	if err != nil {
		return err
	}
	locked, err := lockFile(cfg).Load()
	if err != nil {
		return err
	}
	old, err := packageIn(locked.Lock, name)
	if err != nil {
		return err
	}
	if old == nil {
		return fmt.Errorf("the server %s was not installed from a package", name)
	}
	reference := old.Source + ":" + old.Name
	if version != "" {
		reference += "@" + version
	}
	ref, err := install.ParseReference(reference)
	if err != nil {
		return &usageError{err}
	}
	fmt.Fprintf(a.stderr, "toolhost: fetching %s into the store of packages...\n", reference)
	p, _, err := fetchPackage(ctx, ref, minAge)
	if err != nil {
		return err
	}
	program, err := p.ProgramFile(old.Program)
	if err != nil {
		return err
	}
	p.Program = old.Program
	change, err := clientfile.Plan(file, 0o600, bridged.Replace(name, old.Dir, p.Dir, program, strings.NewReplacer(old.String(), p.String())))
	if err != nil {
		return err
	}
	if err := a.inForce(ctx, change); err != nil {
		return err
	}
	if change.Needed() {
		if err := a.agreeTo(ctx, fmt.Sprintf("%s runs %s; new: %s", name, old, p), "Change "+line(file)+"?", yes); err != nil {
			return err
		}
		if err := a.apply(change, file); err != nil {
			return err
		}
	}
	if err := a.lockPackages(ctx, cfg, []addition{{server: bridged.Server{Name: name}, from: &p}}); err != nil {
		return err
	}
	a.say("%s runs %s now; before, %s\n", name, p, old)
	if err := a.reloadRunning(ctx, change); err != nil || !a.json {
		return err
	}
	return a.printJSON(serverAdded{Name: name, Package: p.String()})
}
