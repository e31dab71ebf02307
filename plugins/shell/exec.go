package main

import (
	"context"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

type execArgs struct {
	commandArgs
	runArgs
}

// runArgs are the arguments of commands that a call waits for.
type runArgs struct {
	Timeout    int  `json:"timeout,omitempty" jsonschema:"seconds"`
	Interleave bool `json:"interleave,omitempty" jsonschema:"merge stderr into stdout"`
}

// exec runs a command and waits for its end.
func (s *shell) exec(ctx context.Context, call *sdk.Call, in execArgs) (tool.Result, error) {
	p, err := s.prepare(call, in.commandArgs, "dumb")
	if err != nil {
		return tool.Result{}, err
	}
	asked, err := p.settings.timeout(in.Timeout)
	if err != nil {
		return tool.Result{}, err
	}
	defer s.owners.begin(ownerOf(call))()
	out := newFollower(call)
	c := &p.command
	c.Output, c.Merge = out.take, in.Interleave
	tree := call.CommandTree()
	if in.Command == "" {
		tree = nil // argv runs without a shell
	} else if tree == nil {
		runBash(p, in.Command)
	}
	timeout := p.settings.within(ctx, asked)
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var result proc.Result
	var refused error
	if tree != nil {
		result, refused, err = s.runTree(bounded, call, p, tree)
	} else {
		result, err = proc.Run(bounded, *c)
	}
	ended := outcome{Result: result, timeout: timeout, short: timeout < asked}
	if in.Command != "" {
		ended.cwd = result.Dir
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case err != nil && bounded.Err() != nil:
		ended.TimedOut = true // before the command started
	case err != nil:
		return tool.Result{}, notStarted(err)
	case ended.Canceled || ctx.Err() != nil && ended.TimedOut:
		return tool.Result{}, ctx.Err()
	}
	told := ended.result(budget(call))
	if refused != nil {
		told.Error = tool.AsError(refused)
	}
	return told, nil
}

// notStarted returns the error for a command that could not be started.
func notStarted(err error) error {
	e := tool.AsError(err)
	if e.Code == tool.Internal {
		return tool.Errorf(tool.Failed, "Execution failed: the system could not start it").WithHint("try again later").WithCause(err)
	}
	failed := tool.Errorf(tool.Failed, "Execution failed: %s", e.Message).WithCause(err)
	if e.Hint != "" {
		failed = failed.WithHint("%s", e.Hint)
	}
	return failed
}

// budget returns the maximum size of a result's text.
func budget(call *sdk.Call) int {
	if most := call.MaxOutput(); most > 0 {
		return int(most)
	}
	return int(resultRoom)
}
