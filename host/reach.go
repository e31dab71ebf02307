package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// maxTakeover bounds the wait for another host that is starting or stopping.
// retryTakeover is the time between two attempts.
const (
	maxTakeover   = 10 * time.Second
	retryTakeover = 20 * time.Millisecond
)

// asAgent calls f with a client that may call tools, of the running host with this
// configuration or of a host in this process that ends with f. For a host on another machine,
// the client may do what its token allows.
func (a *app) asAgent(ctx context.Context, f func(*client.Client) error) error {
	return a.withClient(ctx, func(string) (string, error) { return "", nil }, f)
}

// asApprover is like asAgent, for a client that may decide on calls and administer the host,
// but not call tools.
func (a *app) asApprover(ctx context.Context, f func(*client.Client) error) error {
	return a.withClient(ctx, approverKey, f)
}

func (a *app) withClient(ctx context.Context, token func(stateDir string) (string, error), f func(*client.Client) error) error {
	if a.remote != "" {
		return a.withRemote(f)
	}
	stateDir, err := a.stateDir()
	if err != nil {
		return err
	}
	return a.reach(ctx, stateDir, forOneCommand, connected(stateDir, token, f))
}

// connected returns a function that calls f with a client of the host in a state directory.
func connected(stateDir string, token func(stateDir string) (string, error), f func(*client.Client) error) func() error {
	return func() error {
		secret, err := token(stateDir)
		if err != nil {
			return err
		}
		c, err := client.New(client.Options{StateDir: stateDir, Token: secret, Name: "toolhost", Session: "cli"})
		if err != nil {
			return err
		}
		defer c.Close()
		return f(c)
	}
}

// approverKey returns the approver's key of the host with a state directory.
func approverKey(stateDir string) (string, error) {
	return auth.ReadKey(filepath.Join(stateDir, auth.ApproverKey))
}

// running reports whether the host of this command runs, and returns its state directory. For a
// host on another machine that is "", and it counts as running.
func (a *app) running(ctx context.Context) (stateDir string, runs bool, err error) {
	if a.remote != "" {
		return "", true, nil
	}
	if stateDir, err = a.stateDir(); err != nil {
		return "", false, err
	}
	return stateDir, answers(ctx, stateDir), nil
}

// stateDir returns the configured state directory, even if the configuration now has mistakes:
// a host that runs with an earlier version can still be reached.
func (a *app) stateDir() (string, error) {
	path, err := a.findConfig()
	if err != nil {
		return "", err
	}
	return config.StateDir(path, nil)
}

// reach runs f while a host owns the state directory: the running one, or an ephemeral one in
// this process.
func (a *app) reach(ctx context.Context, stateDir string, stay stay, f func() error) error {
	return a.lockOrJoin(ctx, stateDir, stay, f, func(d *daemon.Daemon) error {
		if err := d.ServeControl(ctx); err != nil {
			return err
		}
		if err := d.Start(ctx); err != nil && (stay != forReading || !a.tellMistakes(err)) {
			return err
		}
		return f()
	})
}

// stay is how long a host in this process runs.
type stay int

const (
	forOneCommand stay = iota // an ephemeral host
	forReading                // the same, for a command that only shows what is in the state
	forClients                // as long as a client of this process is connected
	forGood                   // until it is told to stop
)

// lockOrJoin runs guest if a host answers in the state directory. Otherwise it locks the
// directory and runs owner with a host in this process. It waits while another host holds the
// lock but does not answer, because it is starting or stopping.
func (a *app) lockOrJoin(ctx context.Context, stateDir string, stay stay, guest func() error, owner func(*daemon.Daemon) error) error {
	takeover, cancel := context.WithTimeout(ctx, maxTakeover)
	defer cancel()
	for {
		if answers(takeover, stateDir) {
			return guest()
		}
		err := a.withDaemon(ctx, stay, owner)
		held, ok := errors.AsType[*daemon.HeldError](err)
		if !ok {
			return err
		}
		if pause(takeover, retryTakeover) != nil {
			return fmt.Errorf("%w, and it does not answer", held)
		}
	}
}

