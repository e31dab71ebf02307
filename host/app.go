package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/state/journal"
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
	program        string // the name it was called by, for commands to paste; "" means toolhost

	// Flags of every command.
	configPath string
	url        string
	json       bool
	logLevel   string

	// remote is the address of the host on another machine that the command is for; "" is the
	// host of a configuration of this machine.
	remote string

	// The user was told about other hosts with this configuration, about configurations that were
	// left out, and about mistakes in this one.
	toldOthers, toldLeftOut, toldMistakes bool
	leftOut                               []leftOut    // servers that were not imported
	moved                                 func() error // takes imported servers out of the client's list
	found                                 string       // the path of the configuration, "" until it was found
}

// run executes the command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	started := false
	root := a.root(func() { started = true })
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitOK
	case !started: // cobra could not parse the arguments
		if found := a.inGroup(root, cmd, args); found != "" {
			err = &hintError{err, found}
		}
		err = &usageError{err}
	}
	return a.report(cmd, err)
}

// inGroup returns the command that the first argument names if it is one of a group: "approve" is
// "toolhost approvals approve".
func (a *app) inGroup(root, cmd *cobra.Command, args []string) string {
	if cmd != root || len(args) == 0 {
		return ""
	}
	for _, group := range root.Commands() {
		for _, sub := range group.Commands() {
			if sub.Name() == args[0] {
				return "did you mean " + a.pathOf(sub) + "?"
			}
		}
	}
	return ""
}

// root returns the root command. It calls begun when cobra has parsed the arguments.
func (a *app) root(begun func()) *cobra.Command {
	root := &cobra.Command{
		Use:   "toolhost",
		Short: "Let AI agents use tools without trusting them",
		Long: `toolhost lets AI agents use tools without trusting them. Each plugin is a separate
process under limits; one configuration file decides what may run.`,
		Example: `  toolhost tools
  toolhost call TOOL key=value
  toolhost approvals list
  toolhost mcp --config config.hcl`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			begun()
			a.endOnHangup(cmd)
			return a.chooseHost(cmd)
		},
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.configPath, "config", "", "configuration file, or a directory of *.hcl files (default $TOOLHOST_CONFIG, the one of this directory in ~/.config/toolhost, ./config.hcl, /etc/toolhost/)")
	flags.StringVar(&a.url, "url", "", "address of a host on another machine, after toolhost login (default $TOOLHOST_URL)")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	flags.StringVar(&a.logLevel, "log-level", "", "log level on standard error: trace, debug, info, warn, error, off (default warn for mcp, otherwise off)")
	a.completeFlag(root, "log-level", oneOfNames("trace", "debug", "info", "warn", "error", "off"))
	root.AddCommand(
		a.approvalsCommand(), a.callCommand(), a.connectCommand(), a.consoleCommand(), a.doctorCommand(), a.eventsCommand(), a.explainCommand(),
		a.grantsCommand(), a.initCommand(), a.journalCommand(), a.loginCommand(), a.logoutCommand(), a.mcpCommand(), a.metricsCommand(),
		a.networkCommand(), a.notifyCommand(), a.pluginsCommand(), a.policyCommand(), a.reloadCommand(), a.resumeCommand(), a.sandboxCommand(),
		a.secretCommand(), a.serveCommand(), a.stopAllCommand(), a.tokenCommand(), a.toolsCommand(), a.topCommand(), a.usageCommand(),
		a.validateCommand(), a.versionCommand(),
	)
	return root
}

// group returns a command that only groups other commands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// endOnHangup ends the command when its terminal closes. For serve, the signal means a
// reload.
func (a *app) endOnHangup(cmd *cobra.Command) {
	if cmd.Name() == "serve" {
		return
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	cmd.SetContext(ctx)
}

// oneArgument requires exactly one argument and names it in the error. list is the command that
// shows which there are, or "".
func (a *app) oneArgument(which, list string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 1:
			return nil
		case list == "":
			return fmt.Errorf("expected %s", which)
		}
		return &hintError{fmt.Errorf("expected %s", which), a.command(list) + " shows them"}
	}
}

// typable returns a hint of the host with the command that it begins with as a person types it
// here: "toolhost grants list shows those in force" names no configuration.
func (a *app) typable(hint string) string {
	words, ok := strings.CutPrefix(hint, "toolhost ")
	words, what, shows := strings.Cut(words, " shows ")
	if !ok || !shows || strings.Contains(words, "--config ") { // this command wrote it
		return hint
	}
	return a.command(words) + " shows " + what
}

// pathOf returns a command as a person types it.
func (a *app) pathOf(cmd *cobra.Command) string {
	return shellQuoted(cmp.Or(a.program, "toolhost")) + strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name())
}

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// hintError is an error with a hint.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }

// afterChange says how to recover a host whose journal was changed.
const afterChange = "then restore the newest complete copy, or start over: move toolhost.db, toolhost.db-wal, toolhost.db-shm, journal.head and keys/journal.key away"

// errReported ends a command that has already reported what is wrong.
var errReported = errors.New("already reported")

// report prints why a command failed and what to do. It returns the exit code.
func (a *app) report(cmd *cobra.Command, err error) int {
	var mistakes *config.Error
	var usage *usageError
	var failed *tool.Error
	var problem *httpapi.Problem
	var hinted *hintError
	switch {
	case errors.Is(err, errReported), errors.Is(err, syscall.EPIPE): // the reader of the output is gone
	case errors.As(err, &mistakes):
		_ = mistakes.WriteText(a.stderr, isTerminal(a.stderr)) // nowhere to report an error
	case errors.As(err, &usage):
		fmt.Fprintf(a.stderr, "toolhost: %v\n", err)
		if errors.As(err, &hinted) {
			fmt.Fprintf(a.stderr, "hint: %s\n", paragraph(hinted.hint))
		}
		fmt.Fprintf(a.stderr, "hint: %s --help\n", a.pathOf(cmd))
		return exitUsage
	case errors.As(err, &failed):
		fmt.Fprintf(a.stderr, "toolhost: %s\n", paragraph(failed.Message))
		if failed.Hint != "" {
			fmt.Fprintf(a.stderr, "hint: %s\n", paragraph(a.typable(failed.Hint)))
		}
	case errors.As(err, &problem):
		fmt.Fprintf(a.stderr, "toolhost: %s\n", paragraph(problem.Detail))
		if problem.Hint != "" {
			fmt.Fprintf(a.stderr, "hint: %s\n", paragraph(a.typable(problem.Hint)))
		}
	case errors.Is(err, journal.ErrChanged):
		fmt.Fprintf(a.stderr, "toolhost: %s\nhint: %s shows where; keep a copy of the state directory for the investigation\nhint: %s\n",
			paragraph(err.Error()), a.command("journal verify"), paragraph(afterChange))
	case errors.Is(err, config.ErrNone):
		fmt.Fprintf(a.stderr, "toolhost: %s\nhint: in the directory where tools should work: %s; or name a file with --config\n", paragraph(err.Error()), a.command("init"))
	case errors.As(err, &hinted):
		fmt.Fprintf(a.stderr, "toolhost: %s\nhint: %s\n", paragraph(err.Error()), paragraph(hinted.hint))
	default:
		fmt.Fprintf(a.stderr, "toolhost: %s\n", paragraph(err.Error()))
	}
	return exitFailed
}
