package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/config/initial"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/internal/links"
)

// initialized is what `toolhost init --json` prints.
type initialized struct {
	Config    string            `json:"config"`
	Workspace string            `json:"workspace"`
	Programs  []initial.Program `json:"programs"` // that commands may execute
	Execute   []string          `json:"execute"`  // what they may execute beside the system for that, as a whole
	Plugins   []string          `json:"plugins"`
	Warnings  []string          `json:"warnings,omitempty"`
}

func (a *app) initCommand() *cobra.Command {
	yes, pluginDir := false, ""
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a configuration for a directory",
		Long: `Write a configuration for a directory, by default the working directory, into
~/.config/toolhost ($XDG_CONFIG_HOME/toolhost). There, no tool can change it, and every
command in the directory and below finds it. It is the default configuration with this
workspace, a port that no other one has, and the programs of this machine.`,
		Example: `  toolhost init
  toolhost init --yes ~/src/project`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.configPath != "" {
				return &usageError{errors.New("init chooses the file itself: leave out --config")}
			}
			path, err := a.init(cmd.Context(), slices.Concat(args, []string{"."})[0], pluginDir, yes)
			if err != nil {
				return err
			}
			return a.printNext(path)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask before writing")
	cmd.Flags().StringVar(&pluginDir, "plugin-dir", "", "the directory of the plugins (default: ../lib/toolhost/plugins or plugins next to this program)")
	return cmd
}

// init writes a configuration for dir and returns its path. Unless yes is set, it asks first.
func (a *app) init(ctx context.Context, dir, pluginDir string, yes bool) (string, error) {
	opts, path, err := initialOptions(ctx, dir, pluginDir)
	if err != nil {
		return "", err
	}
	text, err := initial.Text(opts)
	if err != nil {
		return "", err
	}
	a.tellLeftOut() // one of them may be for this directory
	if !yes {
		if !a.onTerminal() {
			fmt.Fprintf(a.stderr, "%s\n", initialSummary(opts))
			return "", &usageError{&hintError{fmt.Errorf("there is no terminal to ask on: add --yes to write %s", path), a.command("init --yes " + shellQuoted(opts.Workspace))}}
		}
		if err := a.askYes(ctx, initialSummary(opts), "Write "+line(path)+"?", "no file was written"); err != nil {
			return "", err
		}
	}
	if err := writeNew(path, text); err != nil {
		return "", notWritten(fmt.Errorf("write the configuration: %w", err))
	}
	cfg, err := config.Load(path, config.LoadOptions{SettingsSchema: supervisor.KnownSchema})
	if err == nil && cfg.Workspace.Shared != opts.Workspace {
		err = fmt.Errorf("the configuration cannot name %q, which is not in Unicode's normal form NFC: rename the directory", opts.Workspace)
	}
	if err != nil { // a file that no host can use would be in the way of the next attempt
		return "", errors.Join(err, os.Remove(path))
	}
	return path, a.printInitialized(cfg, path, opts, yes)
}

// initialOptions returns what the configuration for dir says, and its path.
func initialOptions(ctx context.Context, dir, pluginDir string) (opts initial.Options, path string, err error) {
	workspace, err := initialWorkspace(dir)
	if err != nil {
		return opts, "", err
	}
	userDir := config.UserDir(nil)
	if userDir == "" {
		return opts, "", &hintError{errors.New("there is no home directory: neither XDG_CONFIG_HOME nor HOME is an absolute path"), "set HOME, or write a file and name it with --config"}
	}
	others := config.Outlines(userDir)
	for _, o := range others {
		if o.Workspace == workspace {
			return opts, "", &hintError{fmt.Errorf("%s has a configuration: %s", workspace, o.Path), "change that file, or remove it first"}
		}
	}
	opts = initial.Options{Workspace: workspace, Programs: initial.FindPrograms(nil)}
	opts.Git = initial.FindGit(opts.Programs, workspace, nil)
	if opts.PluginDir, err = initialPlugins(pluginDir); err != nil {
		return opts, "", err
	}
	if opts.Listen, err = freePort(ctx, others); err != nil {
		return opts, "", err
	}
	path, err = initial.Path(userDir, workspace)
	return opts, path, notWritten(err)
}

// notWritten adds to an error of the directory of configurations what to do about it.
func notWritten(err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); !ok {
		return err
	}
	return &hintError{err, "set XDG_CONFIG_HOME to a directory that you can write; commands find the configuration there"}
}