// answers reports whether a host answers in a state directory.
func answers(ctx context.Context, stateDir string) bool {
	conn, err := auth.DialControl(ctx, stateDir)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// command returns a command line for the same host.
func (a *app) command(words string) string {
	text := shellQuoted(cmp.Or(a.program, "toolhost")) + " " + words
	if a.configPath != "" {
		text += " --config " + shellQuoted(a.configPath)
	}
	if a.remote != "" && a.url != "" {
		text += " --url " + shellQuoted(a.url)
	}
	return text
}

// commandAnywhere returns a function that builds commands for this process's host that work in
// any directory.
func (a *app) commandAnywhere() func(words string) string {
	anywhere := app{program: a.program, configPath: a.configPath}
	if program, err := os.Executable(); err == nil {
		anywhere.program = program
	}
	if path, err := config.Find(a.configPath, nil); err == nil {
		anywhere.configPath = path
	}
	if path, err := filepath.Abs(anywhere.configPath); err == nil {
		anywhere.configPath = path
	}
	return anywhere.command
}

// shellQuoted is like shellWord, for a word that is printed, not executed.
func shellQuoted(word string) string { return shellWord(line(word)) }

// shellWord quotes a word for a shell.
func shellWord(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+:@", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withDaemon builds a host in this process, passes it to f and stops it. If another process is
// the host, the error is a [*daemon.HeldError].
func (a *app) withDaemon(ctx context.Context, stay stay, f func(*daemon.Daemon) error) (err error) {
	load := a.loadConfig
	if stay == forReading {
		load = a.loadToRead
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	log, logger, err := a.openLog(cfg)
	if err != nil {
		return err
	}
	defer log.Close()
	fresh := !hasState(cfg.StateDir)
	d, err := daemon.New(ctx, daemon.Options{
		Config: cfg, Load: a.loadConfig, Ephemeral: stay == forOneCommand || stay == forReading, Yields: stay != forGood, Command: a.commandAnywhere(), Version: version, Logger: logger,
	})
	if held := (*daemon.HeldError)(nil); !errors.As(err, &held) {
		a.tellOthers(cfg.StateDir) // one of them may be the cause of an error
	}
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := d.Close(); closeErr != nil {
			fmt.Fprintf(a.stderr, "toolhost: stop: %v\n", closeErr)
			err = cmp.Or(err, errReported)
		}
	}()
	if fresh {
		a.tellMoved(cfg)
	}
	return f(d)
}

// openLog opens the log at the level of the flags. The caller must close it.
func (a *app) openLog(cfg *config.Config) (*logWriter, hclog.Logger, error) {
	level := hclog.LevelFromString(cmp.Or(a.logLevel, "off"))
	if level == hclog.NoLevel {
		return nil, nil, &usageError{fmt.Errorf("unknown log level %q, expected trace, debug, info, warn, error or off", a.logLevel)}
	}
	log := newLogWriter(cfg.Redact(a.stderr))
	return log, hclog.New(&hclog.LoggerOptions{Name: "toolhost", Level: level, Output: log}), nil
}

// loadConfig reads the configuration that the flags and the environment name. It checks the
// settings of plugins whose schema is known.
func (a *app) loadConfig() (*config.Config, error) {
	path, err := a.findConfig()
	if err != nil {
		return nil, err
	}
	return config.Load(path, config.LoadOptions{SettingsSchema: supervisor.KnownSchema})
}

// loadToRead is like loadConfig, for a command that only shows what is in the state. It needs no
// plugin, so it tells of mistakes in the settings of plugins and goes on.
func (a *app) loadToRead() (*config.Config, error) {
	cfg, err := a.loadConfig()
	if err == nil {
		return cfg, nil
	}
	cfg, other := config.Load(a.found, config.LoadOptions{})
	if other != nil || !a.tellMistakes(err) {
		return nil, err
	}
	return cfg, nil
}

// tellMistakes tells once that the configuration has mistakes, if that is what the error says, and
// reports whether it is.
func (a *app) tellMistakes(err error) bool {
	mistakes, ok := errors.AsType[*config.Error](err)
	if ok && !a.toldMistakes {
		a.toldMistakes = true
		fmt.Fprintf(a.stderr, "toolhost: the configuration has mistakes (%d); %s shows them\n", len(mistakes.Mistakes), a.command("validate"))
	}
	return ok
}

// findConfig returns the path of the configuration, which it finds once: the working directory may
// be removed later. If it is not one of the user's, it tells once which of those were left out.
func (a *app) findConfig() (path string, err error) {
	if a.found != "" {
		return a.found, nil
	}
	defer func() { a.found = path }()
	path, err = config.Find(a.configPath, nil)
	if !a.namesConfig() && (err != nil || filepath.Dir(path) != config.UserDir(nil)) {
		a.tellLeftOut()
	}
	return path, err
}

// namesConfig reports whether the flag or the environment names the configuration.
func (a *app) namesConfig() bool { return a.configPath != "" || os.Getenv("TOOLHOST_CONFIG") != "" }

// foundHere reports whether a configuration was found in the working directory and not named.
// Those of the user and of the system have an absolute path.
func (a *app) foundHere(path string) bool {
	return !a.namesConfig() && !filepath.IsAbs(path)
}

// tellLeftOut tells once which of the user's configurations are for an unknown workspace.
func (a *app) tellLeftOut() {
	if a.toldLeftOut {
		return
	}
	a.toldLeftOut = true
	for _, left := range config.AllLeftOut(nil) {
		fmt.Fprintf(a.stderr, "toolhost: %s\n", line(left.Why.Error()))
		other := app{program: a.program, configPath: left.Path}
		fmt.Fprintf(a.stderr, "hint: %s shows what is wrong with it\n", other.command("validate"))
	}
}
