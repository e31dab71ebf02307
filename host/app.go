package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/supervisor"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// app is one run of the command line.
type app struct {
	stdin          *os.File
	stdout, stderr io.Writer

	// Flags of every command.
	configPath string
	json       bool
	logLevel   string
}

// run executes the command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	started := false
	root := &cobra.Command{
		Use:   "toolhost",
		Short: "Let AI agents use tools without trusting them",
		Long: `toolhost lets AI agents use tools without trusting them. Every family of tools
is a process of its own under limits; one configuration file says what may run.`,
		Example: `  toolhost tools
  toolhost call TOOL key=value
  toolhost mcp --config config.hcl`,
		Version:           version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRun:  func(*cobra.Command, []string) { started = true },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.configPath, "config", "", "configuration: a file, or a directory of *.hcl (default $TOOLHOST_CONFIG, ./config.hcl, /etc/toolhost/)")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	flags.StringVar(&a.logLevel, "log-level", "", "what to log on standard error: trace, debug, info, warn, error, off (default warn for mcp, else off)")
	root.AddCommand(a.callCommand(), a.mcpCommand(), a.pluginsCommand(), a.toolsCommand(), a.validateCommand(), a.versionCommand())
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitOK
	case !started: // cobra could not make sense of the arguments
		err = &usageError{err}
	}
	return a.report(cmd, err)
}

// usageError is a mistake in the command line itself.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// errReported ends a command that has already said what was wrong.
var errReported = errors.New("already reported")

// report prints why a command failed, and what to do, and returns the exit
// code.
func (a *app) report(cmd *cobra.Command, err error) int {
	var mistakes *config.Error
	var usage *usageError
	var failed *tool.Error
	switch {
	case errors.Is(err, errReported):
	case errors.As(err, &mistakes):
		_ = mistakes.WriteText(a.stderr, isTerminal(a.stderr)) // nobody is left to tell
	case errors.As(err, &usage):
		fmt.Fprintf(a.stderr, "toolhost: %v\nhint: %s --help\n", err, cmd.CommandPath())
		return exitUsage
	case errors.As(err, &failed):
		fmt.Fprintf(a.stderr, "toolhost: %s\n", paragraph(failed.Message))
		if failed.Hint != "" {
			fmt.Fprintf(a.stderr, "hint: %s\n", paragraph(failed.Hint))
		}
	default:
		fmt.Fprintf(a.stderr, "toolhost: %s\n", paragraph(err.Error()))
	}
	return exitFailed
}

// loadConfig reads the configuration that the flags and the environment name.
// It refuses wrong settings of a plugin too, as far as they are known to be.
func (a *app) loadConfig() (*config.Config, error) {
	path, err := config.Find(a.configPath, nil)
	if err != nil {
		return nil, err
	}
	return config.Load(path, config.LoadOptions{SettingsSchema: supervisor.KnownSchema})
}

// withDaemon builds a host in this process, passes it to f and stops it.
func (a *app) withDaemon(f func(*daemon.Daemon) error) (err error) {
	level := hclog.LevelFromString(cmp.Or(a.logLevel, "off"))
	if level == hclog.NoLevel {
		return &usageError{fmt.Errorf("unknown log level %q, expected trace, debug, info, warn, error or off", a.logLevel)}
	}
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	log := newLogWriter(cfg.Redact(a.stderr))
	defer log.Close()
	d, err := daemon.New(daemon.Options{
		Config:  cfg,
		Version: version,
		Logger:  hclog.New(&hclog.LoggerOptions{Name: "toolhost", Level: level, Output: log}),
	})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := d.Close(); closeErr != nil {
			fmt.Fprintf(a.stderr, "toolhost: stop: %v\n", closeErr)
			err = cmp.Or(err, errReported)
		}
	}()
	return f(d)
}

// withTools is withDaemon for commands that need to know the tools.
func (a *app) withTools(ctx context.Context, f func(*daemon.Daemon) error) error {
	return a.withDaemon(func(d *daemon.Daemon) error {
		if err := d.Start(ctx); err != nil {
			return err
		}
		return f(d)
	})
}
