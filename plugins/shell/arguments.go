package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// commandArgs are the arguments that describe a command. Every part of a command
// has a role, so that the host's rules see all of it.
type commandArgs struct {
	Command string   `json:"command,omitempty" jsonschema:"command line; or give argv" role:"command" alias:"cmd,script,shell_command,bash,sh" raw:"true"`
	Argv    []string `json:"argv,omitempty" jsonschema:"program and its arguments" role:"argv"`
	Cwd     string   `json:"cwd,omitempty" jsonschema:"working directory" role:"path" default:"." alias:"workdir"`
	Env     []string `json:"env,omitempty" jsonschema:"variables, NAME=value" role:"command"`
	Stdin   string   `json:"stdin,omitempty" jsonschema:"standard input" role:"script"`
}

// program is a command to run and its directories.
type program struct {
	settings *settings
	command  proc.Command
	shown    string // the command as people see it
	at       places
}

// prepare checks the arguments of a call and makes a command of them.
func (s *shell) prepare(call *sdk.Call, in commandArgs, term string) (*program, error) {
	if why := s.disabled.Load(); why != nil {
		return nil, why
	}
	p := &program{settings: s.settings.Load(), shown: in.Command}
	switch {
	case in.Command != "" && len(in.Argv) > 0:
		return nil, tool.Errorf(tool.InvalidArgument, "both command and argv are given, expected only one of them")
	case strings.TrimSpace(in.Command) == "" && len(in.Argv) == 0:
		return nil, tool.Errorf(tool.InvalidArgument, "missing required field 'command' in arguments").
			WithHint(`give a command such as {"command": "ls -l"}, or a program and its arguments as argv`)
	case len(in.Argv) > 0:
		p.command.Path, p.command.Args = in.Argv[0], in.Argv[1:]
		p.shown = strings.Join(in.Argv, " ")
	}
	if hasNUL(in.Command) || slices.ContainsFunc(in.Argv, hasNUL) {
		return nil, tool.Errorf(tool.InvalidArgument, "the command contains a NUL byte, which cannot be passed to a program")
	}
	dir, err := directory(call, in.Cwd)
	if err != nil {
		return nil, err
	}
	if path := p.command.Path; strings.ContainsRune(path, '/') && !filepath.IsAbs(path) {
		p.command.Path = filepath.Join(dir, path)
	}
	if p.at, err = s.places(call); err != nil {
		return nil, err
	}
	env, err := p.settings.environment(p.at, term, in.Env)
	if err != nil {
		return nil, err
	}
	c := &p.command
	c.Dir, c.Env, c.Stdin = dir, env, []byte(in.Stdin)
	c.MaxOutput, c.Limits, c.Grace = p.settings.MaxOutput, p.settings.Limits.proc(), p.settings.Grace
	c.Rules = p.settings.rules(call.Roots(), p.at)
	return p, nil
}

// directory returns the absolute path of the directory in an argument.
func directory(call *sdk.Call, dir string) (string, error) {
	if hasNUL(dir) {
		return "", tool.Errorf(tool.InvalidArgument, "cwd contains a NUL byte, which a path cannot contain")
	}
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir), nil
	}
	if len(call.Roots()) == 0 {
		return "", tool.Errorf(tool.Unavailable, "this call has no workspace to run a command in")
	}
	return filepath.Join(call.Roots()[0], dir), nil
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }

// places creates the directories of the calling user.
func (s *shell) places(call *sdk.Call) (places, error) {
	sum := sha256.Sum256([]byte(call.User()))
	user := hex.EncodeToString(sum[:8])
	at := places{home: filepath.Join(call.UserDir(), "home"), tmp: filepath.Join(s.tmp(), "shell-"+user)}
	if call.UserDir() == "" {
		at.home = filepath.Join(s.tmp(), "home-"+user)
	}
	for _, dir := range []string{at.tmp, at.home} {
		err := os.MkdirAll(dir, 0o700)
		if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) { // a command replaced it with another file
			err = s.restore(dir)
		}
		if err != nil {
			return places{}, tool.Errorf(tool.Unavailable, "a directory for the user's commands cannot be created").
				WithHint("ask the administrator: the log has the reason, for example a full disk").WithCause(err)
		}
	}
	return at, nil
}

// restore replaces another file with a directory. Several calls may do so at the
// same time: none removes the directory that another has created.
func (s *shell) restore(dir string) error {
	s.restoring.Lock()
	defer s.restoring.Unlock()
	if os.MkdirAll(dir, 0o700) == nil {
		return nil // another call was faster
	}
	removed := os.Remove(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return errors.Join(removed, err)
	}
	return nil
}

func (s *shell) tmp() string {
	if s.scratch != "" {
		return s.scratch
	}
	return os.TempDir()
}

// timeout returns the time-out of a command for which a call asks for so many
// seconds; 0 asks for the default.
func (s *settings) timeout(seconds int) (time.Duration, error) {
	if seconds < 0 || seconds > int(s.MaxTimeout/time.Second) {
		return 0, tool.Errorf(tool.InvalidArgument, "timeout is %d, expected 1 to %d seconds", seconds, int(s.MaxTimeout/time.Second)).
			WithHint("run longer commands with shell_background")
	}
	return cmp.Or(time.Duration(seconds)*time.Second, s.Timeout), nil
}

// within returns the time-out of a command that starts now. It is shorter than the
// rest of its call's time, so that the call can still return the result.
func (s *settings) within(ctx context.Context, timeout time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return timeout
	}
	left := time.Until(deadline)
	return min(timeout, left-min(s.Grace+toAnswer, left/2))
}

// toAnswer is the time reserved for returning the result of a command that timed
// out.
const toAnswer = time.Second
