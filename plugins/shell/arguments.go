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

// commandArgs say what to run. Whatever a command is made of has a role, so that
// the host's rules see all of it.
type commandArgs struct {
	Command string   `json:"command,omitempty" jsonschema:"what to run, as bash reads it; or give argv" role:"command" alias:"cmd,script,shell_command,bash,sh" raw:"true"`
	Argv    []string `json:"argv,omitempty" jsonschema:"a program and its arguments, run without a shell" role:"argv"`
	Cwd     string   `json:"cwd,omitempty" jsonschema:"where to run it" role:"path" default:"."`
	Env     []string `json:"env,omitempty" jsonschema:"variables to set, as NAME=value" role:"command"`
	Stdin   string   `json:"stdin,omitempty" jsonschema:"what it reads from its standard input" role:"script"`
}

// program is what a call runs, and where.
type program struct {
	settings *settings
	command  proc.Command
	shown    string // the command for people
	at       places
}

// prepare makes a command of what a call asks for.
func (s *shell) prepare(call *sdk.Call, in commandArgs, term string) (*program, error) {
	if why := s.disabled.Load(); why != nil {
		return nil, why
	}
	p := &program{settings: s.settings.Load(), shown: in.Command}
	switch {
	case in.Command != "" && len(in.Argv) > 0:
		return nil, tool.Errorf(tool.InvalidArgument, "both command and argv are given, expected one of them")
	case strings.TrimSpace(in.Command) == "" && len(in.Argv) == 0:
		return nil, tool.Errorf(tool.InvalidArgument, "missing required field 'command' in arguments").
			WithHint(`give a command such as {"command": "ls -l"}, or a program and its arguments as argv`)
	case len(in.Argv) > 0:
		p.command.Path, p.command.Args = in.Argv[0], in.Argv[1:]
		p.shown = strings.Join(in.Argv, " ")
	}
	if hasNUL(in.Command) || slices.ContainsFunc(in.Argv, hasNUL) {
		return nil, tool.Errorf(tool.InvalidArgument, "the command contains a NUL byte, which no program can be given")
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

// directory returns the absolute path of the directory that a call names.
func directory(call *sdk.Call, dir string) (string, error) {
	if hasNUL(dir) {
		return "", tool.Errorf(tool.InvalidArgument, "cwd contains a NUL byte, which no path can have")
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

// places makes the directories of the calling user.
func (s *shell) places(call *sdk.Call) (places, error) {
	sum := sha256.Sum256([]byte(call.User()))
	user := hex.EncodeToString(sum[:8])
	at := places{home: filepath.Join(call.UserDir(), "home"), tmp: filepath.Join(s.tmp(), "shell-"+user)}
	if call.UserDir() == "" {
		at.home = filepath.Join(s.tmp(), "home-"+user)
	}
	for _, dir := range []string{at.tmp, at.home} {
		err := os.MkdirAll(dir, 0o700)
		if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) { // a command has put something else in its place
			err = s.restore(dir)
		}
		if err != nil {
			return places{}, tool.Errorf(tool.Unavailable, "a directory for the user's commands cannot be made").
				WithHint("the administrator finds the reason in the log: it may be a full disk").WithCause(err)
		}
	}
	return at, nil
}

// restore makes a directory in place of something else. Several calls may want
// that at a time: what one has made, no other removes.
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

// timeout returns how long a command may take that asks for the given seconds.
func (s *settings) timeout(seconds int) (time.Duration, error) {
	if seconds < 0 || seconds > int(s.MaxTimeout/time.Second) {
		return 0, tool.Errorf(tool.InvalidArgument, "timeout is %d, expected 1 to %d seconds", seconds, int(s.MaxTimeout/time.Second)).
			WithHint("run what takes longer with shell_background")
	}
	return cmp.Or(time.Duration(seconds)*time.Second, s.Timeout), nil
}

// within returns how much of a time a command has that starts now: less than is
// left of its call, so that the call can tell how the command has ended.
func (s *settings) within(ctx context.Context, timeout time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return timeout
	}
	left := time.Until(deadline)
	return min(timeout, left-min(s.Grace+toAnswer, left/2))
}

// toAnswer is the time that a call has to tell of a command whose time is over.
const toAnswer = time.Second
