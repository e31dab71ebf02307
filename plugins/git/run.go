package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// command is one run of git.
type command struct {
	// args begin with the subcommand.
	args []string
	// patterns says that its paths are written as git's patterns.
	patterns bool
	// stdin is what it reads.
	stdin []byte
	// env is added to its environment, and config, names and values, to its
	// configuration.
	env, config []string
	// output gets what it writes as it comes; nil means that it is returned. An
	// error of output ends the command: enough for one that wants no more.
	output io.Writer
	// maxOutput bounds what it may write, maxCaptured if that is 0.
	maxOutput tool.ByteSize
	// writes says that it changes the repository.
	writes bool
	// network says that it reaches a remote. programs are those that it executes then,
	// files those that it reads, and places those that it changes.
	network                 bool
	programs, files, places []string
	// exits are the exit codes, beside 0, that are no failure.
	exits []int
}

const (
	// grace is what a command that writes has to remove its locks and temporary files
	// when its call is given up.
	grace = 5 * time.Second
	// maxCaptured bounds the output that is held in memory.
	maxCaptured = 8 * tool.MiB
	// maxComplaints bounds what is kept of what git says went wrong.
	maxComplaints = 64 * tool.KiB
)

// enough is the error of an output that wants no more of it.
var enough = errors.New("enough") //nolint:staticcheck // it is no failure

// output is what a command has written.
type output struct {
	stdout []byte
	stderr string
	exit   int
	// ended says that the command was ended because its output was enough.
	ended bool
}

// run runs git in the worktree and waits for its end, at which nothing of it is left.
func (r *repository) run(ctx context.Context, c command) (output, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sink := &sink{to: c.output, left: int64(c.maxOutput), stop: cancel}
	if sink.left == 0 {
		sink.left = int64(maxCaptured)
	}
	if c.output == nil {
		sink.to = &sink.kept
	}
	run := proc.Command{
		Path: r.settings.Program, Args: r.arguments(&c), Env: r.environment(&c), Dir: r.worktree, Stdin: c.stdin,
		MaxOutput: -1, Output: sink.take, Rules: r.rules(&c),
	}
	if c.writes || c.network {
		run.Grace = grace
	}
	result, err := proc.Run(ctx, run)
	out := output{stdout: sink.kept.Bytes(), stderr: sink.complaints.String(), exit: result.ExitCode, ended: errors.Is(sink.err, enough)}
	switch {
	case out.ended:
		return out, nil
	case sink.err != nil:
		return out, sink.err
	case err != nil:
		return out, r.notStarted(err)
	case result.TimedOut || result.Canceled:
		return out, context.Cause(ctx)
	case result.Signal != 0:
		return out, tool.Errorf(tool.ResourceExhausted, "git was ended: %v", result.Signal).WithHint("ask for less, or raise the limits of the plugin's sandbox")
	case result.ExitCode != 0 && !slices.Contains(c.exits, result.ExitCode):
		return out, r.explain(out)
	}
	return out, nil
}

// notStarted says why git could not be executed.
func (r *repository) notStarted(err error) error {
	if refused, ok := errors.AsType[*tool.Error](err); ok && (refused.Code == tool.NotFound || refused.Code == tool.PermissionDenied) {
		return tool.Errorf(tool.Unavailable, "The program git cannot be executed").
			WithHint("the user must install git, or let this plugin execute it (exec in its sandbox; the setting program)").WithCause(err)
	}
	return err
}

// arguments are what git gets.
func (r *repository) arguments(c *command) []string {
	args := append([]string{"--no-pager"}, c.args...)
	if r.noOverrides {
		args = slices.DeleteFunc(args, func(arg string) bool {
			return slices.Contains([]string{"--no-ext-diff", "--no-textconv", "--no-verify", "--no-gpg-sign", ignoreSubmodules, "--submodule=short"}, arg)
		})
	}
	return args
}

// ignoreSubmodules keeps git from running itself in submodules, whose configuration
// is their own; that another commit is checked out there, it sees without.
const ignoreSubmodules = "--ignore-submodules=dirty"

// sink takes what git writes.
type sink struct {
	to         io.Writer
	left       int64
	stop       func()
	kept       bytes.Buffer
	complaints bytes.Buffer
	err        error
}

func (s *sink) take(stream proc.Stream, data []byte) {
	if stream == proc.Stderr {
		s.complaints.Write(data[:min(len(data), max(0, int(maxComplaints)-s.complaints.Len()))])
		return
	}
	if s.err != nil {
		return
	}
	if s.left -= int64(len(data)); s.left < 0 {
		s.fail(tool.Errorf(tool.ResourceExhausted, "git has written more than can be taken here").WithHint("ask for less: name a path, or fewer files"))
		return
	}
	if _, err := s.to.Write(data); err != nil {
		s.fail(err)
	}
}

// fail ends the command.
func (s *sink) fail(err error) {
	s.err = err
	s.stop()
}

// lines are the lines of a short output.
func (o *output) lines() []string {
	return strings.FieldsFunc(string(o.stdout), func(r rune) bool { return r == '\n' })
}
