package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/toolhost/toolhost/sdk/tool"
)

// maxArgument is the maximum length of one argument (MAX_ARG_STRLEN of Linux, without the
// NUL).
const maxArgument = 128<<10 - 1

// explainExecute converts an error of execve(2) into the mistake in the command.
func (c *Command) explainExecute(err error) error {
	name := tool.VisibleName(c.Path)
	info, statErr := os.Stat(c.Path)
	var e *tool.Error
	switch {
	case errors.Is(err, syscall.E2BIG):
		total, longest := c.size()
		e = tool.Errorf(tool.InvalidArgument, "the arguments of %s are too long: %d bytes with the environment, the longest has %d", name, total, longest).
			WithHint("one argument can have %d bytes, all together usually 2 MiB; use standard input or a file", maxArgument)
	case errors.Is(statErr, fs.ErrNotExist):
		e = tool.Errorf(tool.NotFound, "program not found: %s", name)
	case errors.Is(err, fs.ErrNotExist):
		e = tool.Errorf(tool.NotFound, "program cannot be executed: %s", name).
			WithHint("the interpreter in its first line, or its dynamic loader, does not exist")
	case statErr == nil && info.IsDir():
		e = tool.Errorf(tool.InvalidArgument, "not a program but a directory: %s", name)
	case errors.Is(err, syscall.EACCES) && statErr == nil && info.Mode()&0o111 == 0:
		return notExecutable(c.Path, info.Mode())
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		e = tool.Errorf(tool.PermissionDenied, "program may not be executed: %s", name)
		if c.Rules != nil {
			e = e.WithHint("the rules of this command must allow it, and its interpreter or dynamic loader, to be executed")
		}
	case errors.Is(err, syscall.ENOEXEC):
		e = tool.Errorf(tool.InvalidArgument, "not a program for this machine: %s", name).
			WithHint("it is neither an executable for this machine nor a script with #!")
	case errors.Is(err, syscall.ENOMEM):
		e = tool.Errorf(tool.ResourceExhausted, "not enough memory to execute %s", name).WithHint("raise the limit memory")
	default:
		return fmt.Errorf("execute %s: %w", name, err)
	}
	return e.WithCause(err)
}

// explainDir converts an error of chdir(2) into the mistake in the directory.
func (c *Command) explainDir(err error) error {
	name := tool.VisibleName(c.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tool.Errorf(tool.NotFound, "working directory not found: %s", name).WithCause(err)
	case errors.Is(err, syscall.ENOTDIR):
		return tool.Errorf(tool.InvalidArgument, "the working directory is not a directory: %s", name).WithCause(err)
	case errors.Is(err, fs.ErrPermission):
		return tool.Errorf(tool.PermissionDenied, "the working directory may not be entered: %s", name).WithCause(err)
	default:
		return fmt.Errorf("enter the working directory %s: %w", name, err)
	}
}

// size returns the number of bytes in the arguments and the environment, and the length of the
// longest entry.
func (c *Command) size() (total, longest int) {
	for _, list := range [][]string{{c.Path}, c.Args, c.Env} {
		for _, s := range list {
			total += len(s) + 1
			longest = max(longest, len(s))
		}
	}
	return total, longest
}
