package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// command is one run of git.
type command struct {
	// args are the arguments, starting with the subcommand.
	args []string
	// patterns is true if the paths in args are git's patterns.
	patterns bool
	// stdin is the standard input.
	stdin []byte
	// env is added to the environment. config, names and values in turn, is added to
	// the configuration.
	env, config []string
	// output receives the standard output as git writes it; if nil, run returns it. An
	// error from output ends the command. The error is enough if no more is needed.
	output io.Writer
	// maxOutput limits the standard output; 0 means maxCaptured.
	maxOutput tool.ByteSize
	// writes is true if the command changes the repository.
	writes bool
	// network is true if the command connects to a remote. It then may execute programs,
	// read files and change places.
	network                 bool
	programs, files, places []string
	// exits are the exit codes, besides 0, that are not failures.
	exits []int
}

const (
	// grace is the time that a command that writes has to remove its locks and temporary
	// files after its call is canceled.
	grace = 5 * time.Second
	// maxCaptured limits the output that is held in memory.
	maxCaptured = 8 * tool.MiB
	// maxComplaints limits the standard error that is kept.
	maxComplaints = 64 * tool.KiB
)

// enough is returned by an output that needs no more data. It is not a failure.
var enough = errors.New("enough") //nolint:staticcheck // not a failure

// output is the result of a command.
type output struct {
	stdout []byte
	stderr string
	exit   int
	// ended is true if the command was ended because its output returned enough.
	ended bool
}

// run runs git in the worktree and waits until all of its processes have ended.
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
		return out, tool.Errorf(tool.ResourceExhausted, "git was killed by a signal: %v", result.Signal).WithHint("ask for less, or raise the limits of the plugin's sandbox")
	case result.ExitCode != 0 && !slices.Contains(c.exits, result.ExitCode):
		return out, r.explain(out)
	}
	return out, nil
}

// reader parses the output of a command as git writes it.
type reader interface {
	io.Writer
	// Close returns an error if the output was not complete or not understood.
	Close() error
}

// read runs git with a reader for its output.
func (r *repository) read(ctx context.Context, c command, to reader) error {
	c.output = to
	if c.maxOutput == 0 {
		c.maxOutput = maxListed
	}
	if _, err := r.run(ctx, c); err != nil {
		return err
	}
	if err := to.Close(); err != nil {
		return unreadable(err)
	}
	return nil
}

// records runs git and calls each for every record that it writes with -z.
func (r *repository) records(ctx context.Context, c command, each func(record string)) error {
	return r.read(ctx, c, porcelain.NewRecords(func(record []byte) error {
		each(string(record))
		return nil
	}))
}

// notStarted explains why git could not be executed.
func (r *repository) notStarted(err error) error {
	if refused, ok := errors.AsType[*tool.Error](err); ok && (refused.Code == tool.NotFound || refused.Code == tool.PermissionDenied) {
		return tool.Errorf(tool.Unavailable, "The program git cannot be executed").
			WithHint("the user must install git, or allow this plugin to execute it (exec in its sandbox; the setting program)").WithCause(err)
	}
	return err
}

// arguments returns git's arguments.
func (r *repository) arguments(c *command) []string {
	args := append([]string{"--no-pager"}, c.args...)
	if r.noOverrides {
		args = slices.DeleteFunc(args, func(arg string) bool {
			return slices.Contains([]string{"--no-ext-diff", "--no-textconv", "--no-verify", "--no-gpg-sign", ignoreSubmodules, "--submodule=short"}, arg)
		})
	}
	return args
}

// ignoreSubmodules keeps git from running itself in submodules, which have their own
// configuration. Git still sees that a submodule is at another commit.
const ignoreSubmodules = "--ignore-submodules=dirty"

// sink receives git's standard output and standard error.
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
		s.fail(tool.Errorf(tool.ResourceExhausted, "The output of git is too large").WithHint("ask for less: name a path, or fewer files"))
		return
	}
	if _, err := s.to.Write(data); err != nil {
		s.fail(err)
	}
}

// fail records err and ends the command.
func (s *sink) fail(err error) {
	s.err = err
	s.stop()
}

// lines returns the nonempty lines of the standard output.
func (o *output) lines() []string {
	return strings.FieldsFunc(string(o.stdout), func(r rune) bool { return r == '\n' })
}