// initialWorkspace returns the absolute path of a directory, without symbolic links, that may
// be a workspace.
func initialWorkspace(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	workspace := links.Resolve(absolute)
	info, err := os.Stat(workspace)
	if err != nil {
		return "", fmt.Errorf("the workspace: %w", err)
	}
	home, _ := os.UserHomeDir()
	switch {
	case !info.IsDir():
		return "", fmt.Errorf("%s is not a directory", workspace)
	case holds(workspace, home) || holds(workspace, config.UserDir(nil)):
		return "", &hintError{fmt.Errorf("%s is too wide for a workspace: tools would reach private files and this host's own", workspace), "name the directory of a project instead"}
	}
	return workspace, nil
}

// holds reports whether dir is path, or is around it. No directory holds "", but / does.
func holds(dir, path string) bool {
	return dir == "/" || path != "" && strings.HasPrefix(links.Resolve(path)+"/", dir+"/")
}

// initialPlugins returns the directory of the plugins for a configuration, or "" if they are
// installed with this program.
func initialPlugins(given string) (string, error) {
	if given != "" {
		dir, err := filepath.Abs(given)
		if err != nil {
			return "", err
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return "", fmt.Errorf("--plugin-dir: there is no directory %s", dir)
		}
		return dir, nil
	}
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program of this host: %w", err)
	}
	if config.InstalledPlugins(program) == "" {
		return "", &hintError{fmt.Errorf("the plugins are not installed with this program, %s", program), "put them into the directory plugins next to it, or name theirs with --plugin-dir"}
	}
	return "", nil
}

// The ports of configurations begin with firstPort.
const (
	firstPort = 7780
	maxPorts  = 100
)

// freePort returns the first address that is free and in no other configuration.
func freePort(ctx context.Context, others []config.Outline) (string, error) {
	for port := firstPort; port < firstPort+maxPorts; port++ {
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if slices.ContainsFunc(others, func(o config.Outline) bool { return o.Listen == address }) {
			continue
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return "", err
		}
		return address, nil
	}
	return "", fmt.Errorf("the ports from %d to %d are all in use or belong to other configurations", firstPort, firstPort+maxPorts-1)
}

// writeNew writes a file that does not exist yet, and its directory.
func writeNew(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// initialSummary says what the tools of a configuration will be able to do.
func initialSummary(opts initial.Options) string {
	names := make([]string, len(opts.Programs))
	for i, p := range opts.Programs {
		names[i] = p.Name
	}
	commands := "can execute the programs of the system"
	if len(names) > 0 {
		commands += ", " + strings.Join(names, ", ")
	}
	if paths := opts.Executable(); len(paths) > 0 {
		commands += ", and everything at " + line(strings.Join(paths, ", "))
	}
	commands += "; they have no network"
	if _, err := exec.LookPath("bash"); err != nil {
		commands = "are disabled: bash is not installed"
	}
	return "  tools work in    " + line(opts.Workspace) + "\n" +
		"  reading          runs at once; sensitive files such as .env are hidden\n" +
		"  changes          wait until you approve them\n" +
		"  commands         " + commands + "\n" +
		"  the host         listens on " + opts.Listen + ", for this machine only"
}

// printInitialized prints what a new configuration is.
func (a *app) printInitialized(cfg *config.Config, path string, opts initial.Options, summary bool) error {
	if a.json {
		view := initialized{Config: path, Workspace: opts.Workspace, Programs: opts.Programs, Execute: append([]string{}, opts.Executable()...), Warnings: cfg.Unaccepted(nil, false)}
		for _, p := range cfg.Plugins {
			view.Plugins = append(view.Plugins, p.Supervisor.Name)
		}
		return a.printJSON(view)
	}
	printWarnings(a.stderr, cfg.Unaccepted(nil, false))
	text := "wrote " + line(path) + "\n"
	if summary {
		text += initialSummary(opts) + "\n"
	}
	_, err := fmt.Fprint(a.stdout, text)
	return err
}

// printNext prints how to go on with a new configuration.
func (a *app) printNext(path string) error {
	if a.json {
		return nil
	}
	command := a.command
	if found, err := config.Find("", nil); err != nil || found != path { // it is of another directory
		command = (&app{program: a.program, configPath: path}).command
	}
	_, err := fmt.Fprintf(a.stdout, "next\n  %-9s%s\n  %-9s%s # or %s\n",
		"host", command("serve"), "agent", command("connect "+clientNames()[0]), strings.Join(clientNames()[1:], ", "))
	return err
}
